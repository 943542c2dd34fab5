"""Hindsight labels of traces made by hand, with the right label of every point written down."""

import pytest

from pamer_lab.errors import InputError
from pamer_lab.runs import hindsight
from pamer_lab.runs.evidence import Use, uses
from pamer_lab.runs.hindsight import Rule, counted_uses, covering, hindsight_labels, labelled
from pamer_lab.trajectory.values import Label, Message, ToolCall, Trace
from tests.runs.making import timeline_of

LONG = Rule(horizon=2, minimum_tokens=0)


def trace_of(*blocks: tuple[str, str]) -> Trace:
    """One block for each pair of what the agent says and what the tool answers."""
    messages = [Message("system", "You act."), Message("user", "Do it.")]
    for number, (said, result) in enumerate(blocks):
        messages.append(Message("assistant", said, (ToolCall(f"c{number}", "look", "{}"),)))
        messages.append(Message("tool", result, tool_call_id=f"c{number}"))
    return Trace("t-hand", "q", "native", tuple(messages))


def found(trace: Trace, rule: Rule = LONG) -> dict[str, dict[int, object]]:
    """Steps of recall and values of compression by decision point."""
    labels = hindsight_labels(timeline_of(trace), rule)
    assert {label.origin for label in labels} <= {rule.origin}
    return {
        "recall": {label.t: list(label.steps) for label in labels if label.target == "recall"},
        "compression": {label.t: label.value for label in labels if label.target == "compression"},
    }


def test_evidence_that_only_older_blocks_hold_is_recalled_by_its_step() -> None:
    trace = trace_of(("start", "order W7678072 was found"), ("wait", "ok"), ("wait", "ok"), ("cancel W7678072", "done"), ("bye", "ok"))
    labels = found(trace)
    # At 3 the blocks 1 and 2 are recent and block 0 is old. Block 3 says the order again, so at 4 nothing is used.
    assert labels["recall"] == {3: [0], 4: []}
    assert labels["compression"] == {3: False}


def test_evidence_in_the_recent_window_needs_no_recall() -> None:
    trace = trace_of(("start", "ok"), ("look", "ok"), ("find", "order W7678072"), ("cancel W7678072", "done"), ("end", "ok"))
    assert found(trace) == {"recall": {3: [], 4: []}, "compression": {3: True}}


def test_a_repeated_read_moves_the_evidence_to_where_it_was_shown_last() -> None:
    again = trace_of(("a", "id W7678072"), ("b", "ok"), ("c", "ok"), ("d", "id W7678072"), ("use W7678072", "ok"), ("end", "ok"))
    labels = found(again)
    assert labels["recall"] == {3: [], 4: [], 5: []}
    assert labels["compression"] == {3: True, 4: True}  # the old block was not needed: the tool showed it again


def test_ends_of_traces_have_no_compression_label() -> None:
    trace = trace_of(*[("go on", "ok") for _ in range(8)])
    assert sorted(found(trace, Rule(horizon=3, minimum_tokens=0))["compression"]) == [3, 4, 5]
    assert sorted(found(trace, Rule(horizon=8, minimum_tokens=0))["compression"]) == []


def test_where_the_search_for_evidence_ends_the_labels_end(monkeypatch: pytest.MonkeyPatch) -> None:
    read = [(f"open C{number}00", f"see C{number + 1}00") for number in range(5)]
    trace = trace_of(*[("wait", "see W7678072 " + "word " * 100)], *read, ("cancel W7678072", "done"), ("bye", "ok"), ("bye", "ok"))
    assert found(trace)["recall"][6] == [0]
    monkeypatch.setattr(hindsight, "uses", lambda line: uses(line, 400))
    assert uses(timeline_of(trace), 400).stopped == 6
    cut = found(trace)
    assert sorted(cut["recall"]) == [3, 4, 5] and cut["compression"] == {3: True, 4: True}


def test_below_the_minimum_size_compression_is_not_asked() -> None:
    trace = trace_of(*[("go on", "word " * 40) for _ in range(8)])
    sizes = timeline_of(trace).block_tokens
    asked = found(trace, Rule(horizon=2, minimum_tokens=sizes[0] + sizes[1]))["compression"]
    assert sorted(asked) == [4, 5, 6]


def test_a_use_within_the_horizon_makes_compression_wrong_and_a_later_one_does_not() -> None:
    trace = trace_of(("a", "file src/deep/core.py"), *[("wait", "ok") for _ in range(5)], ("open src/deep/core.py", "ok"), ("end", "ok"))
    assert found(trace, Rule(horizon=3, minimum_tokens=0))["compression"] == {3: True, 4: False, 5: False}
    assert found(trace, Rule(horizon=2, minimum_tokens=0))["compression"] == {3: True, 4: True, 5: False, 6: False}


def test_common_words_years_and_background_are_not_evidence() -> None:
    quoted = trace_of(("a", '{"status": "open"}'), ("b", "ok"), ("c", "ok"), ('the "status" of it', "ok"), ("e", "ok"))
    assert found(quoted)["recall"] == {3: [], 4: []}
    year = trace_of(("a", "it was 1987 then"), ("b", "ok"), ("c", "ok"), ("in 1987 again", "ok"), ("e", "ok"))
    assert found(year)["recall"] == {3: [], 4: []}
    folder = [("ls", "/home/me/project"), ("ls", "/home/me/project"), ("ls", "/home/me/project"), ("a", "ok"), ("b", "ok")]
    background = trace_of(*folder, ("cd /home/me/project", "ok"), ("e", "ok"))
    assert found(background)["recall"][5] == []


def test_a_quoted_path_is_the_path() -> None:
    trace = trace_of(("a", 'see "src/deep/core.py"'), ("b", "ok"), ("c", "ok"), ("open src/deep/core.py", "ok"), ("e", "ok"))
    assert found(trace)["recall"][3] == [0]


@pytest.mark.parametrize(
    ("shown", "used", "seen"),
    [
        ("order W76780721", "cancel W7678072", False),
        ("user_1234_old", "user_1234", False),
        ("total 12345", "use 1234", False),
        ("src/deep/core.py", "open core.py", False),
        ("src/deep/core.py:120: error", "open src/deep/core.py", True),
        ("größe/übung.txt", "open größe/übung.txt", True),
        ("数据/报告2024.csv 已找到", "打开 数据/报告2024.csv", True),
        (r"see C:\Users\me\core.py", r"open C:\Users\me\core.py", True),
        (r"see C:\Users\me\project", r"cd C:\Users\me\project", False),
        ('file "my docs/report final.txt"', 'open "my docs/report final.txt"', True),
        (r'{"out": "one\nsrc/core.py"}', "open src/core.py", False),
        ('["AQLBTL"]', "cancel AQLBTL", False),
        ('["red wool coat"]', "buy red wool coat", False),
    ],
)
def test_an_identifier_is_used_where_it_is_named_in_full(shown: str, used: str, seen: bool) -> None:
    """Those that are not seen are in the list of docs/hindsight.md."""
    trace = trace_of(("a", shown), ("b", "ok"), ("c", "ok"), (used, "ok"), ("e", "ok"))
    assert found(trace)["recall"][3] == ([0] if seen else [])


def test_every_result_of_parallel_calls_is_evidence_of_its_block() -> None:
    trace = trace_of(("a", "order W7678072"), ("b", "ok"), ("c", "ok"), ("cancel W7678072 and X9912345", "ok"), ("e", "ok"))
    messages = list(trace.messages)
    messages[2] = Message("assistant", "a", (ToolCall("c0", "look", "{}"), ToolCall("more", "look", "{}")))
    messages.insert(4, Message("tool", "order X9912345", tool_call_id="more"))
    parallel = Trace("t-hand", "q", "native", tuple(messages))
    assert found(parallel)["recall"][3] == [0]
    assert {use.value for use in counted_uses(timeline_of(parallel)) if use.blocks == (0,)} == {"W7678072", "X9912345"}


def test_what_the_agent_named_first_or_was_given_is_no_evidence() -> None:
    own = trace_of(("try order W7678072", "W7678072 is there"), ("b", "ok"), ("c", "ok"), ("cancel W7678072", "ok"), ("e", "ok"))
    assert found(own)["recall"] == {3: [], 4: []}


def test_an_incomplete_block_stays_visible() -> None:
    trace = trace_of(("a", "order W7678072"), ("b", "ok"), ("c", "ok"), ("cancel W7678072", "ok"), ("e", "ok"))
    messages = list(trace.messages)
    messages[2] = Message("assistant", "a", (ToolCall("c0", "look", "{}"), ToolCall("lost", "look", "{}")))
    open_call = Trace("t-hand", "q", "native", tuple(messages))
    assert 3 not in found(open_call)["recall"]  # block 0 is pinned, so nothing is old at 3


def test_the_steps_are_a_small_cover_with_the_newest_of_equals() -> None:
    def use(value: str, *blocks: int) -> Use:
        return Use(value, "id", 9, blocks[0], blocks)

    assert covering([use("a", 0, 4), use("b", 4), use("c", 1, 2)]) == (2, 4)
    assert covering([]) == ()


def test_new_labels_replace_only_those_by_hindsight() -> None:
    trace = trace_of(("a", "b"))
    first = labelled(trace, [Label(0, "recall", True, "native"), Label(0, "recall", False, "hindsight")])
    second = labelled(first, [Label(0, "recall", True, "hindsight")])
    assert [(label.origin, label.value) for label in second.labels] == [("native", True), ("hindsight", True)]


@pytest.mark.parametrize("fault", [{"horizon": 0}, {"retained": -1}, {"minimum_tokens": -1}])
def test_a_rule_that_makes_no_sense_is_refused(fault: dict[str, int]) -> None:
    with pytest.raises(InputError):
        Rule(**fault)


def test_the_origin_of_a_label_says_by_which_numbers_it_was_made() -> None:
    assert Rule().origin == "hindsight" and LONG.origin == "hindsight:horizon=2:minimum_tokens=0"
    for rule in (Rule(), LONG, Rule(retained=0)):
        assert Rule.of(Label(3, "recall", origin=rule.origin)) == rule
    for named in ("horizon=many:window=3", "horizon=0", "retained=12345678901"):
        assert Rule.of(Label(3, "recall", origin=f"hindsight:{named}")) == Rule()
    trace = trace_of(*[("wait", "ok")] * 6)
    again = labelled(labelled(trace, hindsight_labels(timeline_of(trace), LONG)), hindsight_labels(timeline_of(trace)))
    assert {label.origin for label in again.labels} == {"hindsight"}
