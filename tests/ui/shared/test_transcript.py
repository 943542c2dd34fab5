"""A trace as its reader sees it."""

from hypothesis import given
from hypothesis import strategies as st

from pamer_lab.bench.patterns import MOST, growth
from pamer_lab.trajectory import Event, Label, Message, ToolCall, Trace
from pamer_lab.ui.shared.transcript import PREFIX, Transcript


def trace(messages: list[Message], **more: object) -> Trace:
    return Trace(trace_id="t", question_id="t", format="test", messages=tuple(messages), **more)  # type: ignore[arg-type]


def transcript(messages: list[Message], **more: object) -> Transcript:
    return Transcript(trace(messages, **more), [1] * len(messages), 5)


def tool_run() -> list[Message]:
    calls = (ToolCall("a", "search", '{"q": 1}'), ToolCall("b", "read", '{"f": 2}'))
    return [
        Message("system", "rules"),
        Message("user", "task"),
        Message("assistant", "look", calls, thinking="hmm"),
        Message("tool", "found", tool_call_id="b", name="read"),
        Message("tool", "seen", tool_call_id="a", name="search", error=True),
        Message("user", "go on"),
        Message("assistant", "done", (ToolCall("c", "stop"),)),
    ]


def test_results_stand_after_their_calls_whatever_their_order() -> None:
    kinds = [(piece.kind, piece.name, piece.text) for piece in transcript(tool_run()).bodies(0)]
    assert kinds == [
        ("thinking", "", "hmm"),
        ("text", "", "look"),
        ("call", "search", '{"q": 1}'),
        ("result", "search", "seen"),
        ("call", "read", '{"f": 2}'),
        ("result", "read", "found"),
        ("text", "", "go on"),
    ]


def test_context_before_a_turn_holds_tools_and_prefix() -> None:
    assert transcript(tool_run()).before == [7, 11]
    assert transcript(tool_run()).sizes == [4, 1]


def test_marks_tell_labels_events_failures_and_missing_results() -> None:
    events = (Event("compaction", 6, "summary"), Event("memory_read", 99, "asked"))
    made = transcript(tool_run(), labels=(Label(0, "recall"),), events=events)
    assert made.marks(0) == "▲ ✕"
    assert made.marks(1) == "▼ ▲ …" and made.marks(1, edits=False) == "▲ …", "a chart that draws compactions marks them once"
    assert [piece.text for piece in made.bodies(1)] == ["summary", "asked", "done", "{}"]


def test_search_sees_thinking_arguments_tool_names_and_the_prefix() -> None:
    made = transcript(tool_run())
    assert [(hit.block, hit.body) for hit in made.find("HMM", 10)] == [(0, "thinking-2-0")]
    assert [hit.body for hit in made.find('"f"', 10)] == ["call-2-1"]
    assert [(hit.body, hit.start, hit.end) for hit in made.find("stop", 10)] == [("call-6-0", 0, 0)]
    assert [hit.block for hit in made.find("rules", 10)] == [PREFIX]
    assert made.find("", 10) == []
    assert len(made.find("e", 3)) == 3


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    messages = [Message("user", "task")]
    for number in range(draw(st.integers(1, 30))):
        calls = tuple(ToolCall(f"{number}-{k}", "tool") for k in range(draw(st.integers(0, 4))))
        messages.append(Message("assistant", draw(st.sampled_from(["", "words"])), calls))
        messages += [Message("tool", "r", tool_call_id=call.id) for call in calls if draw(st.booleans())]
        messages += [Message("user", "u")] * draw(st.integers(0, 2))
    return messages


@given(conversations(), st.integers(1, 12))
def test_pages_cover_every_block_once_and_stay_within_the_limit(messages: list[Message], limit: int) -> None:
    made = transcript(messages)
    assert made.counts == [len(made.bodies(block)) for block in range(len(made.sizes))]
    first, seen = 0, []
    while first < len(made.sizes):
        page = made.window(first, limit)
        assert len(page) == 1 or sum(made.counts[block] for block in page) <= limit
        if first:
            before = made.window_before(first, limit)
            assert before < first and (first - before == 1 or sum(made.counts[before:first]) <= limit)
        seen += list(page)
        first = page.stop
    assert seen == list(range(len(made.sizes)))


@given(st.text("aAbİςΣσß ", max_size=12), st.text("aAbBζΖ ", min_size=1, max_size=3))
def test_a_hit_is_where_the_words_are_whatever_their_case(text: str, words: str) -> None:
    made = transcript([Message("user", "q"), Message("assistant", text + words.swapcase())])
    (said,) = [piece for piece in made.bodies(0) if piece.kind == "text"]
    hits = [hit for hit in made.find(words, 50) if hit.body == said.key]
    assert hits and all(hit.end - hit.start == len(words) and hit.end <= len(said.text) for hit in hits)


def test_searching_a_trace_takes_linear_time_for_the_worst_words() -> None:
    def search(text: str) -> None:
        words = "a" * (len(text) // 2)
        for sought in (f"{words}b", f"b{words}", f"{words}b{words[1:]}"):
            assert transcript([Message("user", "q"), Message("assistant", text)]).find(sought, 50) == []

    assert growth(search, "a" * 4_000, "a" * 64_000) <= MOST
