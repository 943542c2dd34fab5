"""Amp threads: Anthropic-shaped messages with the outcome of each tool under `run`, with usage and model for every answer."""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.messages import add_message
from pamer_lab.trajectory.shared.rows import one_value

NAME = "amp-thread"
OWN = frozenset(("role", "content", "usage"))
BESIDE = frozenset("messageId state userState agentMode meta turnElapsedMs dtwMessageID discoveredGuidanceFiles fileMentions".split())
"""Fields of a message about the editor and the run, which the agent did not see."""


def detect(document: Document) -> bool:
    root = one_value(document)
    if not isinstance(root, dict) or not get.objects(root, "messages"):
        return False
    return get.text(root, "id").startswith("T-") and ("v" in root or "messageId" in get.first(root, "messages"))


def read(document: Document) -> Iterator[Draft]:
    root = document.root
    draft = Draft(NAME, orphans="as_user")
    left_out: set[str] = set()
    for where, item in get.placed(root["messages"], "messages"):
        if isinstance(item, dict):
            draft.model = draft.model or get.text(get.obj(item, "usage"), "model")
            left_out |= item.keys() - OWN - BESIDE
            add_message(draft, _kept(item), where)
        else:
            draft.warn(where, "is not an object; left out")
    for key in sorted(left_out):
        draft.unread(f"message field {key}", "messages")
    draft.meta |= {"thread": root.get("id"), "title": root.get("title"), "mode": root.get("agentMode"), "created": root.get("created")}
    yield draft


def _kept(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key in OWN}
