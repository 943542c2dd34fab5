"""Identifiers, their uses, and where they were when they were used: a trace made by hand."""

import json

import pytest
from msgspec.structs import replace

from pamer_lab.decisions import Item
from pamer_lab.runs.evidence import fates, message_text, survival_rates, uses
from pamer_lab.runs.identifiers import holds, identifiers
from pamer_lab.trajectory.values import Message, ToolCall, Trace
from tests.runs.making import call, make_trace, timeline_of, turns_of


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see https://a.org/x?y=1, or (http://b.com/z).", {"https://a.org/x?y=1": "url", "http://b.com/z": "url"}),
        ("open /usr/lib/a.so and ./run.sh or src/main/app.py", {"/usr/lib/a.so": "path", "./run.sh": "path", "src/main/app.py": "path"}),
        ("edit config.toml now", {"config.toml": "path"}),
        ("order #W7678072 of mia_li_3668", {"#W7678072": "id", "mia_li_3668": "id"}),
        ("mail ann@example.org", {"ann@example.org": "id"}),
        ("born 1907, 12,345 copies, page 12", {"1907": "number", "12,345": "number"}),
        ("The editor Tom Rice met Ada King Lovelace.", {"Tom Rice": "name", "Ada King Lovelace": "name"}),
        ('called "blue lantern" here', {"blue lantern": "quoted"}),
        ("v2.0 is ok at t1", {}),
    ],
)
def test_identifiers_are_found_by_kind(text: str, found: dict[str, str]) -> None:
    assert identifiers(text) == found


def test_a_part_of_a_longer_word_is_not_a_match() -> None:
    assert holds("in 1907.", "1907") and not holds("in 21907", "1907") and holds("21907 and 1907", "1907")
    assert holds("(D0012)", "D0012") and not holds("AD0012", "D0012")


def test_arguments_are_read_without_their_escapes() -> None:
    said = Message("assistant", "", (ToolCall("c1", "bash", json.dumps({"cmd": "ls\nuser_42x\t/a/b", "n": [12345, {"k": None}]})),))
    assert {"user_42x": "id", "/a/b": "path", "12345": "number"}.items() <= identifiers(message_text(said)).items()
    assert message_text(Message("assistant", "hi", (ToolCall("c1", "bash", "not {json"),))) == "hi\nnot {json"


def hand_made() -> Trace:
    return make_trace(
        [
            call(0, "museum", "The museum was founded by Tom Rice in 1907, file notes/rice.txt."),
            call(1, "magazine", "Nothing about document D4711 here."),
            call(2, "editor", "Unrelated text."),
            call(3, "Tom Rice biography", "A page about him."),
            call(4, "D4711", "It is lost."),
            [Message("assistant", "The answer is Tom Rice, 1907; I also think of Zed Omega and 1999.")],
        ],
        task="Who founded the museum, in 1850 or later?",
    )


def test_only_what_a_tool_result_showed_first_counts_as_evidence() -> None:
    found = [(use.value, use.t, use.seen_in) for use in uses(timeline_of(hand_made()))]
    assert found == [("Tom Rice", 3, 0), ("D4711", 4, 1), ("Tom Rice", 5, 0), ("1907", 5, 0)]


def test_an_agent_that_acts_in_text_gets_its_results_as_user_messages() -> None:
    said = [
        Message("assistant", "ls"),
        Message("user", "src/app.py and D4711"),
        Message("assistant", "cat src/app.py"),
        Message("user", "ok"),
    ]
    trace = make_trace([said[:2], said[2:]])
    assert [(use.value, use.t, use.seen_in) for use in uses(timeline_of(trace))] == [("src/app.py", 1, 0)]
    with_tools = make_trace([call(0, "museum", "Nothing."), said[:2], said[2:]])
    assert uses(timeline_of(with_tools)) == [], "where tools answer, a user's words are the user's"


def test_a_result_that_answers_no_recorded_call_is_a_result_beside_others() -> None:
    late = [Message("assistant", "wait"), Message("user", "order D4711 arrived", result=True)]
    trace = make_trace([call(0, "museum", "Nothing."), late, [Message("assistant", "cancel D4711")]])
    assert [(use.value, use.t, use.seen_in) for use in uses(timeline_of(trace))] == [("D4711", 2, 1)]


def test_an_identifier_of_the_task_or_of_the_agent_itself_is_not_evidence() -> None:
    trace = make_trace(
        [call(0, "Zed Omega 1850", "Zed Omega lived in 1850."), [Message("assistant", "Zed Omega in 1850")]], task="In 1850?"
    )
    assert uses(timeline_of(trace)) == []


def test_evidence_is_active_summarised_or_gone_by_policy() -> None:
    timeline = timeline_of(hand_made())
    base = fates(timeline, turns_of(hand_made(), "base"))
    assert {fate.survival for fate in base} == {"active"}
    assert survival_rates(base) == {"uses": 4, "active": 4, "restored": 0, "summary": 0, "memory": 0, "gone": 0, "in_context_pct": 100.0}
    window = fates(timeline, turns_of(hand_made(), "sliding-window:1"))
    # Tom Rice stands again in the query of block 3, which is gone as well when block 5 uses it.
    assert [fate.survival for fate in window] == ["gone", "gone", "gone", "gone"]
    summary = fates(timeline, turns_of(hand_made(), "periodic-summary:2"))
    assert [(fate.survival, fate.where) for fate in summary][:1] == [("summary", "steps 0-1")]
    assert survival_rates([])["in_context_pct"] is None


def test_restored_and_stored_evidence_is_told_apart() -> None:
    timeline, turns = timeline_of(hand_made()), turns_of(hand_made(), "sliding-window:1")
    turns[3] = replace(turns[3], stored=((0, 2),))
    turns[4] = replace(turns[4], items=(*turns[4].items, Item("evidence", 9, ((1, 2),), "m1", "step 1: D4711")))
    turns[5] = replace(turns[5], items=(*turns[5].items, Item("recalled", 9, ((0, 2),), "m1", "Tom Rice founded it")), stored=((0, 2),))
    assert [(fate.use.value, fate.survival) for fate in fates(timeline, turns)] == [
        ("Tom Rice", "memory"),
        ("D4711", "restored"),
        ("Tom Rice", "summary"),
        ("1907", "memory"),
    ]


def test_a_search_that_reads_no_further_says_at_which_turn_it_ended() -> None:
    line = timeline_of(hand_made())
    complete, cut = uses(line), uses(line, 0)
    assert complete.stopped is None and complete.sentence == ""
    assert cut.stopped is not None and str(cut.stopped) in cut.sentence
    assert len(cut) < len(complete) and list(cut) == complete[: len(cut)]
