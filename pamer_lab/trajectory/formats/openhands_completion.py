"""OpenHands' log of one model call: the request's `messages` and `tools` beside its `response`.

The last assistant turn stands only in the response. Files of the same run repeat each other; each is read by itself.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.episodes import attempt
from pamer_lab.trajectory.fields import read_usage
from pamer_lab.trajectory.formats.exchanges import Conversation, Exchange, read_answer, write
from pamer_lab.trajectory.formats.openai_chat import text_of

NAME = "openhands-llm-completion-log"


def detect(document: Document) -> bool:
    root = document.root
    return document.kind == "json" and isinstance(root, dict) and _messages(root) is not None and isinstance(root.get("response"), dict)


def _messages(root: dict[str, Any]) -> list[Any] | None:
    """The prompt as it was before calls were rewritten into text, where both are logged."""
    return next((root[key] for key in ("fncall_messages", "messages") if isinstance(root.get(key), list)), None)


def read(document: Document) -> Iterator[Draft]:
    yield attempt(NAME, "", lambda: _read_one(document.root))


def _read_one(root: dict[str, Any]) -> Draft:
    messages = _messages(root)
    if messages is None:
        raise FormatError("is not a logged call with `messages`")
    response = root.get("fncall_response") if "fncall_messages" in root else None
    answer, usage, model = read_answer(response or root["response"])
    usage = read_usage((response or root["response"]).get("usage"), root.get("cost")) or usage
    settings = root.get("kwargs")
    tools = root.get("tools") or (settings.get("tools") if isinstance(settings, dict) else None)
    model = model or text_of(root, "model")
    exchange = Exchange("", messages, root.get("system"), tools, model, "", answer, usage)
    draft = write(Draft(NAME, orphans="as_user"), Conversation([exchange]))
    draft.meta = {key: root.get(key) for key in ("context_window", "latency_sec", "timestamp")}
    return draft
