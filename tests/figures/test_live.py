"""The chart of a live session marks everything that changed what the model saw."""

from typing import Any

import pytest

from pamer_lab.figures.live import MARKS, live_context, marked


def request(t: int, **facts: Any) -> dict[str, Any]:
    plain = {"action": "pass", "edit": False, "fallback": None, "policy": "sliding-window:2", "usage": None}
    return {"t": t, "client_tokens": 100 * t, "model_tokens": 50, **plain, **facts}


@pytest.mark.parametrize(
    ("facts", "mark"),
    [
        ({}, None),
        ({"edit": True}, "edit"),
        ({"action": "compress", "edit": True}, "compress"),
        ({"action": "recall"}, "recall"),
        ({"action": "compress", "fallback": "the disk is full"}, "fallback"),
    ],
)
def test_a_turn_is_marked_by_what_changed_the_request(facts: dict[str, Any], mark: str | None) -> None:
    assert marked(request(0, **facts)) == mark


def test_an_edit_of_a_policy_that_only_drops_blocks_is_in_the_chart() -> None:
    figure = live_context([request(0), request(1, edit=True), request(2, edit=True)])
    marks = [trace for trace in figure.data if trace.mode == "markers"]
    assert [(trace.marker.symbol, list(trace.x)) for trace in marks] == [(MARKS["edit"][1], [1, 2])]
