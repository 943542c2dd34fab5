"""OpenHands' log of one model call: the request's `messages` and `tools` next to its `response`.

The last assistant turn is only in the response. Files of the same run repeat each other; each is read by itself.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.exchanges import Conversation, Exchange, read_answer, write
from pamer_lab.trajectory.shared.rows import attempt, one_value
from pamer_lab.trajectory.shared.usage import read_usage

NAME = "openhands-llm-completion-log"
PROMPTS = ("fncall_messages", "messages")
"""Fields that hold the prompt; if both are logged, the first is the version before calls were rewritten as text."""

LOGGED = {"args", "kwargs", "timestamp", "cost", "context_window", "latency_sec", "fncall_messages"}
"""Fields that OpenHands logs with a call; a file that also has `outputs` is DSPy's."""


def detect(document: Document) -> bool:
    root = one_value(document)
    if not isinstance(root, dict) or not isinstance(root.get("response"), dict) or not LOGGED & root.keys() or "outputs" in root:
        return False
    return any(isinstance(root.get(key), list) for key in PROMPTS)


def read(document: Document) -> Iterator[Draft]:
    yield attempt(NAME, "", _read_one, document.root)


def _read_one(root: dict[str, Any]) -> Draft:
    response = (root.get("fncall_response") if "fncall_messages" in root else None) or root["response"]
    answer, usage, model = read_answer(response)
    usage = read_usage(response.get("usage") or root.get("usage"), root.get("cost")) or usage
    tools = root.get("tools") or get.obj(root, "kwargs").get("tools")
    model = model or get.text(root, "model")
    exchange = Exchange("", get.items(root, *PROMPTS), root.get("system"), tools, model, "", answer, usage)
    draft = write(Draft(NAME, orphans="as_user"), Conversation([exchange]))
    draft.meta = get.facts(root, "context_window", "latency_sec", "timestamp")
    return draft
