"""Hypothesis strategies for conversations: safe ones, with every shape the protocol allows."""

import json
from typing import Any

from hypothesis import strategies as st

from pamer_lab.trajectory.values import Message, ToolCall

texts = st.text(max_size=40)
names = st.sampled_from(["search", "get_document", "bash", "edit"])
arguments = st.dictionaries(st.text(max_size=5), st.integers() | texts, max_size=3).map(json.dumps)


@st.composite
def block(draw: Any, *, complete: bool = True) -> list[Message]:
    """One block that keeps the protocol; with `complete=False` some calls may stay unanswered."""
    count = draw(st.integers(0, 3))
    calls = tuple(ToolCall(f"c{number}", draw(names), draw(arguments)) for number in range(count))
    answered = list(calls) if complete else [call for call in calls if draw(st.booleans())]
    order = draw(st.permutations(answered)) if answered else []
    results = [Message("tool", draw(texts), tool_call_id=call.id, name=call.name) for call in order]
    after = [Message("user", draw(texts)) for _ in range(draw(st.integers(0, 1)))]
    return [Message("assistant", draw(texts), calls), *results, *after]


@st.composite
def conversation(draw: Any, *, complete: bool = True, max_blocks: int = 8) -> list[Message]:
    """A prefix and some blocks."""
    prefix = [Message("system", draw(texts))] * draw(st.integers(0, 1)) + [Message("user", draw(texts))] * draw(st.integers(0, 2))
    blocks = draw(st.lists(block(complete=complete), max_size=max_blocks))
    return [*prefix, *(message for messages in blocks for message in messages)]
