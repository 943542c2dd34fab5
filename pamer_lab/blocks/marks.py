"""Makes untrusted text safe for a prompt, so that it can neither open nor close a chat turn or a fence.

Chat templates and our fences use markers such as `<|im_start|>`, `[INST]` or `</recalled_memory>`, which a server that tokenises a
prompt in one piece would obey inside a text too. Invariant: after `break_template_tokens` no marker is left, not even for a tokenizer
that normalises look-alikes (full-width signs, mathematical letters) and drops invisible characters; other text is unchanged.
"""

import re
import unicodedata

_TAGS = "recalled_memory|entry|tool_call|tool_calls|tool_response|think|start_of_turn|end_of_turn|bos|eos"
_WORDS = "INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|SYSTEM_PROMPT"
MARKS = re.compile(rf"<(?=/?(?:{_TAGS})\b)|<(?=/?s>)|<(?=/?SYS>>)|<(?=[|｜])|(?<=[|｜])>|\[(?=/?(?:{_WORDS})\])", re.IGNORECASE)
"""The first character of a marker, or the last one of a marker that ends in a bar and `>`."""
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)
"""Zero-width characters, direction marks, tag characters and variation selectors."""


def break_template_tokens(text: str) -> str:
    """The text with every marker broken by a space; normalised first only if normalising would reveal a marker."""
    broken = _broken(text)
    return _broken(skeleton(text)) if not text.isascii() and MARKS.search(skeleton(broken)) else broken


def _broken(text: str) -> str:
    return MARKS.sub(lambda match: f" {match.group()}" if match.group() == ">" else f"{match.group()} ", text)


def skeleton(text: str) -> str:
    """The text as seen by a tokenizer that normalises look-alikes and drops invisible characters."""
    return text if text.isascii() else _HIDDEN.sub("", unicodedata.normalize("NFKC", _HIDDEN.sub("", text)))
