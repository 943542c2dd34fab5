"""A tool call as a reader wants to see it: an edit as a diff, a written file as its lines, a shell call as its command.

Recognised by the arguments' names, since every agent names its tools differently. Knows nothing of where it is shown; what it
returns is untrusted text. Invariant: no argument is lost: what is not in `text` or `path` is in `rest`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from pamer_lab.blocks.differences import opcodes
from pamer_lab.trajectory.values import Trace

Shape = Literal["diff", "command", "file"]
"""`diff`: lines that go (`-`) and come (`+`). `command`: what a shell is given. `file`: the text of a file that is written."""
PAIRS = (("old_string", "new_string"), ("old_str", "new_str"), ("old", "new"), ("oldText", "newText"), ("search", "replace"))
PATHS = ("file_path", "path", "filename", "file", "filePath", "notebook_path")
CONTENTS = ("content", "file_text", "contents", "text", "new_source")
COMMANDS = ("command", "cmd", "script")
PATCHES = ("patch", "diff", "input")
SHELLS = ("bash", "shell", "sh", "terminal", "exec", "command", "run")
WRITERS = ("write", "create", "save", "notebook")
MOST_LINES = 2_000
"""Lines of each side that are compared; longer texts are shown one after the other."""


@dataclass(frozen=True)
class ShownCall:
    """One call as shown to people."""

    shape: Shape
    text: str
    path: str = ""
    rest: str = ""
    """The other arguments as JSON; empty where there are none."""


def shown_call(name: str, arguments: str) -> ShownCall | None:
    """The call in its natural form; None if it has none and is best shown as JSON."""
    try:
        given = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(given, dict):
        return None
    path_key = next((key for key in PATHS if isinstance(given.get(key), str)), "")
    used, found = _edit(given)
    if found is None and any(word in name.casefold() for word in SHELLS):
        used, found = _command(given)
    if found is None and path_key:
        used, found = _file(name, given)
    if found is None:
        return None
    shape, text = found
    rest = {key: value for key, value in given.items() if key not in {*used, path_key}}
    return ShownCall(shape, text, str(given[path_key]) if path_key else "", orjson.dumps(rest).decode() if rest else "")


Found = tuple[Sequence[str], tuple[Shape, str] | None]


def _edit(given: Mapping[str, Any]) -> Found:
    edits = given.get("edits")
    if (
        isinstance(edits, list)
        and edits
        and all(isinstance(edit, dict) and (pair := _pair(edit)) and set(edit) == set(pair) for edit in edits)
    ):
        return ["edits"], ("diff", "\n".join(_diff(edit[one], edit[other]) for edit in edits for one, other in [_pair(edit) or ("", "")]))
    pair = _pair(given)
    if pair:
        return pair, ("diff", _diff(given[pair[0]], given[pair[1]]))
    for key in PATCHES:
        text = given.get(key)
        if isinstance(text, str) and (text.startswith(("*** Begin Patch", "--- ", "diff --git")) or "\n@@" in text):
            return [key], ("diff", text)
    return [], None


def _pair(given: Mapping[str, Any]) -> tuple[str, str] | None:
    return next((pair for pair in PAIRS if all(isinstance(given.get(key), str) for key in pair)), None)


def _command(given: Mapping[str, Any]) -> Found:
    for key in COMMANDS:
        value = given.get(key)
        if isinstance(value, str) and value:
            return [key], ("command", value)
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            return [key], ("command", " ".join(value))
    return [], None


def _file(name: str, given: Mapping[str, Any]) -> Found:
    key = next((key for key in CONTENTS if isinstance(given.get(key), str)), "")
    writes = any(word in name.casefold() for word in WRITERS) or given.get("command") == "create"
    return ([key], ("file", given[key])) if key and writes else ([], None)


def _diff(old: str, new: str) -> str:
    one, other = old.splitlines(), new.splitlines()
    if max(len(one), len(other)) > MOST_LINES:
        return "\n".join([*(f"- {line}" for line in one), *(f"+ {line}" for line in other)])
    lines: list[str] = []
    for kind, a, b, c, d in opcodes(one, other):
        if kind == "equal":
            lines += [f"  {line}" for line in one[a:b]]
        else:
            lines += [*(f"- {line}" for line in one[a:b]), *(f"+ {line}" for line in other[c:d])]
    return "\n".join(lines)


def tool_tokens(trace: Trace, message_tokens: Sequence[int]) -> list[dict[str, Any]]:
    """Per tool: calls, tokens of their results, and the results' share of the trace's tokens; most tokens first."""
    names = {call.id: call.name for message in trace.messages for call in message.tool_calls}
    calls = Counter(call.name for message in trace.messages for call in message.tool_calls)
    tokens: Counter[str] = Counter()
    for message, count in zip(trace.messages, message_tokens, strict=True):
        if message.role == "tool":
            tokens[names.get(message.tool_call_id, message.name) or "unnamed"] += count
    total = sum(message_tokens)
    return [
        {"tool": name, "calls": calls[name], "result_tokens": tokens[name], "share_pct": 100 * tokens[name] / total if total else 0.0}
        for name in sorted({*calls, *tokens}, key=lambda name: (-tokens[name], name))
    ]
