from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pamer_lab.blocks import violations
from pamer_lab.controller import ControllerSettings, FixedProbe, Votes
from pamer_lab.controller.recall import NOTICE
from pamer_lab.controller.request import AppendOnly, read_message
from tests.controller.world import NO, TOOLS, YES, as_bytes, controller, history, memories, turn


class SwitchProbe:
    """Votes yes or no as told, and remembers what it was asked."""

    name = "switch"

    def __init__(self, *answers: tuple[float, ...]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[int, int]] = []

    def vote(self, messages: Any, tools: Any, active_tokens: int) -> Votes:
        self.asked.append((len(messages), active_tokens))
        return Votes(self.answers.pop(0) if self.answers else NO, (0.5,) * 5)


def test_a_short_history_passes_as_it_is(tmp_path: Path) -> None:
    messages = history(3)
    returned, decision = controller(tmp_path).transform("s", messages, TOOLS)
    assert decision.action == "pass"
    assert list(returned) == messages and all(new is old for new, old in zip(returned, messages, strict=True))
    assert decision.tokens_before == decision.tokens_after > 0
    assert decision.block_states == ("active",) * 3
    assert not decision.votes and not decision.error and "1,024" in decision.reason


def test_a_majority_compresses_the_older_blocks_and_nothing_is_recalled_in_the_same_request(tmp_path: Path) -> None:
    messages = history(8)
    returned, decision = controller(tmp_path).transform("s", messages, TOOLS)
    assert decision.action == "compress" and decision.votes == (True,) * 5
    assert list(returned) == messages[:2] + messages[-4:]
    assert decision.block_states == ("summarised",) * 6 + ("active",) * 2
    assert decision.tokens_after < decision.tokens_before
    assert len(memories(tmp_path)) == 1 and len(decision.memory_ids) == 1
    assert [item.kind for item in decision.items] == ["tools", "prefix", "blocks"] and decision.items[-1].spans == ((6, 8),)
    assert sum(item.tokens for item in decision.items) == decision.tokens_after


def test_the_next_request_recalls_the_summary_between_prefix_and_all_retained_blocks(tmp_path: Path) -> None:
    pamer = controller(tmp_path, probe=SwitchProbe(YES))
    messages = history(8)
    _, compressed = pamer.transform("s", messages)
    messages += turn(8)
    returned, decision = pamer.transform("s", messages)
    assert decision.action == "recall" and decision.memory_ids == compressed.memory_ids
    assert list(returned[:2]) == messages[:2] and list(returned[3:]) == messages[-6:]
    text = returned[2]["content"]
    assert text.startswith("<recalled_memory>") and text.endswith("</recalled_memory>")
    assert NOTICE in text and "ORD-3" in text and decision.memory_ids[0] in text
    assert decision.block_states == ("recalled",) * 6 + ("active",) * 3
    assert violations([read_message(item, "") for item in returned]) == []
    assert sum(item.tokens for item in decision.items) == decision.tokens_after


def test_recalled_entries_stand_in_id_order_without_scores(tmp_path: Path) -> None:
    pamer = controller(tmp_path)
    messages = history(2)
    for number in range(2, 27):
        messages += turn(number)
        returned, decision = pamer.transform("s", messages)
    ids = list(decision.memory_ids)
    assert decision.action == "recall" and len(ids) == 3 and ids == sorted(ids)
    places = [returned[2]["content"].index(name) for name in ids]
    assert places == sorted(places)
    assert "0." not in returned[2]["content"].split("Step")[0]


def test_two_votes_of_five_are_not_enough_and_three_are(tmp_path: Path) -> None:
    thresholds = (0.5, 0.5, 0.5, 0.9, 0.9)
    logits = (1.0, 1.0, -1.0, 1.0, 1.0)
    messages = history(8)
    _, decision = controller(tmp_path, probe=FixedProbe(logits, thresholds)).transform("s", messages)
    assert decision.action == "pass" and decision.votes == (True, True, False, False, False)
    assert decision.logits == logits and decision.thresholds == thresholds and len(decision.probabilities) == 5
    _, decision = controller(tmp_path, probe=FixedProbe((1.0,) * 5, thresholds)).transform("s", messages)
    assert decision.action == "compress" and decision.vote_count == 3


def test_a_probability_at_its_threshold_is_a_vote(tmp_path: Path) -> None:
    _, decision = controller(tmp_path, probe=FixedProbe((0.0,) * 5, (0.5,) * 5)).transform("s", history(8))
    assert decision.votes == (True,) * 5


def test_the_probe_reads_prefix_and_recent_blocks_and_is_given_the_size_of_the_active_request(tmp_path: Path) -> None:
    probe = SwitchProbe(NO)
    _, decision = controller(tmp_path, probe=probe).transform("s", history(8), TOOLS)
    assert probe.asked == [(2 + 4, decision.tokens_before)]


def test_covered_blocks_are_left_out_even_where_nothing_is_recalled(tmp_path: Path) -> None:
    pamer = controller(tmp_path, probe=SwitchProbe(YES), settings=ControllerSettings(recall=False))
    messages = history(8)
    pamer.transform("s", messages)
    returned, decision = pamer.transform("s", messages + turn(8))
    assert decision.action == "pass" and decision.block_states == ("summarised",) * 6 + ("active",) * 3
    assert list(returned) == messages[:2] + messages[-4:] + turn(8)


def test_sessions_do_not_see_each_other(tmp_path: Path) -> None:
    pamer = controller(tmp_path)
    pamer.transform("one", history(8))
    _, decision = pamer.transform("two", history(3))
    assert decision.action == "pass" and decision.memories == 0


def test_two_equal_blocks_stay_two(tmp_path: Path) -> None:
    """Only the first occurrences are covered; the same words said again later are active."""
    pamer = controller(tmp_path, probe=SwitchProbe(YES), settings=ControllerSettings(recall=False))
    messages = history(8)
    pamer.transform("s", messages)
    again = messages + turn(0) + turn(1)
    returned, decision = pamer.transform("s", again)
    assert decision.block_states == ("summarised",) * 6 + ("active",) * 4
    assert list(returned) == messages[:2] + again[-8:]


def test_an_incomplete_old_block_is_never_compressed(tmp_path: Path) -> None:
    messages = history(4)
    lost = [{"role": "assistant", "content": "", "tool_calls": [{"id": "x", "function": {"name": "read", "arguments": "{}"}}]}]
    messages += lost
    for number in range(4, 9):
        messages += turn(number)
    returned, decision = controller(tmp_path).transform("s", messages)
    assert decision.action == "compress" and decision.block_states[4] == "active"
    assert list(returned) == messages[:2] + lost + messages[-4:]


def test_a_history_that_was_edited_is_read_anew_and_the_edited_block_is_active(tmp_path: Path) -> None:
    pamer = controller(tmp_path, probe=SwitchProbe(YES))
    messages = history(8)
    pamer.transform("s", messages)
    messages[3]["content"] = "something else entirely"
    returned, decision = pamer.transform("s", messages)
    assert decision.block_states[0] == "active" and messages[3] in returned


def test_a_history_that_only_grows_is_read_like_any_other(tmp_path: Path) -> None:
    plain, growing = history(1), AppendOnly(history(1))
    one, two = controller(tmp_path / "one"), controller(tmp_path / "two")
    for number in range(1, 9):
        plain += turn(number)
        growing += turn(number)
        (sent, told), (sent_too, told_too) = one.transform("s", plain, TOOLS), two.transform("s", growing, TOOLS)
        assert list(sent) == list(sent_too) and (told.action, told.block_states) == (told_too.action, told_too.block_states)
    assert {told.action, one.transform("s", plain, TOOLS)[1].action} <= {"compress", "recall"}
    other = AppendOnly(growing[:4])
    assert len(two.transform("s", other, TOOLS)[1].block_states) == 1, "another list is compared, whatever it promises"


def test_memory_survives_the_process(tmp_path: Path) -> None:
    messages = history(8)
    controller(tmp_path).transform("s", messages)
    _, decision = controller(tmp_path, probe=SwitchProbe()).transform("s", messages + turn(8))
    assert decision.action == "recall" and decision.memories == 1


def test_the_callers_messages_are_never_changed(tmp_path: Path) -> None:
    pamer = controller(tmp_path)
    messages = history(12)
    before = as_bytes(messages)
    for end in range(2, len(messages) + 1, 2):
        pamer.transform("s", messages[:end], TOOLS)
    assert as_bytes(messages) == before


def test_settings_are_the_papers_and_an_impossible_vote_is_refused() -> None:
    settings = ControllerSettings()
    assert (settings.retained_blocks, settings.vote, settings.heads, settings.minimum_candidate_tokens) == (2, 3, 5, 1024)
    assert (settings.summary_source_characters, settings.summary_tokens, settings.top_k) == (40_000, 1_024, 3)
    assert settings.query_characters == 30_000
    with pytest.raises(ValidationError):
        ControllerSettings(vote=6)
    with pytest.raises(ValidationError):
        ControllerSettings(votes=3)  # type: ignore[call-arg]
