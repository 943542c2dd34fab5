"""Anthropic messages that a log spread over several lines -> steps.

Claude Code transcripts and Agent SDK streams write one line per content block, all with the message's id and all repeating its
usage. Invariant: lines with one id become one turn, which takes the place of the first and the usage of the last.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared.parts import Content, content_of
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn, stamp_steps
from pamer_lab.trajectory.shared.usage import read_usage


@dataclass(frozen=True, slots=True)
class Line:
    """One log line that matters to the conversation."""

    where: str
    role: Literal["assistant", "user"]
    body: dict[str, Any]
    """The Anthropic message: `content`, and for the assistant `id`, `model`, `usage`."""
    key: str = ""
    """Shared by the lines of one message; a line without a key is a separate message."""
    at: float | None = None
    """When it was recorded, in seconds since 1970."""


def to_steps(draft: Draft, lines: Sequence[Line | Mark]) -> list[Step]:
    """The lines as steps, in the order given; odd content is noted in the draft."""
    groups: dict[str, list[Line]] = {}
    for line in lines:
        if type(line) is Line and line.role == "assistant":
            groups.setdefault(line.key or line.where, []).append(line)
    steps: list[Step] = []
    for line in lines:
        before = len(steps)
        if isinstance(line, Mark):
            steps.append(line)
        elif line.role == "user":
            content = content_of(draft, line.body.get("content"), line.where)
            steps += _results(content, line.where)
            if content.texts or not content.results:
                steps.append(Said("user", content.text, content.images))
        elif group := groups.pop(line.key or line.where, None):
            steps += _turn(draft, group)
        stamp_steps(steps, before, None if isinstance(line, Mark) else line.at)
    return steps


def _turn(draft: Draft, group: list[Line]) -> list[Step]:
    turn = Turn(group[0].where)
    blocks: list[Any] = []
    usage: Any = None
    for line in group:
        given = line.body.get("content")
        new = given if isinstance(given, list) else [] if given is None else [given]
        # Some loggers repeat the message so far on every line; the longer version replaces it.
        blocks = new if blocks and new[: len(blocks)] == blocks else blocks + [block for block in new if not _seen_call(block, blocks)]
        usage = line.body.get("usage") or usage
    turn.usage = read_usage(usage)
    content = content_of(draft, blocks, turn.where)
    turn.texts, turn.calls, turn.thinking, turn.images = content.texts, content.calls, content.thinking, content.images
    # Results of tools that ran on the server are part of the assistant's own message.
    return [turn, *_results(content, turn.where)]


def _seen_call(block: Any, blocks: list[Any]) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_use" and bool(block.get("id")) and block in blocks


def _results(content: Content, where: str) -> list[Step]:
    return [Result(call_id, result.text, where, result.images, failed) for call_id, result, failed in content.results]


class SideAgents:
    """Side agents of a log: the lines of each become one `subagent` event at the place where it started."""

    def __init__(self, draft: Draft, lines: list[Line | Mark]) -> None:
        self.draft = draft
        self.lines = lines
        self._found: dict[str, tuple[int, list[Line], dict[str, Any]]] = {}

    def add(self, key: str, line: Line, **facts: Any) -> None:
        """A line of the agent with this key; the facts of its first line are kept."""
        if key not in self._found:
            self._found[key] = (len(self.lines), [], facts)
            self.lines.append(Mark("subagent"))
        self._found[key][1].append(line)

    def close(self) -> None:
        """Write the events, once all lines are known."""
        for position, said, facts in self._found.values():
            turns = {line.key or line.where for line in said if line.role == "assistant"}
            self.lines[position] = Mark("subagent", _transcript(self.draft, said), {**facts, "lines": len(said), "turns": len(turns)})


def _transcript(draft: Draft, lines: Sequence[Line]) -> str:
    """Everything that a side agent's lines say, as plain text."""
    said: list[str] = []
    for line in lines:
        content = content_of(draft, line.body.get("content"), line.where)
        said.append(f"{line.role}: {content.words}")
    return "\n\n".join(said)
