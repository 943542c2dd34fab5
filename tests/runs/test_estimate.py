"""One estimate of what replays take: tokens once, at the pace that was measured here, and what is left of a run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pamer_lab.blocks import cut
from pamer_lab.blocks.render import task_text
from pamer_lab.errors import Cancelled, InputError
from pamer_lab.factory import Factory
from pamer_lab.features import pace
from pamer_lab.features.pace import EMBEDDING, ENOUGH_CHARACTERS, FILE, depth_of, embedding_pace, pace_of, remember_embedding
from pamer_lab.features.values import OnProgress
from pamer_lab.jobs import Progress
from pamer_lab.models import speed
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.models.kept_embeddings import KeptEmbeddings
from pamer_lab.models.profiles import FrozenSettings, load_profile
from pamer_lab.models.speed import EFFICIENCY, LOADING, MEASURED, guessed_blocks
from pamer_lab.policies.pamer_policy import SUMMARISED
from pamer_lab.policies.registry import parse_policy
from pamer_lab.runs import engine, expected
from pamer_lab.runs import estimate as estimates
from pamer_lab.runs import known as known_turns
from pamer_lab.runs.batch import BatchOptions, replay_batch
from pamer_lab.runs.batch_state import BELIEVED, BatchProgress, BatchState
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.estimate import Cost, Estimator, estimate
from pamer_lab.runs.inputs import LETTERS
from pamer_lab.runs.known import REFERENCE, REFERENCE_TOKENS, guessed_turn
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.turns import Turn
from pamer_lab.runs.worker import Note
from pamer_lab.workspace import TraceSize, Workspace
from tests.runs.making import PARTS, estimated, long_trace

EMBEDDED = load_profile("embedded")


@pytest.fixture(autouse=True)
def _same_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose matrix product is as fast as the one that the guesses come from."""
    monkeypatch.setattr(speed, "matrix_speed", lambda: REFERENCE)
    for module in (pace, known_turns):
        monkeypatch.setattr(module, "matrix_speed", lambda: REFERENCE)
    load(monkeypatch, 1.0)


def load(monkeypatch: pytest.MonkeyPatch, times: float) -> None:
    """Other programs make everything take so many times longer."""
    monkeypatch.setattr(pace, "busy", lambda: times)
    for module in (pace, known_turns, estimates):
        monkeypatch.setattr(module, "stretch", lambda: times)


def factory(workspace: Workspace) -> Factory:
    return Factory(EMBEDDED, workspace)


def guesses(workspace: Workspace, traces: list[str], *policies: str) -> float:
    """Seconds of all turns of policies that never ran here."""
    costs = Estimator(factory(workspace)).costs(dict.fromkeys(policies, traces))
    return sum(cost.seconds - cost.read_seconds for cost in costs.values())


@pytest.fixture
def traces(workspace: Workspace) -> list[str]:
    return [row["trace_id"] for row in workspace.add_traces([long_trace(size, trace_id=f"t-{size}") for size in (6, 10)], estimated())]


def test_a_policy_without_models_reads_nothing(workspace: Workspace, traces: list[str]) -> None:
    found = estimate({"base": traces}, factory(workspace))
    assert (found.runs, found.turns, found.models, found.read_tokens, found.basis) == (2, 16, (), 0, "measured")
    assert found.policies == {"base": pytest.approx(found.seconds)}


def test_what_heads_read_is_the_prefix_once_and_the_retained_blocks_and_is_shared(workspace: Workspace, traces: list[str]) -> None:
    def of(*policies: str) -> int:
        return estimate(dict.fromkeys(policies, traces[:1]), factory(workspace)).read_tokens

    size = workspace.trace_sizes(traces[:1])[traces[0]]
    assert [of(f"pamer:retained={count}") for count in (1, 2, 4)] == [size.head_tokens + count * size.later_tokens for count in (1, 2, 4)]
    assert of("pamer", "pamer+", "base") == of("pamer") < of("pamer", "pamer:retained=4")
    limited = estimate({"pamer": traces[:1]}, Factory(EMBEDDED.model_copy(update={"probe_limit": 10}), workspace))
    assert limited.read_tokens == 60
    assert estimate({"pamer": traces[:1]}, factory(workspace), turn_limit=3).read_tokens == size.head_tokens + size.later_tokens
    continued = [Estimator(factory(workspace)).cost(parse_policy("pamer"), traces[0], size, stored).read_tokens for stored in (3, 6)]
    assert continued == [size.head_tokens + size.later_tokens, 0], "a stopped run reads the states of its other turns only"


def test_models_load_once_and_a_first_guess_is_by_the_matrix_product(workspace: Workspace, traces: list[str]) -> None:
    asked = factory(workspace)
    found = estimate({"pamer": traces, "pamer+": traces}, asked)
    assert len(found.models) == 2 and found.basis == "guessed"
    reading = found.read_tokens * depth_of(EMBEDDED, asked.heads.heads.layer) / guessed_blocks(EMBEDDED)
    turns = guesses(workspace, traces, "pamer", "pamer+")
    assert found.seconds == pytest.approx(LOADING + reading + turns)


def test_a_pace_that_was_measured_here_is_believed(workspace: Workspace, traces: list[str]) -> None:
    guess = estimate({"pamer": traces}, factory(workspace))
    slow = {f"{factory(workspace).model_name} cpu": {"blocks": guessed_blocks(EMBEDDED) / 4, "loading": 3.0}}
    (workspace.path / FILE).write_text(json.dumps(slow))
    found = estimate({"pamer": traces}, factory(workspace))
    turns = guesses(workspace, traces, "pamer")
    assert found.basis == "mixed"
    assert found.seconds - 3 - turns == pytest.approx(4 * (guess.seconds - LOADING - turns))
    (workspace.path / FILE).write_text("no json")
    assert pace_of(EMBEDDED, workspace.path).basis == "guessed"


def test_a_policy_that_ran_here_is_estimated_by_its_own_pace(workspace: Workspace) -> None:
    run = replay(long_trace(8), "sliding-window:2", workspace)
    stored = replace(run.head, taken=4.0)
    RunStore(workspace).put_head(stored)
    found = estimate({"sliding-window:2": [run.head.trace_id]}, factory(workspace))
    assert found.basis == "measured" and found.seconds == pytest.approx(4.0)
    asked = Estimator(factory(workspace))
    same_class, other = parse_policy("sliding-window:3"), parse_policy("base")
    assert asked.known(same_class, "t-elsewhere") == asked.known(parse_policy("sliding-window:2"), run.head.trace_id)
    assert asked.known(other, run.head.trace_id) is None


def test_a_run_that_speaks_for_many_traces_is_read_once(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    run = replay(long_trace(8), "sliding-window:2", workspace)
    RunStore(workspace).put_head(replace(run.head, taken=4.0, heads={"sha256": "x"}))  # it read states, so only its turns know their time
    others = [row["trace_id"] for row in workspace.add_traces([long_trace(6, trace_id=f"t-{n}") for n in range(12)], estimated())]
    read: list[str] = []
    monkeypatch.setattr(RunStore, "seconds_per_turn", lambda self, run_id: read.append(run_id) or 0.5)
    found = Estimator(factory(workspace)).costs({"sliding-window:2": others})
    assert len(found) == 12 and read == [run.run_id]


def test_between_traces_half_of_a_turn_grows_with_its_blocks(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Estimator, "_commit", 0.0)
    run = replay(long_trace(8), "sliding-window:2", workspace)
    RunStore(workspace).put_head(replace(run.head, taken=4.0))
    asked, policy = Estimator(factory(workspace)), parse_policy("sliding-window:2")
    tokens = sum(run.head.block_tokens)
    assert asked.turn_seconds(policy, "t-other", TraceSize(8, 50, 3 * tokens)) == pytest.approx(0.5 * (0.5 + 0.5 * 3), rel=0.05)


def test_a_policy_that_embeds_takes_what_its_texts_take_unless_they_are_there(workspace: Workspace) -> None:
    trace = long_trace(8)
    workspace.add_traces([trace], estimated())
    asked, [[name, size]] = Estimator(factory(workspace)), workspace.trace_sizes([trace.trace_id]).items()
    policies = [parse_policy(text) for text in ("pamer", "pamer+", "pamer-no-recall", "threshold-when", "threshold-when:returns=steps")]
    blocks = cut(trace.messages)
    block = LETTERS * size.later_tokens / size.turns
    task = len(task_text(trace.messages[: blocks.prefix_end]))
    for policy in policies:
        cost = asked.cost(policy, name, size)
        assert cost.embed_seconds == pytest.approx(sum(policy.embeds(task, block).values()) / EMBEDDING, rel=0.1)
    together = asked.costs({policy.name: [name] for policy in policies})
    queries, summaries, steps = f"queries of {policies[0].retained}", SUMMARISED * block, policies[1].embeds(task, block)["steps"]
    own = [policies[0].embeds(task, block)[queries] + summaries, steps, 0.0, summaries, 0.0]  # the last returns what others do
    assert [cost.embed_seconds for cost in together.values()] == pytest.approx([each / EMBEDDING for each in own], rel=0.1)
    run = replay(trace, "pamer", workspace, ReplayOptions(device="cpu", parts=PARTS))
    RunStore(workspace).put_head(replace(run.head, taken=4.0))
    again = Estimator(Factory(EMBEDDED, workspace, parts=PARTS))
    own, other, steps = (again.cost(parse_policy(text), name, size) for text in ("pamer", "pamer:vote=4", "pamer+"))
    assert own.sure and own.seconds == pytest.approx(4.0, rel=0.05)
    assert other.embed_seconds == pytest.approx(summaries / EMBEDDING, rel=0.1) and not other.sure
    assert steps.embed_seconds == pytest.approx(together["pamer+", name].embed_seconds)


def test_a_policy_that_embeds_nothing_asks_for_no_pace_of_embedding(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "embedding_pace", lambda *_: pytest.fail("the pace was measured"))
    assert Estimator(factory(workspace)).cost(parse_policy("sliding-window:2"), "t-none", TraceSize(8, 50, 400)).embed_seconds == 0.0


def test_the_pace_of_embedding_is_remembered(workspace: Workspace) -> None:
    workspace.path.mkdir(parents=True, exist_ok=True)
    first = embedding_pace(EMBEDDED, workspace.path)
    remember_embedding(EMBEDDED, workspace.path, ENOUGH_CHARACTERS - 1, 0.001)
    assert embedding_pace(EMBEDDED, workspace.path) == first == (EMBEDDING, "guessed")
    remember_embedding(EMBEDDED, workspace.path, 60_000, 2.0)
    assert embedding_pace(EMBEDDED, workspace.path) == (30_000, "measured")
    kept = KeptEmbeddings(HashingEmbedder())
    kept.embed(["four", "five5", "four"])
    kept.embed(["four"])
    (characters, seconds), again = kept.work_done(), kept.work_done()
    assert (characters, again) == (9, (0, 0.0)) and seconds > 0


def test_a_run_that_was_stopped_is_estimated_for_its_rest_and_keeps_what_it_took(workspace: Workspace) -> None:
    seen: list[int] = []
    stopping = ReplayOptions(watch=lambda turn, of: seen.append(turn.t), cancelled=lambda: len(seen) == 3)
    with pytest.raises(Cancelled):
        replay(long_trace(8), "base", workspace, stopping)
    before = RunStore(workspace).heads()[0]
    RunStore(workspace).put_head(replace(before, taken=3.0))
    left = estimate({"base": ["t-long"]}, factory(workspace))
    own = RunStore(workspace).seconds_per_turn(before.run_id)
    assert (left.turns, left.basis) == (5, "measured") and left.seconds == pytest.approx(5 * own)
    run = replay(long_trace(8), "base", workspace)
    assert run.head.taken >= 3.0
    assert run.head.estimated == pytest.approx(3.0 + left.seconds, abs=0.5)


def test_states_that_a_stopped_run_read_are_not_estimated_again(workspace: Workspace, traces: list[str]) -> None:
    trace_id, asked = traces[0], factory(workspace)
    fresh = estimate({"pamer": [trace_id]}, asked)
    run = replay(trace_id, "pamer", workspace, ReplayOptions(device="cpu", parts=PARTS, turn_limit=1)).head
    of_all = {"turns": run.trace_turns, "heads": asked.heads_identity(), "settings": {"controller": {"retained_blocks": 2}}}
    stopped = replace(run, run_id="r-stopped", status="cancelled", totals={}, taken=9.0, read=run.trace_turns // 2, **of_all)
    RunStore(workspace).remove(run.run_id)
    RunStore(workspace).add_head(stopped)
    left = estimate({"pamer": [trace_id]}, factory(workspace))
    assert 0.4 * fresh.read_tokens < left.read_tokens < 0.7 * fresh.read_tokens
    assert left.turns == fresh.turns and left.basis == fresh.basis  # a run without turns says nothing of how long they take
    shared = estimate({"pamer+": [trace_id]}, factory(workspace))
    assert shared.read_tokens == left.read_tokens
    RunStore(workspace).put_head(replace(stopped, read=run.trace_turns))
    assert estimate({"pamer": [trace_id]}, factory(workspace)).read_tokens == 0


def test_every_run_records_what_was_estimated_and_what_it_took(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expected, "CORRECT_TURNS", 9)
    run = replay(long_trace(8), "pamer", workspace, ReplayOptions(device="cpu", parts=PARTS))
    tokens = sum(run.head.block_tokens) / 8
    guess = guessed_turn(parse_policy("pamer")) * (0.5 + 0.5 * tokens / REFERENCE_TOKENS)
    embeds = Estimator(factory(workspace)).inputs.embeds(parse_policy("pamer"), "t-long", workspace.trace_sizes(["t-long"])["t-long"])
    embedding = sum(embeds.values()) / EMBEDDING
    assert run.head.estimated == pytest.approx(8 * (guess + embedding), rel=0.2)
    assert RunStore(workspace).head(run.run_id) == run.head and run.head.taken > 0


def test_a_guess_gives_way_to_the_pace_of_the_runs_own_turns(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expected, "CORRECT_AFTER", 0.0)
    monkeypatch.setattr(expected, "CORRECT_TURNS", 1)
    monkeypatch.setitem(known_turns.TURN, "embedder", 1e9)
    run = replay(long_trace(8), "pamer", workspace, ReplayOptions(device="cpu", parts=PARTS))
    assert run.head.estimated < guessed_turn(parse_policy("pamer")) / 1000


def test_a_short_run_of_a_policy_that_was_not_tried_records_what_its_first_turns_say(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(known_turns.TURN, "", 1e9)
    first = replay(long_trace(20, trace_id="t-20"), "base", workspace).head
    guessed = replay(long_trace(30, trace_id="t-30"), "base", workspace, ReplayOptions(expected=1e9, guessed=True)).head
    known = replay(long_trace(25, trace_id="t-25"), "base", workspace, ReplayOptions(expected=1e9)).head
    assert max(first.estimated, guessed.estimated) < 10 and known.estimated == 1e9


def test_only_a_policy_that_was_tried_on_the_very_trace_is_sure(workspace: Workspace, traces: list[str]) -> None:
    run = replay(traces[0], "base", workspace)
    asked, size = Estimator(factory(workspace)), workspace.trace_sizes(traces)[traces[1]]
    own, other = (asked.cost(parse_policy("base"), trace_id, size) for trace_id in (run.head.trace_id, traces[1]))
    assert (own.known, own.sure, other.known, other.sure) == (True, True, True, False)
    state = BatchState(dict.fromkeys(traces, 6), ("base",), expected={(traces[0], "base"): own, (traces[1], "base"): other})
    assert [state.unsure(name, ["base"]) for name in traces] == [(), ("base",)]


def test_on_a_busy_machine_the_least_time_is_that_of_a_free_one(
    workspace: Workspace, traces: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    free = estimate({"pamer": traces}, factory(workspace))
    assert free.least == pytest.approx(free.seconds)
    load(monkeypatch, 3.0)
    shared = estimate({"pamer": traces}, factory(workspace))
    assert shared.least == pytest.approx(free.seconds) and shared.seconds == pytest.approx(3 * free.seconds)


def test_a_corrected_guess_still_counts_the_states_of_the_turns_to_come(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expected, "CORRECT_AFTER", 0.0)
    monkeypatch.setattr(expected, "CORRECT_TURNS", 1)
    monkeypatch.setattr(Estimator, "cost", lambda *_: Cost(800, 8, 800.0, 1.0))
    run = replay(long_trace(8), "pamer", workspace, ReplayOptions(device="cpu", parts=PARTS))
    assert run.head.estimated == pytest.approx(700, rel=0.05)  # corrected after the first of eight turns


def test_a_corrected_guess_follows_the_pace_at_which_states_were_read(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    turns_of_the_run = engine.replay_turns

    def reading(*given: Any, progress: OnProgress, **more: Any) -> Iterator[Turn]:
        for done in (10, 20):
            progress(Progress(done=done, total=100, what="tokens"))
        yield from turns_of_the_run(*given, progress=progress, **more)

    monkeypatch.setattr(expected, "CORRECT_AFTER", 0.0)
    monkeypatch.setattr(expected, "CORRECT_TURNS", 1)
    monkeypatch.setattr(Estimator, "cost", lambda *_: Cost(800, 8, 800.0, 1.0))
    monkeypatch.setattr(engine, "replay_turns", reading)
    told: list[Progress] = []
    run = replay(long_trace(8), "pamer", workspace, ReplayOptions(device="cpu", parts=PARTS, reading=told.append))
    assert run.head.estimated < 350 and [progress.done for progress in told] == [10, 20]


def test_the_time_left_is_known_from_the_start_and_follows_the_turns(workspace: Workspace, traces: list[str]) -> None:
    seen: list[BatchProgress] = []
    replay_batch(traces, ["base", "sliding-window:2"], workspace, BatchOptions(), report=seen.append)
    assert all(progress.seconds_left is not None for progress in seen)
    assert seen[0].seconds_left and seen[-1].seconds_left == 0


def test_what_passes_before_the_first_turn_or_token_is_loading_and_no_pace() -> None:
    def left(*notes: tuple[Note, float]) -> float:
        state = BatchState({"t": 10}, ("pamer",), expected={("t", "pamer"): Cost(100, 10, 50.0, 1.0)})
        for note, since in notes:
            state.take("t", note, since)
        return state.seconds_left()

    assert left() == 60.0
    loaded = (Note("pamer", read=10, to_read=100), 1000.0)
    assert left(loaded) == pytest.approx(10 + 45)
    read = (Note("pamer", read=20, to_read=100), 10.0)  # 5 s were expected
    slower = (BELIEVED + 10) / (BELIEVED + 5)
    assert left(loaded, read) == pytest.approx(10 + slower * 40)
    assert left(loaded, read, (Note("pamer", 2), 6.0)) == pytest.approx(8 * 3 + slower * 40), "turns come before all is read"
    assert left((Note("pamer", 1), 1000.0), (Note("pamer", 2), 2.0)) == pytest.approx(8 * 2), "nothing is left to read"


def test_a_larger_model_is_guessed_to_be_slower_by_its_weights(tmp_path: Path) -> None:
    config = {"num_hidden_layers": 2 * MEASURED.layers, "hidden_size": 2 * MEASURED.width}
    config |= {"intermediate_size": 2 * MEASURED.inner, "num_attention_heads": 18, "num_key_value_heads": 6}
    (tmp_path / "config.json").write_text(json.dumps({"text_config": config}))
    larger = EMBEDDED.model_copy(update={"frozen_model": FrozenSettings(model=str(tmp_path))})
    assert guessed_blocks(larger) == pytest.approx(guessed_blocks(EMBEDDED) / 4) and depth_of(larger) == 60
    (tmp_path / "config.json").write_text("[]")
    assert guessed_blocks(larger) == pytest.approx(EFFICIENCY * REFERENCE / MEASURED.operations)


def test_a_model_that_cannot_be_loaded_is_the_reason_that_the_run_records(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise InputError("the weights are damaged")

    monkeypatch.setattr(Estimator, "load", broken)
    with pytest.raises(InputError, match="the weights are damaged"):
        replay(long_trace(8), "pamer", workspace, ReplayOptions(device="cpu", parts=PARTS))
    [head] = RunStore(workspace).heads()
    assert head.status == "failed" and "the weights are damaged" in head.error and head.read == 0


def test_a_run_of_a_policy_that_is_not_known_here_does_not_stop_an_estimate(workspace: Workspace) -> None:
    run = replay(long_trace(8), "base", workspace)
    RunStore(workspace).put_head(replace(run.head, policy="of-a-later-version:3"))
    assert estimate({"pamer": [run.head.trace_id]}, factory(workspace)).turns == 8
