"""What an annotator is asked: the task and the steps before a decision point as plain text and, on request, the next action.

Knows traces and blocks, but no models, answers or storage. Invariant: nothing from the decision point on is shown, except the next
action on request; recorded text is indented, contains no chat control tokens and starts no line like one of our headings, so that a trace
cannot impersonate the question.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from pamer_lab.blocks import Cut, cut
from pamer_lab.trajectory.recorded import Recorded
from pamer_lab.trajectory.values import Message, Trace

RUBRIC = (Path(__file__).parent / "rubric.txt").read_text(encoding="utf-8")
RUBRIC_RECORDED = (Path(__file__).parent / "rubric_recorded.txt").read_text(encoding="utf-8")
"""Rubric for traces that record what the agent had in its context."""
Future = Literal["none", "action"]
"""`none`: the annotator sees only what the agent saw. `action`: it also sees the next recorded action, as the paper's annotator did."""
FUTURES: tuple[Future, ...] = get_args(Future)
CAUSAL = "You do not see that action; judge the state."
INFORMED = """You also see that action, under [next action]:
take it as evidence of what the state needed. Judge the state, not how good the action was."""
RETAINED = 2
"""Newest steps that count as active."""
MESSAGE_CHARACTERS = 6_000
"""Longer messages keep only their beginning and end."""
HISTORY_CHARACTERS = 60_000
"""Longer histories leave out their oldest steps and say which."""
CHARACTERS_PER_TOKEN = 3
"""Fewer than the four of plain English, because traces are full of JSON and addresses."""
INDENT = "  "
IN_PLACE = "[in place of older steps]"
"""The heading of recorded summaries."""

_HEADING = re.compile(r"^(\s*)\[(?=steps?\b|next action\b|in place\b)", re.IGNORECASE)


def history_limit(window: int, answer_tokens: int) -> int:
    """Characters of history that fit a model's window (in tokens) along with the rubric and its answer."""
    return max(0, min(HISTORY_CHARACTERS, (window - answer_tokens) * CHARACTERS_PER_TOKEN - len(RUBRIC_RECORDED)))


@dataclass(frozen=True)
class Questions:
    """What an annotator is asked about one trace."""

    trace: Trace
    future: Future = "none"
    recorded: Recorded | None = None
    """The memory operations to apply; None: the two newest steps are active, and the older ones are in memory."""
    characters: int = HISTORY_CHARACTERS
    """Maximum number of characters of history in one question."""

    @cached_property
    def pieces(self) -> Cut:
        return cut(self.trace.messages)

    @property
    def rubric(self) -> str:
        text = RUBRIC if self.recorded is None else RUBRIC_RECORDED
        return text if self.future == "none" else text.replace(CAUSAL, INFORMED)

    def older(self, t: int) -> tuple[int, ...]:
        """The steps before a decision point that are no longer in the agent's context, which recall may name."""
        if self.recorded is None:
            return tuple(range(max(0, t - RETAINED)))
        gone = self.recorded.gone(self.pieces.blocks[t].start)
        return tuple(block.index for block in self.pieces.before(t) if not gone.isdisjoint(range(block.start, block.end)))

    def text(self, t: int) -> str:
        """What the model is shown at a decision point: the task and the steps before it."""
        messages, pieces, older = self.trace.messages, self.pieces, set(self.older(t))
        start = pieces.blocks[t].start
        stand_ins = self.recorded.stand_ins(messages, start) if self.recorded else ()
        task = f"[task]\n{_plain(messages[: pieces.prefix_end])}"
        task += f"{IN_PLACE}\n{_plain(stand_ins)}" if stand_ins else ""
        action = f"[next action]\n{_plain(messages[start : start + 1])}" if self.future == "action" else ""
        steps = [
            f"[step {block.index}{'' if block.index in older else ', active'}]\n"
            + _plain([message for message in block.of(messages) if not any(message is one for one in stand_ins)])
            for block in pieces.before(t)
        ]
        first, room = len(steps), self.characters - len(task) - len(action)
        while first and len(steps[first - 1]) <= room:
            first -= 1
            room -= len(steps[first])
        gone = f"[steps 0 to {first - 1}] (left out: too long)\n" if first else ""
        asked = "What does the state before the next action need? Answer with the JSON object."
        return f"{task}{gone}{''.join(steps[first:])}{action}\n{asked}"


def _plain(messages: Sequence[Message]) -> str:
    """Messages as a role line followed by indented text; calls as name and arguments."""
    lines: list[str] = []
    for message in messages:
        calls = "".join(f"\ncall {call.name} {call.arguments}" for call in message.tool_calls)
        lines.append(f"{message.role}:")
        lines += [INDENT + _HEADING.sub(r"\1[ ", line) for line in _short(message.content + calls).replace("<|", "< |").splitlines()]
    return "".join(f"{line}\n" for line in lines)


def _short(text: str) -> str:
    if len(text) <= MESSAGE_CHARACTERS:
        return text
    half = MESSAGE_CHARACTERS // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
