"""A world is consistent, and what the tools return belongs to it and to the call."""

import re
from collections import Counter

import orjson
import pytest

from pamer_lab.corpus import make_worlds, write_corpus
from pamer_lab.corpus.world import World
from pamer_lab.trajectory.formats.native import NativeTrace
from tests.corpus.rederive import holds

SEED = 7
YEAR = re.compile(r"\b1[789]\d\d\b")


@pytest.fixture(scope="module")
def worlds() -> list[World]:
    return list(make_worlds(SEED, 8))


@pytest.fixture(scope="module")
def traces() -> list[NativeTrace]:
    return list(write_corpus(SEED, 16, 2))


def test_what_is_told_of_an_entity_happens_within_its_years(worlds: list[World]) -> None:
    checked = 0
    for world in worlds:
        for entity in (*world.mains, *world.outsiders):
            told = [int(year) for story in entity.told for year in YEAR.findall(story)]
            for name, value in entity.facts.items():
                when = world.attribute(entity, name).when
                late = [year for year in told if when == "begin" and year < int(value)]
                early = [year for year in told if when == "end" and year > int(value)]
                assert not late + early, (entity.name, name, value, entity.told)
                checked += bool(when and told)
    assert checked > 100


def test_no_story_gives_a_value_of_the_world(worlds: list[World]) -> None:
    for world in worlds:
        entities = (*world.mains, *world.outsiders)
        stories = "\n".join(story for entity in entities for story in entity.told)
        assert not [value for entity in entities for value in entity.facts.values() if holds(stories, value)]


def test_an_entity_is_told_of_in_the_same_stories_wherever_it_appears(worlds: list[World]) -> None:
    for world in worlds:
        for entity in (*world.mains, *world.outsiders):
            assert len(set(entity.told)) == len(entity.told) == 6
        common = Counter(story for entity in (*world.mains, *world.outsiders) for story in entity.told if YEAR.search(story))
        assert not common or common.most_common(1)[0][1] <= 2


def test_whatever_is_read_was_named_by_a_list_before(traces: list[NativeTrace]) -> None:
    reads = 0
    for trace in traces:
        seen = ""
        for message in trace.messages:
            for call in message.tool_calls:
                argument = orjson.loads(call.arguments)
                ref = argument.get("document_id") or argument.get("path")
                if ref:
                    assert ref in seen, (trace.task_id, ref)
                    reads += 1
            if message.role == "tool":
                seen += message.content
    assert reads > 50


def test_the_tools_fail_now_and_then_and_the_agent_calls_again(traces: list[NativeTrace]) -> None:
    failures = 0
    for trace in traces:
        blocks = [message for message in trace.messages if message.role != "user"]
        for place, message in enumerate(blocks):
            if message.role == "tool" and re.match(r"50[34] |Error: |error: |ssh: ", message.content):
                failures += 1
                again = blocks[place + 1].tool_calls
                assert not again or again[0].arguments == blocks[place - 1].tool_calls[0].arguments
    assert 3 <= failures <= 30
