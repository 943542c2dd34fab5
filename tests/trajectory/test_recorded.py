"""Recorded histories: what the agent had before each decision, from the memory operations of its trace."""

import json
from pathlib import Path

import pytest
from msgspec import structs

from pamer_lab.trajectory import read_bytes, read_traces
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.formats.native import to_native
from pamer_lab.trajectory.recorded import Recorded, count_recorded, memory_from, recorded_of
from pamer_lab.trajectory.values import Event, Message, Source, ToolCall, Trace

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "traces"


def views(trace: Trace) -> list[list[str]]:
    """The contents of the agent's context at every decision point; calls by their name."""
    recorded = recorded_of(trace)
    assert recorded is not None
    ends = [index for index, message in enumerate(trace.messages) if message.role == "assistant"]
    return [[shown(message) for message in recorded.view(trace.messages, end)] for end in ends]


def shown(message: Message) -> str:
    return message.content or ",".join(call.name for call in message.tool_calls)


def made(*events: Event, turns: int = 4) -> Trace:
    """System, task, then a call and a result per turn: messages 2 and 3 are turn 0."""
    messages = [Message("system", "S"), Message("user", "U")]
    for turn in range(turns):
        messages.append(Message("assistant", f"a{turn}", (ToolCall(f"c{turn}", "look"),)))
        messages.append(Message("tool", f"r{turn}", tool_call_id=f"c{turn}", name="look"))
    return Trace("t", "q", "test", tuple(messages), events=events)


def of_fixture(name: str) -> Trace:
    return read_traces(FIXTURES / name)[0]


def test_an_acm_run_keeps_task_and_summary_of_what_it_compressed() -> None:
    trace = of_fixture("acm_run.json")
    assert views(trace) == [
        ["S", "Who founded it?"],
        ["S", "Who founded it?", "<think>", "[1] docid=7 Ada founded it"],
        ["S", "Who founded it?", "manage_context", "[summary_id: 1] Ada is likely"],
        ["S", "Who founded it?", "manage_context", "[summary_id: 1] Ada is likely", "query_memory", "Ada"],
    ]
    recorded = recorded_of(trace)
    assert recorded is not None and recorded.sizes == {1: 300, 2: 120, 3: 150, 4: 155}
    assert memory_from(trace) == 2


def test_an_acm_operation_that_says_how_many_takes_the_oldest_that_are_left() -> None:
    call = '{"role": "assistant", "tool_calls": [{"id": "%s", "function": {"name": "%s", "arguments": "{}"}}]}'
    result = '{"role": "tool", "tool_call_id": "%s", "content": "%s"}'
    turns = [(f"x{turn}", "manage_context" if turn in (2, 4) else "search") for turn in range(6)]
    history = ",".join(['{"role": "user", "content": "U"}', *(f"{call % one},{result % (one[0], one[0].upper())}" for one in turns)])
    operations = ",".join(f'{{"tool": "manage_context", "compressed_message_count": {count}}}' for count in (2, 4))
    trace = read_bytes(f'{{"query_id": "1", "raw_history": [{history}], "mem_operations": [{operations}]}}'.encode(), "run.json").traces[0]
    assert views(trace)[3] == ["U", "search", "X1", "manage_context", "X2"]
    assert views(trace)[5] == ["U", "search", "X3", "manage_context", "X4"]


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("pi-session.jsonl", ["we looked", "bash", "a.py", "pwd\n/tmp"]),
        ("openhands_v1.jsonl", ["Two looks at once.", "One file.", "Error validating args"]),
    ],
)
def test_a_summary_stands_before_what_was_kept(name: str, last: list[str]) -> None:
    assert views(of_fixture(name))[-1] == last


def test_an_openhands_condensation_replaces_the_events_it_names() -> None:
    trace = of_fixture("openhands_v0.jsonl")
    last = views(trace)[-1]
    assert last[:3] == ["You are an agent.", trace.messages[1].content, "Two files were listed."]
    forgotten = [message.content for message in trace.messages if message.content.startswith("I look at both")]
    assert forgotten and forgotten[0] not in last


def test_an_openhands_condensation_may_name_the_first_and_last_event_however_far_apart() -> None:
    run = json.loads((FIXTURES / "openhands_v0.jsonl").read_text().splitlines()[0])
    for event in run["history"]:
        if event.get("action") == "condensation":
            event["args"] = {"forgotten_events_start_id": 5, "forgotten_events_end_id": 10**15, "summary": "all of it"}
    trace = read_bytes(json.dumps(run).encode(), "run.json").traces[0]
    assert views(trace)[-1][2:] == ["all of it"]


def test_a_pi_compaction_that_names_no_entry_replaces_nothing_known() -> None:
    text = (FIXTURES / "pi-session.jsonl").read_text().replace('"firstKeptEntryIndex": 2', '"firstKeptEntryIndex": [2]')
    trace = read_bytes(text.encode(), "pi.jsonl").traces[0]
    assert [event.kind for event in trace.events] == ["compaction"]
    assert recorded_of(trace) is None


@pytest.mark.parametrize("name", ["claude-code.jsonl", "kimi-cli.jsonl", "codex-rollout-envelope.jsonl"])
def test_a_session_goes_on_from_its_summary(name: str) -> None:
    trace = of_fixture(name)
    event = next(event for event in trace.events if event.replaced)
    assert event.summary is not None
    recorded = recorded_of(trace)
    assert recorded is not None
    had = recorded.view(trace.messages, event.summary + 1)
    assert trace.messages[event.summary] in had
    assert len(had) < event.summary + 1
    assert not any(message.role in ("assistant", "tool") for message in had)


def test_a_compaction_without_its_summary_in_the_stream_says_nothing_of_what_was_replaced() -> None:
    trace = of_fixture("claude-stream.jsonl")
    assert [event.kind for event in trace.events] == ["compaction"]
    assert recorded_of(trace) is None


def test_a_second_summary_replaces_the_first() -> None:
    first, second = Event("compaction", 4, "one", replaced=((2, 4),)), Event("compaction", 8, "two", replaced=((2, 8),))
    assert views(made(first, second)) == [
        ["S", "U"],
        ["S", "U", "one"],
        ["S", "U", "one", "a1", "r1"],
        ["S", "U", "two"],
    ]


def test_a_shortened_message_keeps_its_role_and_its_call() -> None:
    trace = made(Event("context_edit", 6, "(short)", replaced=((3, 4),)))
    recorded = recorded_of(trace)
    assert recorded is not None
    assert recorded.view(trace.messages, 6)[3] == structs.replace(trace.messages[3], content="(short)")
    assert recorded.view(trace.messages, 4) == trace.messages[:4]


def test_an_agent_that_writes_its_own_summary_still_has_everything_while_it_writes() -> None:
    assert views(made(Event("compaction", 6, replaced=((2, 6),), summary=6)))[2:] == [
        ["S", "U", "a0", "r0", "a1", "r1"],
        ["S", "U", "a2", "r2"],
    ]


def test_a_view_never_looks_past_the_decision() -> None:
    trace = made(Event("compaction", 6, "late", replaced=((2, 6),)))
    recorded = recorded_of(trace)
    assert recorded is not None
    for end in range(len(trace.messages)):
        cut_off = Recorded(tuple(event for event in trace.events if event.before_message <= end))
        assert recorded.view(trace.messages, end) == cut_off.view(trace.messages[:end], end)


def test_a_trace_that_does_not_say_what_was_replaced_counts_as_full() -> None:
    told, silent = made(Event("compaction", 4, "x", replaced=((2, 4),))), made(Event("compaction", 4, "Compacting"))
    assert recorded_of(silent) is None
    assert recorded_of(told, "full") is None
    assert count_recorded([told, silent, told]) == 2


@pytest.mark.parametrize(
    ("event", "first"),
    [
        (Event("compaction", 4, "x", replaced=((2, 4),)), 1),
        (Event("compaction", 6, replaced=((2, 6),), summary=6), 3),
        (Event("memory_write", 6, "fact"), 2),
        (Event("memory_read", 2, "start-up notes"), 4),
        (Event("note", 2, "x"), 4),
    ],
)
def test_memory_exists_from_the_first_decision_after_it_was_written(event: Event, first: int) -> None:
    assert memory_from(made(event)) == first


def test_a_call_that_shrinks_the_context_makes_a_memory_too() -> None:
    trace = made()
    calling = structs.replace(trace.messages[4], tool_calls=(ToolCall("c1", "compress_history"),))
    assert memory_from(structs.replace(trace, messages=(*trace.messages[:4], calling, *trace.messages[5:]))) == 2


def test_what_an_event_replaced_survives_our_own_format() -> None:
    trace = made(Event("compaction", 6, replaced=((2, 4), (5, 6)), summary=6))
    again = read_bytes(to_native(trace), "again.json").traces[0]
    assert again.events == trace.events


@pytest.mark.parametrize(
    "event",
    [
        Event("compaction", 4, replaced=((2, 5),)),
        Event("compaction", 6, replaced=((4, 2),)),
        Event("compaction", 6, replaced=((2, 2),)),
        Event("compaction", 6, replaced=((4, 5), (2, 3))),
        Event("compaction", 6, summary=6),
        Event("compaction", 6, replaced=((2, 4),), summary=3),
        Event("compaction", 6, replaced=((2, 4),), summary=10),
    ],
)
def test_our_own_format_refuses_replacements_that_cannot_be(event: Event) -> None:
    rejected = read_bytes(to_native(made(event)), "bad.json").rejected
    assert [one.where for one in rejected] and "events[0]" in rejected[0].where


def test_a_message_found_late_moves_what_events_point_at() -> None:
    draft = Draft("test")
    draft.messages = list(made().messages)
    draft.event_at(6, "compaction", replaced=((2, 4),), summary_message=6)
    draft.insert(1, Message("user", "late"))
    moved = draft.finish(Source("x"), "t").events[0]
    assert (moved.before_message, moved.replaced, moved.summary) == (7, ((3, 5),), 7)
