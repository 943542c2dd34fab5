"""Our own format: what is written is read back, and what does not fit is refused with its place."""

from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import orjson
import pytest

from pamer_lab.trajectory import read_all, read_bytes, read_traces
from pamer_lab.trajectory.formats import formats
from pamer_lab.trajectory.formats.native import schema, to_native
from pamer_lab.trajectory.labels import SideFile
from tests.trajectory.formats.told import only, read_json_bytes, read_lines

PROJECT = Path(__file__).resolve().parents[3]
FIXTURE = PROJECT / "tests" / "fixtures" / "traces" / "native.json"


def test_the_published_schema_is_the_one_the_reader_uses() -> None:
    again = "write it again with pamer_lab.trajectory.formats.native.schema()"
    assert (PROJECT / "docs" / "trace.schema.json").read_bytes() == schema(), again


def test_a_trace_written_in_our_format_fits_the_schema_and_reads_back_equal() -> None:
    (trace,) = read_traces(FIXTURE)
    written = to_native(trace)
    jsonschema.validate(orjson.loads(written), orjson.loads(schema()))
    again = only(read_json_bytes(written))
    assert (again.messages, again.labels, again.events, again.tools) == (trace.messages, trace.labels, trace.events, trace.tools)
    assert (again.question_id, again.task_id, again.reward, again.meta) == ("museum", "museum-1", 1.0, {"seed": 3})


def test_traces_of_every_format_survive_the_way_through_ours() -> None:
    traces = read_all([FIXTURE.parent]).traces
    assert len({trace.format for trace in traces}) > 10
    for trace in traces:
        again = only(read_json_bytes(to_native(trace)))
        assert (again.messages, again.events) == (trace.messages, trace.events), trace.source


def test_the_examples_of_the_documentation_are_read_as_they_stand() -> None:
    text = (PROJECT / "docs" / "trace-format.md").read_text()
    trace_text, side_text = (block.split("```")[0] for block in text.split("```json")[1:])
    assert only(read_json_bytes(trace_text.encode())).labels[0].steps == (0,)
    assert len(msgspec.json.decode(side_text, type=SideFile).traces) == 3


def test_the_documentation_names_every_format_the_readers_know() -> None:
    text = (PROJECT / "docs" / "trace-format.md").read_text()
    assert not [reader.NAME for reader in formats() if f"`{reader.NAME}`" not in text]


@pytest.mark.parametrize(
    ("change", "where", "reason"),
    [
        ({"labells": []}, "", "labells"),
        ({"pamer_lab": 2}, "", "version 2"),
        ({"labels": [{"t": 9, "target": "recall"}]}, "", "decision point 9"),
        ({"labels": [{"t": 1, "target": "recall", "steps": [1]}]}, "", "not all before it"),
        ({"labels": [{"t": 1, "target": "recall", "stepps": [0]}]}, "labels[0]", "stepps"),
        ({"events": [{"kind": "note", "before_message": 99}]}, "events[0]", "before message 99"),
        ({"messages": [{"role": "assistant", "content": "x", "toolcalls": []}]}, "messages[0]", "toolcalls"),
        ({"messages": [{"role": "narrator", "content": "x"}]}, "", "narrator"),
        ({"messages": [{"role": "assistant"}, {"role": "tool", "tool_call_id": "z"}]}, "messages[1]", "answers no open call"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(change: dict[str, Any], where: str, reason: str) -> None:
    (rejection,) = read_bytes(orjson.dumps(orjson.loads(FIXTURE.read_bytes()) | change), "n.json").rejected
    assert rejection.where.strip() == where and reason in rejection.reason


def test_several_traces_stand_on_lines_of_one_file() -> None:
    value = orjson.loads(FIXTURE.read_bytes())
    assert [trace.turns for trace in read_lines([value, value | {"question_id": "other"}])] == [2, 2]
