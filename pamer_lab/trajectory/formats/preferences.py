"""Preference data (DPO): a prompt with a preferred and a rejected answer, in the format of OpenAI's fine-tuning files or of TRL.

The trace is the prompt and the preferred answer; the rejected one is kept as notes. Either may be text or messages, and TRL may repeat the
prompt in both answers.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.dialects import steps_of
from pamer_lab.trajectory.shared.exchanges import common
from pamer_lab.trajectory.shared.messages import read_facts
from pamer_lab.trajectory.shared.rows import attempt, episodes, first_episode
from pamer_lab.trajectory.shared.span_values import prompt_of
from pamer_lab.trajectory.shared.steps import Mark, Turn, add_steps

NAME = "preference-pairs"
PREFERRED, REJECTED = ("preferred_output", "chosen"), ("non_preferred_output", "rejected")


def detect(document: Document) -> bool:
    return _sides(first_episode(document)) is not None


def _sides(value: Any) -> tuple[list[Any], list[Any], list[Any]] | None:
    """(prompt, preferred answer, rejected answer) as messages; None if a value has no such pair."""
    if not isinstance(value, dict) or not get.some(value, *PREFERRED) or not get.some(value, *REJECTED):
        return None
    preferred, rejected = (_messages(get.some(value, *keys)) for keys in (PREFERRED, REJECTED))
    prompt = prompt_of(get.some(value, "input", "prompt", "question")) or preferred[: common(preferred, rejected)]
    return prompt, _behind(prompt, preferred), _behind(prompt, rejected)


def _behind(prompt: list[Any], answer: list[Any]) -> list[Any]:
    """The answer without the prompt that it may repeat."""
    return answer[len(prompt) :] if common(answer, prompt) == len(prompt) else answer


def _messages(answer: Any) -> list[Any]:
    return [{"role": "assistant", "content": answer}] if isinstance(answer, str) else get.as_list(answer)


def read(document: Document) -> Iterator[Draft]:
    for where, value in episodes(document):
        yield attempt(NAME, where, _read_one, value, where)


def _read_one(value: Any, where: str) -> Draft:
    sides = _sides(value)
    if sides is None:
        raise FormatError("has no preferred and rejected answer like the records before it", where=where)
    prompt, preferred, rejected = sides
    draft = Draft(NAME, where=where, orphans="as_user")
    read_facts(draft, value | {"tools": get.some(get.obj(value, "input"), "tools") or value.get("tools")})
    steps = steps_of(draft, [*prompt, *preferred], "messages")
    for step in steps_of(draft, rejected, "rejected"):
        words = [*step.texts, *(f"{call.name} {call.arguments}" for call in step.calls)] if isinstance(step, Turn) else [step.text]
        steps.append(Mark("note", "\n".join(words), {"what": "rejected answer"}))
    add_steps(draft, steps)
    return draft
