"""Which messages a context holds."""

import pytest

from pamer_lab.errors import InputError
from pamer_lab.features.contexts import context_messages
from tests.features.conftest import make_trace

MESSAGES = make_trace(6).messages
STARTS = [index for index, message in enumerate(MESSAGES) if message.role == "assistant"]


def test_no_context_holds_the_future_action() -> None:
    for t, start in enumerate(STARTS):
        for context in ("full", "current", "recent1", "recent2", "recent4"):
            chosen = context_messages(MESSAGES, t, context)
            assert set(chosen) <= set(MESSAGES[:start])
            assert chosen[:2] == MESSAGES[:2]


def test_full_current_and_recent_are_what_they_say() -> None:
    assert context_messages(MESSAGES, 4, "full") == MESSAGES[: STARTS[4]]
    assert context_messages(MESSAGES, 4, "current") == MESSAGES[:2]
    assert context_messages(MESSAGES, 4, "recent2") == (*MESSAGES[:2], *MESSAGES[STARTS[2] : STARTS[4]])
    assert context_messages(MESSAGES, 1, "recent2") == context_messages(MESSAGES, 1, "full")
    assert context_messages(MESSAGES, 0, "recent2") == MESSAGES[:2]


def test_an_explicit_list_is_exactly_those_messages() -> None:
    assert context_messages(MESSAGES, 2, [0, 3]) == (MESSAGES[0], MESSAGES[3])
    for wrong in ([3, 0], [0, 0], [0, STARTS[2]], [-1]):
        with pytest.raises(InputError):
            context_messages(MESSAGES, 2, wrong)


def test_unknown_names_and_points_are_refused() -> None:
    for name in ("recent0", "recent", "all"):
        with pytest.raises(InputError, match="recentK"):
            context_messages(MESSAGES, 1, name)
    with pytest.raises(InputError, match="0 to 5"):
        context_messages(MESSAGES, 7, "full")
