"""Labels against an independent derivation, and the promises the corpus makes about them."""

from collections import Counter

import pytest

from pamer_lab.blocks import violations
from pamer_lab.corpus import make_worlds, write_corpus, write_trace
from pamer_lab.corpus.writer import write_demos
from pamer_lab.trajectory.formats.native import NativeTrace
from tests.corpus.rederive import holds, rederive

SEED = 7


@pytest.fixture(scope="module")
def traces() -> list[NativeTrace]:
    return list(write_corpus(SEED, 24, 2))


def test_labels_agree_with_a_derivation_from_the_world_and_the_messages() -> None:
    for world in make_worlds(SEED, 24):
        for replica in range(2):
            trace = write_trace(SEED, world, replica)
            given = {(label.t, str(label.target)): (label.value, label.steps) for label in trace.labels}
            assert given == rederive(world, trace.messages), trace.task_id


def test_every_needed_step_lies_before_the_recent_window(traces: list[NativeTrace]) -> None:
    steps = [(label.t, step) for trace in traces for label in trace.labels for step in label.steps]
    assert steps
    assert all(step <= t - 3 for t, step in steps)


def test_a_recalled_value_is_said_in_the_recorded_action(traces: list[NativeTrace]) -> None:
    worlds = {world.question_id: world for world in make_worlds(SEED, 24)}
    for trace in traces:
        said = [message.content for message in trace.messages if message.role == "assistant"]
        results = [message.content for message in trace.messages if message.role == "tool"]
        for label in trace.labels:
            for step in label.steps:
                values = [goal.value for goal in worlds[trace.question_id].goals if holds(results[step], goal.value)]
                assert any(value in said[label.t] for value in values)


def test_class_rates_are_between_10_and_40_percent(traces: list[NativeTrace]) -> None:
    total = Counter(label.target for trace in traces for label in trace.labels)
    positive = Counter(label.target for trace in traces for label in trace.labels if label.value)
    for target in ("compression", "recall"):
        assert 0.10 <= positive[target] / total[target] <= 0.40


def test_no_message_holds_a_label_or_a_marker(traces: list[NativeTrace]) -> None:
    words = (
        "compress",
        "recall",
        "label",
        "in memory",
        "decision point",
        "sub-goal",
        "outsider",
        "distractor",
        "detour",
        "{",
        "}",
    )
    for trace in traces:
        for message in trace.messages:
            assert not [word for word in words if word in message.content.lower()], message.content


def test_the_tool_protocol_is_safe_everywhere(traces: list[NativeTrace]) -> None:
    assert not [trace.task_id for trace in [*traces, *write_demos(SEED)] if violations(trace.messages)]


def test_no_two_questions_share_a_world() -> None:
    names = [entity.name for world in make_worlds(SEED, 48) for entity in (*world.mains, *world.outsiders)]
    assert len(names) == len(set(names))
