"""`random-when` and `threshold-when`: PaMER's memory under another trigger, without heads."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from pamer_lab.blocks import EstimatedCounter
from pamer_lab.controller import FixedProbe
from pamer_lab.controller.trigger import Moment, RandomTrigger, ThresholdTrigger
from pamer_lab.errors import InputError, ModelError
from pamer_lab.factory import Parts
from pamer_lab.memory.extractive import ExtractiveSummariser
from pamer_lab.memory.summary import SourceBlock, Summary
from pamer_lab.policies.registry import parse_policy
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.recount import faults
from pamer_lab.runs.values import Turn
from pamer_lab.workspace import Workspace
from tests.runs.making import PARTS, SMALL, long_trace, timeline_of, turns_of

NO_PROBE = Parts(embedder=PARTS.embedder)
"""Without a probe: asking for one would load the model and its heads."""
TRIGGERED = ["random-when:0.5" + SMALL, "threshold-when:300" + SMALL, "threshold-when:700:of=context" + SMALL]


def test_at_a_rate_of_one_it_decides_as_pamer_does_where_its_heads_always_vote(tmp_path: Path) -> None:
    always = Parts(embedder=PARTS.embedder, probe=FixedProbe())
    heads = turns_of(long_trace(10), "pamer:minimum=300:retained=1:logits=asked", workspace=tmp_path / "heads", parts=always)
    drawn = turns_of(long_trace(10), "random-when:1:minimum=300:retained=1", workspace=tmp_path / "drawn", parts=NO_PROBE)
    same = ("action", "items", "stored", "memory_ids", "candidate_tokens", "states")
    assert [[getattr(turn, key) for key in same] for turn in heads] == [[getattr(turn, key) for key in same] for turn in drawn]
    assert {"compress", "recall"} <= {turn.action for turn in drawn} and not any(turn.logits for turn in drawn)


def test_at_a_rate_of_zero_nothing_is_ever_compressed(tmp_path: Path) -> None:
    turns = turns_of(long_trace(10), "random-when:0" + SMALL, workspace=tmp_path, parts=NO_PROBE)
    assert {turn.action for turn in turns} == {"pass"} and all(turn.active_tokens == turn.raw_tokens for turn in turns)


def test_draws_depend_on_seed_session_and_turn_and_come_at_the_given_rate() -> None:
    def drawn(rate: float, seed: int = 0, session: str = "s") -> list[bool]:
        return [RandomTrigger(rate, seed).ask(Moment(session, turn, 5_000, 9_000)).edit for turn in range(4_000)]

    assert drawn(0.2) == drawn(0.2) != drawn(0.2, seed=1) and drawn(0.2) != drawn(0.2, session="t")
    assert 0.17 < sum(drawn(0.2)) / 4_000 < 0.23
    # A higher rate keeps every point of a lower one.
    assert all(more for less, more in zip(drawn(0.1), drawn(0.4), strict=True) if less)


@pytest.mark.parametrize(("of", "expected"), [("candidate", [False, True, True]), ("context", [False, False, True])])
def test_a_threshold_counts_the_candidate_or_the_context(of: str, expected: list[bool]) -> None:
    trigger = ThresholdTrigger(1_000, of)  # type: ignore[arg-type]
    assert [trigger.ask(Moment("s", 3, *sizes)).edit for sizes in ((999, 999), (1_000, 999), (1_001, 1_000))] == expected


def test_a_threshold_compresses_at_the_first_turn_whose_candidate_reaches_it(tmp_path: Path) -> None:
    turns = turns_of(long_trace(12), "threshold-when:700:retained=1", workspace=tmp_path, parts=NO_PROBE)
    assert all((turn.action == "compress") == (turn.candidate_tokens >= 1_024) for turn in turns), "the minimum of pamer counts too"
    turns = turns_of(long_trace(12), "threshold-when:700" + SMALL, workspace=tmp_path / "low", parts=NO_PROBE)
    compressed = [turn.action == "compress" for turn in turns]
    assert compressed == [turn.candidate_tokens >= 700 for turn in turns] and sum(compressed) == 2


@pytest.mark.parametrize("policy", TRIGGERED)
def test_a_triggered_session_acts_adds_up_and_goes_on_after_any_turn(tmp_path: Path, policy: str) -> None:
    trace = long_trace(12)
    complete = turns_of(trace, policy, workspace=tmp_path, parts=NO_PROBE)
    assert faults(timeline_of(trace), complete) == [] and {"compress", "recall"} <= {turn.action for turn in complete}
    for known in (0, 4, 7, 11):
        assert turns_of(trace, policy, tuple(complete[:known]), workspace=tmp_path, parts=NO_PROBE) == complete


@pytest.mark.parametrize("policy", TRIGGERED)
def test_a_triggered_policy_sees_nothing_of_the_future(tmp_path: Path, policy: str) -> None:
    trace, at = long_trace(12), 8
    pieces = timeline_of(trace).pieces.blocks
    later = [message for block in reversed(pieces[at:]) for message in block.of(trace.messages)]
    other = replace(trace, messages=(*trace.messages[: pieces[at].start], *later))
    ours, theirs = (turns_of(each, policy, workspace=tmp_path / name, parts=NO_PROBE) for name, each in (("a", trace), ("b", other)))

    def before(turns: list[Turn]) -> list[Turn]:
        return [replace(turn, output_tokens=0) for turn in turns[: at + 1]]

    assert before(ours) == before(theirs)


class FailingTwice:
    """A summariser that fails at its first two calls."""

    name = "failing-twice"

    def __init__(self, calls: int = 0) -> None:
        self.calls, self._inner = calls, ExtractiveSummariser(EstimatedCounter())

    def summarise(self, task: str, blocks: list[SourceBlock], later: object = ()) -> Summary:
        self.calls += 1
        if self.calls <= 2:
            raise ModelError("no summary today")
        return self._inner.summarise(task, blocks)


@pytest.mark.parametrize("policy", TRIGGERED)
def test_failed_compressions_are_counted_again_when_a_run_goes_on(tmp_path: Path, policy: str) -> None:
    trace = long_trace(12)

    def parts(calls: int) -> Parts:
        return Parts(embedder=PARTS.embedder, summariser=FailingTwice(calls))  # type: ignore[arg-type]

    complete = turns_of(trace, policy, workspace=tmp_path, parts=parts(0))
    failed = [turn.t for turn in complete if turn.action == "fallback"]
    assert len(failed) == 2
    # After two failures a shorter range is compressed: the count must have been taken up again.
    known = failed[1] + 1
    assert turns_of(trace, policy, tuple(complete[:known]), workspace=tmp_path, parts=parts(2)) == complete


def test_they_run_without_any_heads_and_are_their_own_runs(tmp_path: Path) -> None:
    workspace, trace = Workspace(tmp_path), long_trace(8)
    runs = [
        replay(trace, name, workspace, ReplayOptions(parts=NO_PROBE)) for name in ("random-when", "random-when:seed=1", "threshold-when")
    ]
    assert len({run.run_id for run in runs}) == 3 and not any(run.head.heads for run in runs)


def test_parameters_are_read_and_refused() -> None:
    assert parse_policy("random-when:0.3:minimum=60").name == "random-when:rate=0.3:minimum=60"
    assert parse_policy("threshold-when:2000:context").name == "threshold-when:tokens=2000:of=context"
    for text in ("random-when:1.5", "random-when:-1", "threshold-when:0", "threshold-when:of=window"):
        with pytest.raises(InputError):
            parse_policy(text)


def test_chosen_steps_come_back_in_place_of_summaries_where_asked(tmp_path: Path) -> None:
    policy = "threshold-when:300:returns=steps" + SMALL
    turns = turns_of(long_trace(12), policy, workspace=tmp_path, parts=NO_PROBE)
    assert any(turn.memory_ids for turn in turns) and "recalled" not in {item.kind for turn in turns for item in turn.items}
