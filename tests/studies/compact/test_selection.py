"""Selectors against brute force, the planted block, caps by whole blocks, and that nothing of the future is seen."""

import re
from collections import Counter
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from pamer_lab.blocks.render import query_text
from pamer_lab.errors import InputError
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.studies.compact.points import DecisionPoint, decision_point
from pamer_lab.studies.compact.registry import all_conditions, choose, condition, parse_caps
from pamer_lab.studies.compact.retrieved import ByChance, ByEmbedding, ByRecency, Lexical, block_text, within_cap, words
from pamer_lab.studies.compact.values import Evidence
from pamer_lab.studies.decisions import lot
from pamer_lab.trajectory.values import Label, Message, Trace
from tests.studies.compact.making import PLANTED, planted, resources, sized, trace

WORDS = ["amber", "birch", "cedar", "dune", "elm", "fern", "gorse", "heath", "iris", "jade"]


def random_trace(seed: int, blocks: int = 9) -> Trace:
    rng = np.random.default_rng(seed)
    return trace([" ".join(rng.choice(WORDS, size=rng.integers(1, 8))) for _ in range(blocks)], name=f"t-{seed}")


def words_of(point: DecisionPoint, number: int) -> Counter[str]:
    text = " ".join(message.content for message in point.block(number))
    return Counter(text.lower().split()) + Counter(["look"])


@pytest.mark.parametrize("seed", range(6))
def test_selective_raw_ranks_as_a_table_of_all_word_frequencies_does(seed: int) -> None:
    point = decision_point(random_trace(seed), 9)
    vocabulary = sorted(set(WORDS) | {"look"})
    table = np.array([[words_of(point, number)[word] for word in vocabulary] for number in range(9)], dtype=float)
    cosine = (table @ table[8]) / (np.linalg.norm(table, axis=1) * np.linalg.norm(table[8]))
    expected = sorted(range(7), key=lambda number: (-round(cosine[number], 12), -number))
    found = Lexical().rank(point, resources())
    assert [one.block for one in sorted(found, key=lambda one: (-round(one.score, 12), -one.block))] == expected
    assert [one.score for one in found] == pytest.approx([cosine[one.block] for one in found])


@pytest.mark.parametrize("seed", range(3))
def test_embedding_recency_and_chance_rank_as_brute_force_does(seed: int) -> None:
    point = decision_point(random_trace(seed), 9)
    query = query_text(point.task, [*point.block(7), *point.block(8)])
    rows = HashingEmbedder().embed([query, *(block_text(point, number) for number in range(7))])
    found = ByEmbedding().rank(point, resources())
    assert {one.block: one.score for one in found} == pytest.approx({number: float(rows[0] @ rows[number + 1]) for number in range(7)})
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert [one.block for one in ByRecency().rank(point, resources())] == [6, 5, 4, 3, 2, 1, 0]
    lots = {number: lot(0, point.trace_id, 9, number) for number in range(7)}
    assert [one.block for one in ByChance().rank(point, resources())] == sorted(lots, key=lambda number: -lots[number])


def test_random_picks_every_old_block_about_equally_often() -> None:
    taken: Counter[int] = Counter()
    for seed in range(300):
        point = decision_point(replace_id(random_trace(0), f"t-{seed}"), 9)
        taken.update(one.block for one in ByChance().rank(point, resources())[:3])
    assert set(taken) == set(range(7))
    assert max(taken.values()) < 1.4 * min(taken.values())


def replace_id(found: Trace, name: str) -> Trace:
    return msgspec.structs.replace(found, trace_id=name)


def test_the_planted_block_is_found_by_words_and_by_meaning_and_missed_by_recency() -> None:
    point = decision_point(planted(), 8)
    chosen = {
        name: [one.block for one in condition(name).read(point, resources()).evidence] for name in ("raw-top1", "raw-top3", "recency-top3")
    }
    assert chosen["raw-top1"] == [PLANTED]
    assert PLANTED in chosen["raw-top3"]
    assert chosen["recency-top3"] == [5, 4, 3]


@pytest.mark.weights
def test_the_planted_block_is_found_by_the_embedded_model() -> None:
    from pamer_lab.models.embedder import load_embedder
    from pamer_lab.models.profiles import PROFILES

    point = decision_point(planted(), 8)
    tools = replace(resources(), embed=load_embedder(PROFILES["embedded"], "cpu").embed)
    assert PLANTED in [one.block for one in condition("embedding-top3").read(point, tools).evidence]


def test_evidence_never_holds_recent_blocks_and_stands_in_recorded_order() -> None:
    for seed in range(4):
        for t in range(1, 10):
            point = decision_point(random_trace(seed), t)
            for one in all_conditions():
                reading = one.read(point, resources())
                assert list(reading.blocks) == sorted(set(reading.blocks))
                assert not {item.block for item in reading.evidence} & set(point.window.recent)
                if reading.evidence:
                    assert set(reading.blocks) == {item.block for item in reading.evidence} | set(point.window.recent)


def test_no_condition_sees_the_action_anything_later_or_a_label() -> None:
    found = random_trace(1)
    t = 6
    end = len(decision_point(found, t).messages)
    later = (Message("assistant", "jade jade jade"), Message("user", "amber"), Message("assistant", "other"))
    labels = tuple(Label(number, "recall") for number in range(t + 1))
    changed = msgspec.structs.replace(found, messages=(*found.messages[:end], *later), labels=labels)
    for one in all_conditions((20,)):
        before, after = (one.read(decision_point(which, t), resources()) for which in (found, changed))
        assert before == after
    assert decision_point(found, t) == decision_point(changed, t)


@pytest.mark.parametrize(
    ("cap", "kept"),
    [(0, [0, 1, 2]), (100, [0, 1, 2]), (99, [0, 1]), (75, [0, 2]), (49, [1]), (29, [2]), (19, [])],
)
def test_a_cap_keeps_whole_blocks_in_rank_order_and_skips_what_does_not_fit(cap: int, kept: list[int]) -> None:
    point = decision_point(sized(50, 30, 20, 1, 1), 5)
    ranked = [Evidence(0, 0.9), Evidence(1, 0.8), Evidence(2, 0.7)]
    found = within_cap(point, ranked, cap, resources().counts)
    assert [one.block for one in found] == kept


def test_conditions_are_found_by_name_and_by_group() -> None:
    assert len({one.name for one in all_conditions()}) == len(all_conditions()) == 28
    assert [one.name for one in choose("recent2,hidden")][:3] == ["full", "recent2", "bank-uniform5"]
    assert choose("all") == all_conditions()
    assert parse_caps("8K, 500,8192") == (8192, 500)
    assert condition("embedding-top3-cap500", (500,)).label == "Embedding Top3, cap 500 tokens"
    with pytest.raises(InputError, match="embedding"):
        condition("embedding-top1").read(decision_point(sized(1, 1, 1, 1), 4), resources(embed=False))


CHINESE = (
    "天气预报说北部山区有雨，海上吹来缓慢的风。",
    "馆长把哈尔沃森账簿搬到了特隆赫姆的第四书架。",
    "食谱需要面粉、黄油、两个鸡蛋和一小时的烤箱。",
    "除星期日和节假日外，火车每二十分钟一班。",
    "乐团在开门前排练了两遍交响曲。",
    "窗户打开时，油漆在干净的墙上干得更快。",
    "蜜蜂先去三叶草，下午再去薰衣草。",
    "是谁搬走了哈尔沃森账簿，是馆长还是别人？",
)


def test_the_planted_block_is_found_by_words_in_a_script_without_spaces() -> None:
    point = decision_point(trace(CHINESE, name="t-chinese", prefix="回答问题。"), 8)
    found = Lexical().rank(point, resources())
    assert found[0].block == PLANTED
    assert found[0].score > found[1].score + 0.1


def test_words_of_scripts_with_spaces_are_what_they_were_and_others_are_pairs_of_characters() -> None:
    spaced = "The K-4471 ledger_2, Übergröße, naïve Ελλάδα Россия, 한국어 문장, x²!"
    assert words(spaced) == re.findall(r"\w+", spaced.lower())
    assert words("PaMER是一个实验室, ok 账") == ["pamer", "ok", "是一", "一个", "个实", "实验", "验室", "账"]
