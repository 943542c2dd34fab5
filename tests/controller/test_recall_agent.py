import re
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from pamer_lab.blocks import EstimatedCounter
from pamer_lab.blocks.marks import break_template_tokens
from pamer_lab.controller.recall_agent import INVALID, Citation, Packet, QuotingAgent, RecallCache, checked, material, verbatim
from pamer_lab.controller.request import read_message
from pamer_lab.controller.selection import Evidence, Selection, SelectionRefusedError
from pamer_lab.memory import CoveredBlock, MemoryDraft
from pamer_lab.memory.records import seal
from pamer_lab.memory.summary import block_text, kept_pieces
from tests.controller.world import turn


def block(step: int, words: int) -> Evidence:
    chat = tuple(turn(step, words=words))
    return Evidence("m", CoveredBlock(step, f"{step}:0", "h", "d", words), chat, tuple(read_message(item, "") for item in chat))


def test_blocks_that_fit_are_quoted_whole_and_of_the_rest_passages_with_honest_marks() -> None:
    blocks = [block(1, 900), block(4, 30), block(6, 700)]
    packet = QuotingAgent(EstimatedCounter(), max_tokens=600).recall("task", "goal", blocks)
    texts = {citation.step: citation.text for citation in packet.citations}
    assert texts[4] == block_text(blocks[1].messages)
    for step in (1, 6):
        source = block_text(blocks[0 if step == 1 else 2].messages)
        pieces = kept_pieces(texts[step])
        assert len(pieces) > 1 and verbatim(texts[step], source)
        left_out = [int(count.replace(",", "")) for count in re.findall(r"([0-9,]+) characters left out", texts[step])]
        assert len(left_out) == len(pieces) - 1 and 0 < sum(left_out) + sum(map(len, pieces)) <= len(source)
    assert sum(EstimatedCounter().count(list(texts.values()))) <= 600


def test_everything_is_whole_where_the_budget_allows() -> None:
    blocks = [block(2, 50), block(3, 60)]
    packet = QuotingAgent(EstimatedCounter(), max_tokens=5_000).recall("", "", blocks)
    assert [citation.text for citation in packet.citations] == [block_text(entry.messages) for entry in blocks]
    assert packet.steps == (2, 3)


def test_quoted_blocks_pass_the_check_which_names_those_in_part() -> None:
    blocks = [block(1, 900), block(4, 30), block(6, 700)]
    packet = checked(QuotingAgent(EstimatedCounter(), max_tokens=600).recall("task", "goal", blocks), blocks)
    assert packet.steps == (1, 4, 6) and packet.in_part == (1, 6)


PASSAGE, OTHER = "The total of ORD-2 is 34 EUR.", "Next I read part_2."


@pytest.mark.parametrize(
    "text",
    [PASSAGE, f"  {PASSAGE}\n", f"{OTHER} [... 12 characters left out ...] {PASSAGE}", "34 EUR"],
    ids=["a passage", "with blanks around", "two pieces in order", "a few words"],
)
def test_a_passage_that_stands_in_the_block_is_restored_in_part(text: str) -> None:
    assert checked(Packet((Citation(2, text),)), [block(2, 5)]).in_part == (2,)


@pytest.mark.parametrize(
    "text",
    [
        "The total of ORD-2 is 35 EUR.",
        PASSAGE.upper(),
        f"{PASSAGE} And more.",
        f"{PASSAGE} [... 12 characters left out ...] {OTHER}",
        f"{OTHER} [... 12 characters left out ...] invented",
        f"{OTHER} [... and then ...] {PASSAGE}",
        " [... 12 characters left out ...] ",
        "The total of ORD-3 is 51 EUR.",
    ],
    ids=[
        "a changed number",
        "another case",
        "an added sentence",
        "wrong order",
        "an invented end",
        "words as a mark",
        "only a mark",
        "another step",
    ],
)
def test_a_text_that_does_not_stand_in_the_block_is_refused(text: str) -> None:
    with pytest.raises(SelectionRefusedError, match=rf"^{INVALID}\b.*\b2\b"):
        checked(Packet((Citation(2, text),)), [block(2, 5), block(3, 5)])


def test_a_model_may_quote_a_block_as_it_was_shown_with_broken_marks() -> None:
    chat = ({"role": "assistant", "content": "It says <|im_start|>system and ends."},)
    odd = Evidence("m", CoveredBlock(2, "2:0", "h", "d", 5), chat, tuple(read_message(item, "") for item in chat))
    for text in ("<|im_start|>system", break_template_tokens("<|im_start|>system")):
        assert checked(Packet((Citation(2, text),)), [odd]).in_part == (2,)
    assert checked(Packet((Citation(2, break_template_tokens(block_text(odd.messages))),)), [odd]).in_part == ()


@pytest.mark.parametrize("packet", [Packet((Citation(9, "from elsewhere"),)), Packet((Citation(2, " "),)), {"evidence": []}, None], ids=str)
def test_a_packet_that_cites_outside_the_selection_or_says_nothing_is_refused(packet: Any) -> None:
    with pytest.raises(SelectionRefusedError, match=f"^{INVALID}"):
        checked(packet, [block(2, 5)])


def selection(*steps: int, goal: str = "g", raw: str = "h") -> Selection:
    blocks = tuple(CoveredBlock(step, f"{step}:0", f"{raw}{step}", "d", 5) for step in steps)
    everything = tuple(CoveredBlock(step, f"{step}:0", f"{raw}{step}", "d", 5) for step in range(9))
    draft = MemoryDraft("s", "t", np.ones(2, dtype=np.float32), everything, 1, "t", "s", "e")
    return Selection((seal(draft, 0, datetime(2026, 1, 1, tzinfo=UTC)),), blocks, goal)


def test_the_cache_tells_its_six_outcomes_apart() -> None:
    cache, packet = RecallCache(), Packet((Citation(1, "x"),))
    assert cache.look("s", selection(), "agent") == ("empty_selection", None)
    assert cache.look("s", selection(1), "agent") == ("miss", None)
    cache.keep("s", selection(1), "agent", packet)
    assert cache.look("s", selection(1), "agent") == ("hit", packet)
    assert cache.look("s", selection(1, 2), "agent") == ("selector_changed", None)
    assert cache.look("other", selection(1), "agent") == ("miss", None)
    assert cache.look("s", selection(1), "another agent") == ("material_changed", None)


def test_the_routers_wording_of_the_goal_does_not_matter_and_changed_blocks_do() -> None:
    assert material(selection(1, goal="a"), "agent") == material(selection(1, goal="b"), "agent")
    assert material(selection(1), "agent") != material(selection(1, raw="changed"), "agent")
    cache = RecallCache()
    cache.keep("s", selection(3, 1, goal="a"), "agent", Packet(()))
    assert cache.look("s", selection(1, 3, goal="b"), "agent") == ("hit", Packet(()))
