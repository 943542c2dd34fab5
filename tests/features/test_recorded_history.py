"""Inputs of recorded histories: contexts of what the agent had, recorded sizes in the hint, and states as of one pass each."""

import numpy as np
import pytest
from msgspec import structs

from pamer_lab.features.extract import extract, extract_traces
from pamer_lab.features.inputs import inputs_of
from pamer_lab.features.serialise import serialiser_for
from pamer_lab.features.values import Request, trace_requests
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.trajectory.recorded import recorded_of
from pamer_lab.trajectory.values import Event, Trace
from tests.features.conftest import assert_same_states, make_trace, naive_all

CONTEXTS = ("full", "current", "recent1", "recent2")
SUMMARY = "Nothing was found so far."


def compacted() -> Trace:
    """Before turn 3 the first three turns gave way to a summary."""
    trace = make_trace(6)
    start = [index for index, message in enumerate(trace.messages) if message.role == "assistant"][3]
    event = Event("compaction", start, SUMMARY, replaced=((2, start),))
    return structs.replace(trace, events=(event,), meta={"token_trajectory": [{"turn": 3, "tokens_actual": 777}]})


def texts(model: FrozenModel, request: Request) -> dict[int, str]:
    return {t: str(model.tokenizer.decode(tokens)) for t, tokens in inputs_of(request, model, serialiser_for(model))}


def test_a_context_is_taken_of_what_the_agent_had(llama: FrozenModel) -> None:
    trace = compacted()
    rebuilt = {name: texts(llama, trace_requests([trace], [name], "none", history="recorded")[0]) for name in CONTEXTS}
    whole = texts(llama, trace_requests([trace], ["full"], "none")[0])
    assert all(rebuilt["full"][t] == whole[t] for t in range(3))
    assert "step 0" in whole[5]
    assert all(SUMMARY in rebuilt[name][t] and "step 0" not in rebuilt[name][t] for name in CONTEXTS for t in (3, 4, 5))
    assert rebuilt["full"][3] == rebuilt["current"][3]
    assert ("step 3" in rebuilt["recent2"][5], "step 3" in rebuilt["recent1"][5], "step 4" in rebuilt["recent1"][5]) == (True, False, True)


def test_an_explicit_context_numbers_the_messages_the_agent_had(llama: FrozenModel) -> None:
    trace = compacted()
    request = Request(trace.messages, trace.tools, [4], (0, 2), recorded=recorded_of(trace))
    shown = texts(llama, request)[4]
    assert SUMMARY in shown and "Which port" not in shown


def test_a_recorded_size_stands_in_the_hint_and_otherwise_the_rebuilt_one_is_counted(llama: FrozenModel) -> None:
    trace = compacted()
    shown = texts(llama, trace_requests([trace], ["recent2"], "faithful", history="recorded")[0])
    assert f"[context tokens: {777 + llama.output_reserve}]" in shown[4]
    counter = serialiser_for(llama)
    recorded = recorded_of(trace)
    assert recorded is not None
    ends = [index for index, message in enumerate(trace.messages) if message.role == "assistant"]
    counted = counter.count(recorded.view(trace.messages, ends[5]), trace.tools)
    assert counted < counter.count(trace.messages[: ends[5]], trace.tools)
    assert f"[context tokens: {counted + llama.output_reserve}]" in shown[5]


@pytest.mark.parametrize("hint", ["none", "faithful"])
def test_states_of_a_recorded_history_equal_one_pass_each(llama: FrozenModel, hint: str) -> None:
    requests = [
        *trace_requests([compacted()], CONTEXTS, hint, history="recorded"),  # type: ignore[arg-type]
        *trace_requests([compacted()], CONTEXTS, hint),  # type: ignore[arg-type]
    ]
    assert_same_states(extract(requests, llama).vectors, naive_all(llama, requests))


def test_a_trace_without_operations_gives_the_same_inputs_either_way(llama: FrozenModel) -> None:
    plain = make_trace(4)
    first, second = (extract_traces([plain], llama, history=history, layers=["final"]) for history in ("full", "recorded"))
    assert first.keys == second.keys
    assert np.array_equal(first.vectors, second.vectors)
