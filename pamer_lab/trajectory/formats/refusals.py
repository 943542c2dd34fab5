"""Files that look like traces but hold no usable messages: how each is recognised, and the reason given.

It is tried like a format, so that the user gets a reason instead of "unknown format". Adding one is a line in `REFUSALS`.
"""

from collections.abc import Callable, Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.rows import first_episode

NAME = "refused"


def _is_ticks(value: dict[str, Any]) -> bool:
    return isinstance(value.get("ticks"), list) and (value.get("mode") == "full_duplex" or "simulations" not in value)


def _is_tau2_index(value: dict[str, Any]) -> bool:
    return "user_info" in get.obj(value, "info") and not value.get("simulations") and "tasks" in value


def _is_display_text(value: dict[str, Any]) -> bool:
    return isinstance(value.get("messages_display"), str)


def _is_cline_interface(value: dict[str, Any]) -> bool:
    return value.get("type") in ("say", "ask") and "ts" in value and isinstance(value.get(value["type"]), str)


REFUSALS: tuple[tuple[Callable[[dict[str, Any]], bool], str], ...] = (
    (_is_ticks, "is a full-duplex voice run: its ticks hold neither text nor tool calls, so there are no messages to read"),
    (_is_tau2_index, "is the index of a run without its simulations; import the simulations' own files"),
    (_is_cline_interface, "is the interface's log of a Cline task; import `api_conversation_history.json` of the same folder"),
    (_is_display_text, "holds transcripts as plain text, not messages; import the results file that they were made from"),
)


def detect(document: Document) -> bool:
    return bool(_reason(document))


def _reason(document: Document) -> str:
    root = first_episode(document)
    return next((reason for recognises, reason in REFUSALS if recognises(root)), "") if isinstance(root, dict) else ""


def read(document: Document) -> Iterator[Draft]:
    raise FormatError(_reason(document))
    yield  # makes this a generator, as every reader is
