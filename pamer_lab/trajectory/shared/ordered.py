"""Parts of one stored message that hold several turns -> steps in their order.

Chat products store what a model said, called and got back in one message. Invariant: a text or a call after a result starts the next turn;
calls that were made together stay together.
"""

from collections.abc import Iterable
from typing import Any

from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.steps import Result, Step, Turn
from pamer_lab.trajectory.shared.vocabulary import part_kind
from pamer_lab.trajectory.values import Usage

BOUNDARIES = ("step-start", "start-step", "step_start")


def ordered_steps(draft: Draft, parts: Iterable[Any], where: str, usage: Usage | None = None) -> list[Step]:
    """The steps of an assistant's parts; the last turn gets the usage of all of them."""
    steps: list[Step] = []
    turn: Turn | None = None
    results: list[Step] = []
    for place, part in get.placed(parts, where):
        if isinstance(part, dict) and part.get("type") in BOUNDARIES:
            steps += results
            turn, results = None, []
            continue
        together = isinstance(part, dict) and part_kind(part)[0] == "both"
        content = content_of(draft, [part], place)
        says = bool(content.texts or content.thinking or content.images)
        if turn is None or (results and (says or (content.calls and not together))):
            if not (says or content.calls):
                steps += _results(content.results, place) if turn is None else []
                results += _results(content.results, place) if turn is not None else []
                continue
            steps += results
            turn, results = Turn(place), []
            steps.append(turn)
        turn.add(content)
        turn.calls += content.calls
        results += _results(content.results, place)
    steps += results
    last = next((step for step in reversed(steps) if isinstance(step, Turn)), None)
    if last is not None:
        last.usage = usage
    return steps


def _results(found: Iterable[Any], where: str) -> list[Step]:
    return [Result(call_id, content.text, where, content.images, failed) for call_id, content, failed in found]
