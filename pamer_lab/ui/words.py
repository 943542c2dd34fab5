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
    "profile": "Which models are used: `embedded` runs on any machine without a network, `paper` needs the paper's own models.",
    "device": "Where models compute. `auto` takes a graphics card where there is one. Policies without models do not need it.",
    "policy": "One way to manage context; each replays the same recorded trace.",
    "fixed": "The recorded actions are kept, so replay measures contexts, decisions and tokens. It cannot measure task reward.",
    "active": "Tokens of the request the model would get, tool descriptions included.",
    "ledger": "At every turn each earlier block is in exactly one state: A active (word for word in the context), S summarised, "
    "R recalled (its summary is in the context), X restored (its raw text was brought back), · absent.",
    "cached": "The part of a request that equals the beginning of the previous one; providers bill it at a lower price.",
    "evidence": "Names, numbers and addresses that a tool result showed first and a later recorded action used. Matched word for word.",
    "whatif": "Decides every turn again from the stored logits. No model is called.",
    "margin": "Logit minus the threshold's logit. Positive means the head says yes.",
    "head": "A small trained classifier that reads the frozen model's state and says whether older history should be compressed.",
}
