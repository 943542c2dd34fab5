"""What the tests of the failure table share."""

from pathlib import Path
from typing import Any

from pamer_lab.controller import PamerController, RequestDecision
from tests.controller.world import as_bytes, controller, history, snapshot, turn


def falls_back(pamer: PamerController, folder: Path, messages: list[Any], *, session: str = "s") -> RequestDecision:
    """Run one request that must come back as it was, byte for byte, with nothing stored."""
    before, stored = as_bytes(messages), snapshot(folder)
    returned, decision = pamer.transform(session, messages)
    assert decision.action == "fallback", decision.reason
    assert returned is messages and as_bytes(returned) == before
    assert snapshot(folder)["memories"] == stored["memories"]
    assert decision.error and "unchanged" in decision.reason
    return decision


def with_memory(folder: Path) -> list[dict[str, Any]]:
    """A session that has one memory already; returns a later history of it."""
    messages = history(8)
    _, decision = controller(folder).transform("s", messages)
    assert decision.action == "compress"
    return messages + turn(8)
