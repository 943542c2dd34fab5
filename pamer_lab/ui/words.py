"""The lab's own words, each explained in a sentence, for hover hints."""

HINTS = {
    "block": "One assistant message and everything after it up to the next one: what the agent did, and what came back.",
    "prefix": "Every message before the first assistant message: the system text and the task.",
    "turn": "One assistant message. Turn 0 is the first.",
    "tokens": "The units a model reads text in, counted with the named tokenizer; 'estimated' means characters divided by four.",
    "context": "The whole recorded history before the agent's message, tool descriptions included. Thinking text is not counted.",
    "labels": "Marks that say memory work was needed at a turn: older history condensed (▼) or earlier evidence brought back (▲).",
    "events": "What the source recorded about its own context: a compaction, a memory read or write, a side agent.",
    "warnings": "Places in the source that could not be represented exactly. Nothing was dropped silently.",
    "reward": "The score the source recorded for this run.",
    "demo": "Comes with PaMER Lab, so that there is something to look at. Remove it whenever you like.",
    "marks": "▼ compression needed or recorded, ▲ recall, ✕ a tool failed, … a call has no result.",
    "format": "Which kind of file it was; found from its content, not its name.",
    "question": "Replicas of one question share this id; studies never split them.",
}
