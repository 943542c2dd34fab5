"""What a source recorded about its own context, beside what its file has."""

from msgspec.structs import replace

from pamer_lab.figures.recorded import MOST_LABELS, words
from pamer_lab.figures.runs import context
from pamer_lab.runs.engine import replay
from pamer_lab.runs.recorded import compactions, not_in_file, recorded_context
from pamer_lab.trajectory.values import Event, Message, Trace, Usage
from pamer_lab.workspace import Workspace
from tests.runs.making import long_trace

SIZES = (40_131, 158_000, 55_000)


def used(trace: Trace, sizes: tuple[int, ...]) -> Trace:
    """The trace with a recorded request size for each turn."""
    left = iter(sizes)
    messages = tuple(replace(m, usage=Usage(next(left), 5)) if m.role == "assistant" else m for m in trace.messages)
    return replace(trace, messages=messages)


def compacted() -> Trace:
    trace = long_trace(3)
    last = [number for number, message in enumerate(trace.messages) if message.role == "assistant"][-1]
    return used(replace(trace, events=(Event("compaction", last),)), SIZES)


def test_sizes_come_turn_by_turn_and_a_compaction_takes_those_around_it() -> None:
    assert recorded_context(compacted()) == list(SIZES)
    assert compactions(compacted()) == [{"t": 2, "kind": "compaction", "tokens_before": 158_000, "tokens_after": 55_000, "sizes": "usage"}]
    own = replace(compacted(), events=(replace(compacted().events[0], tokens_before=160_000, tokens_after=50_000),))
    assert compactions(own)[0] | {"kind": ""} == {"t": 2, "kind": "", "tokens_before": 160_000, "tokens_after": 50_000, "sizes": "event"}
    assert set(recorded_context(long_trace(3))) == {None}


def test_what_the_file_lacks_is_named() -> None:
    trace = long_trace(3)
    bare = replace(trace, tools=(), messages=tuple(m for m in trace.messages if m.role != "system"))
    assert not_in_file(bare) == ["system prompt", "tool descriptions"]
    talk = replace(bare, messages=(Message("system", "Be kind."), Message("user", "hi"), Message("assistant", "hello")))
    assert not_in_file(talk) == []


def test_the_chart_has_the_sources_line_and_labels_its_compaction(workspace: Workspace) -> None:
    trace = compacted()
    runs = [replay(trace, "base", workspace)]
    figure = context(runs, recorded=recorded_context(trace), compactions=compactions(trace))
    line = next(entry for entry in figure.data if entry.y is not None and list(entry.y) == list(SIZES))
    assert line.name not in [run.head.policy for run in runs]
    assert [note.text for note in figure.layout.annotations] == [words(compactions(trace)[0])]
    many = compactions(trace) * (MOST_LABELS + 1)
    assert not context(runs, recorded=recorded_context(trace), compactions=many).layout.annotations
