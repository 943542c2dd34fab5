"""opencode's sessions: side agents of side agents, and whose trace errors and strays belong to."""

from pathlib import Path
from typing import Any

import orjson

from pamer_lab.trajectory import Trace, read_all
from tests.trajectory.formats.told import counts, read_lines, read_value


def rows(*sessions: tuple[str, str | None]) -> dict[str, list[dict[str, Any]]]:
    """The tables of a database: (session, the session that started it), each with a prompt and an answer."""
    messages, parts = [], []
    for key, _ in sessions:
        for number, role in enumerate(("user", "assistant")):
            own = f"{key}-{role}"
            messages.append({"id": own, "session_id": key, "time_created": number, "data": {"role": role}})
            text = {"type": "text", "text": f"{role} of {key}"}
            parts.append({"id": own, "message_id": own, "session_id": key, "time_created": number, "data": text})
    return {"session": [{"id": key, "parent_id": parent} for key, parent in sessions], "message": messages, "part": parts}


def sides(trace: Trace) -> list[tuple[str, str | None]]:
    """(what the side agent said, the side agent that started it) of each event."""
    return [(event.text.split(" of ")[-1], event.data.get("parent")) for event in trace.events if event.kind == "subagent"]


def test_a_side_agent_s_own_side_agents_are_events_right_after_it() -> None:
    found = rows(("s", None), ("b", "a"), ("c", "b"), ("a", "s"), ("z", "s"), ("t", None))
    first, second = read_value(found)
    assert sides(first) == [("a", None), ("b", "a"), ("c", "b"), ("z", None)]
    assert (counts(first), counts(second), sides(second)) == ((1, 0, 0), (1, 0, 0), [])


def test_sessions_that_name_each_other_as_parents_are_one_trace() -> None:
    own, ring = read_value(rows(("a", "b"), ("b", "a"), ("s", None)))
    assert ([message.content for message in own.messages], sides(own)) == (["user of s", "assistant of s"], [])
    assert ([message.content for message in ring.messages], sides(ring)) == (["user of a", "assistant of a"], [("b", None)])


def said(session: str, text: str) -> dict[str, Any]:
    part = {"id": text, "messageID": f"m-{session}", "sessionID": session, "type": "text", "text": text}
    return {"type": "text", "sessionID": session, "part": part}


def test_an_error_is_in_the_trace_of_its_session_and_what_names_none_is_in_the_first() -> None:
    error = {"type": "error", "sessionID": "b", "error": {"name": "Overloaded"}}
    first, second = read_lines([said("a", "one"), said("b", "two"), error, {"type": "zebra"}, {"type": "error", "sessionID": "gone"}])
    assert [event.text for event in second.events] == ['{"name":"Overloaded"}']
    assert [event.text for event in first.events] == ["{}"]
    assert [warning.text.partition(": ")[2] for trace in (first, second) for warning in trace.warnings] == [
        "error (1), zebra (1)",
        "error (1)",
    ]


def test_an_error_of_a_side_agent_is_in_the_trace_that_has_its_event() -> None:
    def created(session: str, parent: str | None) -> list[Any]:
        info = {"id": session, "parentID": parent}
        message = {"id": f"m-{session}", "sessionID": session, "role": "assistant"}
        part = {"id": "p", "messageID": f"m-{session}", "sessionID": session, "type": "text", "text": f"text of {session}"}
        events = (("session.created", {"info": info}), ("message.updated", {"info": message}), ("message.part.updated", {"part": part}))
        return [["event", {"event": {"type": kind, "properties": facts}}] for kind, facts in events]

    first, second = read_lines([*created("a", None), *created("b", None), *created("side", "b"), {"type": "zebra", "sessionID": "side"}])
    assert (sides(first), first.warnings) == ([], ())
    assert (sides(second), [warning.kind for warning in second.warnings]) == ([("side", None)], ["unread"])


def test_a_part_without_its_message_is_counted_in_the_trace_of_its_session(tmp_path: Path) -> None:
    def write(name: str, value: dict[str, Any]) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(orjson.dumps(value))

    for session in ("a", "b"):
        write(f"message/{session}/m-{session}.json", {"sessionID": session, "role": "assistant"})
        write(f"part/m-{session}/p.json", {"type": "text", "text": "hi", "sessionID": session})
    write("part/m-gone/p.json", {"type": "text", "text": "lost", "sessionID": "b"})
    first, second = read_all([tmp_path]).traces
    assert (first.warnings, [warning.kind for warning in second.warnings]) == ((), ["unread"])


def test_a_session_without_an_id_hides_no_other() -> None:
    first, second = read_value(rows(("", None), ("a", None)))
    assert [trace.messages[1].content for trace in (first, second)] == ["assistant of ", "assistant of a"]
    assert (sides(first), sides(second)) == ([], [])
