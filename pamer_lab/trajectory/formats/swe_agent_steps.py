"""What SWE-agent's `trajectory` knows beyond its `history`, as events; not a format of its own.

A step's answer or observation that no message holds (an answer that was asked again, the observation of the last action), and
messages that a history processor shortened before they were sent (1.x keeps the whole prompt of each step).
"""

from typing import Any

from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.parts import read_content


def tell_steps(draft: Draft, history: list[Any], steps: list[Any]) -> None:
    """Events for all steps, each before the turn of the same number."""
    turns = [index for index, message in enumerate(draft.messages) if message.role == "assistant"]
    said: list[str] = []
    shortened: set[str] = set()
    for number, step in enumerate(steps):
        if not isinstance(step, dict):
            draft.warn(f"trajectory[{number}]", f"is {type(step).__name__}, not a step; left out")
            continue
        place = turns[number] if number < len(turns) else len(draft.messages)
        _tell_shortened(draft, history, step, place, shortened)
        for key in ("thought", "response", "observation"):
            text = step.get(key)
            if isinstance(text, str) and text.strip() and not _is_told(draft, text.strip(), place, said):
                draft.event_at(min(place + 1, len(draft.messages)), "note", text, what=f"{key} of step {number}; no message holds it")
                said.append(text)


def _is_told(draft: Draft, text: str, place: int, said: list[str]) -> bool:
    """Nearly always beside its turn, so the whole conversation is searched only when it is not there."""
    near = draft.messages[max(place - 1, 0) : place + 3]
    everywhere = (message for message in draft.messages)
    return any(text in message.content for messages in (near, everywhere) for message in messages) or any(text in one for one in said)


def _tell_shortened(draft: Draft, history: list[Any], step: dict[str, Any], place: int, known: set[str]) -> None:
    """Messages that were sent in another form than the history keeps them."""
    sent: list[Any] = next((step[key] for key in ("messages", "query") if isinstance(step.get(key), list)), [])
    for number, (kept, item) in enumerate(zip(history, sent, strict=False)):
        if kept is item or kept == item or not isinstance(kept, dict) or not isinstance(item, dict):
            continue
        text = read_content(item.get("content"), where="content").text
        whole = read_content(kept.get("content"), where="content").text
        if text != whole and f"{number}/{text}" not in known:
            known.add(f"{number}/{text}")
            index = next((index for index, message in enumerate(draft.messages[:place]) if message.content == whole), None)
            replaced = () if index is None else ((index, index + 1),)
            draft.event_at(place, "context_edit", text, what=f"history[{number}] was sent in this form from here on", replaced=replaced)
