"""The PaMER policies in replay: what they show, what they keep, and how they go on."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from pamer_lab.audit import AuditStore
from pamer_lab.controller import FixedProbe
from pamer_lab.controller.recall import NOTICE
from pamer_lab.errors import Cancelled, LabError
from pamer_lab.factory import Parts
from pamer_lab.memory import BufferedMemories, RawBlock
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.export import turn_json
from pamer_lab.runs.ledger import expand
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.timeline import lay_out
from pamer_lab.workspace import Workspace
from tests.runs.making import PARTS, SMALL, call, huge_trace, long_trace, make_trace, turns_of, untimed

ALWAYS = Parts(embedder=PARTS.embedder, probe=FixedProbe())


def test_pamer_compresses_when_there_is_enough_and_recalls_otherwise(tmp_path: Path) -> None:
    turns = turns_of(long_trace(8), "pamer:minimum=300:retained=1", workspace=tmp_path, parts=ALWAYS)
    assert [turn.action for turn in turns] == ["pass", "pass", "pass", "compress", "recall", "compress", "recall", "compress"]
    assert [turn.states for turn in turns][3:7] == ["SSA", "RRAA", "SSSSA", "RRRRAA"]
    recalled = next(item for item in turns[6].items if item.kind == "recalled")
    assert recalled.source == " ".join(turns[6].memory_ids) and recalled.spans == ((0, 4),)
    assert NOTICE in recalled.text and turns[6].active_tokens < turns[6].raw_tokens
    assert turns[5].spent[0].operation == "summary" and turns[5].spent[0].local


def test_without_recall_nothing_comes_back(tmp_path: Path) -> None:
    turns = turns_of(long_trace(8), "pamer-no-recall:minimum=300:retained=1", workspace=tmp_path, parts=ALWAYS)
    assert [turn.action for turn in turns][3:] == ["compress", "pass", "compress", "pass", "compress"]
    assert turns[6].states == "SSSSAA" and not any(item.text for turn in turns for item in turn.items)


def test_without_compression_everything_stays_and_summaries_come_on_top(tmp_path: Path) -> None:
    turns = turns_of(long_trace(8), "pamer-no-compression:minimum=300:retained=1", workspace=tmp_path, parts=ALWAYS)
    assert [turn.action for turn in turns][3:] == ["pass", "recall", "pass", "recall", "pass"]
    assert all(set(turn.states) <= {"A"} and turn.active_tokens >= turn.raw_tokens for turn in turns)
    assert turns[4].active_tokens > turns[4].raw_tokens and turns[3].memory_ids


def test_logits_are_read_at_every_turn_with_an_older_block_or_only_where_asked(tmp_path: Path) -> None:
    whole = turns_of(long_trace(8), "pamer:minimum=400:retained=1", workspace=tmp_path / "all")
    asked = turns_of(long_trace(8), "pamer:minimum=400:retained=1:logits=asked", workspace=tmp_path / "asked")
    assert [bool(turn.logits) for turn in whole] == [False, False] + [True] * 6
    assert [turn.action for turn in whole] == [turn.action for turn in asked]
    assert [turn.t for turn in asked if turn.logits] == [turn.t for turn in whole if turn.candidate_tokens >= 400]


def test_a_probe_that_fails_never_compresses_and_the_turn_says_so(tmp_path: Path) -> None:
    class Broken:
        name = "broken"

        def vote(self, *given: object) -> None:
            raise MemoryError("out of memory")

    turns = turns_of(long_trace(6), "pamer" + SMALL, workspace=tmp_path, parts=Parts(embedder=PARTS.embedder, probe=Broken()))  # type: ignore[arg-type]
    assert {turn.action for turn in turns} == {"pass"} and "out of memory" in turns[3].error
    assert turns[5].states == "AAAAA"


@pytest.mark.parametrize("policy", ["pamer", "pamer+", "pamer-no-compression"])
@pytest.mark.parametrize("cut", [0, 5, 11])
def test_a_session_goes_on_after_any_turn_and_forgets_what_came_later(tmp_path: Path, policy: str, cut: int) -> None:
    trace, name = long_trace(12), policy + SMALL
    whole = turns_of(trace, name, workspace=tmp_path)
    assert turns_of(trace, name, tuple(whole[:cut]), workspace=tmp_path) == whole


def test_a_run_whose_memories_are_gone_is_not_continued_wrongly(tmp_path: Path) -> None:
    trace, name = long_trace(12), "pamer" + SMALL
    whole = turns_of(trace, name, workspace=tmp_path)
    with pytest.raises(LabError, match="--fresh"):
        turns_of(trace, name, tuple(whole[:8]), workspace=tmp_path / "other")


def test_the_same_trace_twice_gives_the_same_run_down_to_the_text(tmp_path: Path) -> None:
    trace, options = long_trace(14), ReplayOptions(parts=PARTS)
    first, second = (replay(trace, "pamer" + SMALL, Workspace(tmp_path / name), options) for name in ("one", "two"))
    assert first.run_id == second.run_id and first.totals == second.totals
    assert [untimed(turn) for turn in first.turns] == [untimed(turn) for turn in second.turns]
    again = replay(trace, "pamer" + SMALL, Workspace(tmp_path / "one"), ReplayOptions(parts=PARTS, fresh=True))
    assert [untimed(turn) for turn in again.turns] == [untimed(turn) for turn in first.turns]
    assert replay(trace, "pamer" + SMALL, Workspace(tmp_path / "one"), ReplayOptions(parts=ALWAYS)).run_id != first.run_id


LETTERS = make_trace(
    [
        *(call(n, f"letter L{n:04d}", f"Letter L{n:04d} says {'word ' * 120}") for n in range(9)),
        call(9, "index", "It names L0002 first."),
        call(10, "more", "none"),
    ],
    trace_id="t-letters",
)


def test_the_router_over_the_archive_is_another_run_and_named_in_the_audit(tmp_path: Path) -> None:
    workspace, options = Workspace(tmp_path), ReplayOptions(parts=ALWAYS)
    index, archive = (replay(LETTERS, f"pamer+:minimum=300:retained=1{name}", workspace, options) for name in ("", ":router=archive"))
    assert index.run_id != archive.run_id and archive.head.settings["router"] == "archive"
    assert {row["router"] for row in AuditStore(workspace.database).rows(run_id=archive.run_id)} == {"embedded-3 archive"}


def test_the_default_router_reads_no_raw_block_to_choose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[tuple[str, ...]] = []
    kept = BufferedMemories.raw_blocks

    def counted(self: BufferedMemories, names: Sequence[str]) -> dict[str, RawBlock]:
        reads.append(tuple(names))
        return kept(self, names)

    monkeypatch.setattr(BufferedMemories, "raw_blocks", counted)
    run = replay(LETTERS, "pamer+:minimum=300:retained=1", Workspace(tmp_path), ReplayOptions(parts=ALWAYS))
    rows = AuditStore(Workspace(tmp_path).database).rows(run_id=run.run_id)
    chosen = [len(row["steps"]) for row in rows if row["steps"] and row["cache"] != "hit"]
    assert chosen and [len(names) for names in reads] == chosen


def test_a_clipped_block_is_restored_in_part_in_turn_ledger_and_export(tmp_path: Path) -> None:
    trace, workspace = huge_trace(), Workspace(tmp_path)
    run = replay(trace, "pamer+:minimum=300:retained=1", workspace, ReplayOptions(parts=ALWAYS))
    turn = next(turn for turn in run.turns if turn.restored_in_part)
    assert turn.restored_in_part == turn.restored_steps and {turn.states[step] for step in turn.restored_steps} == {"X"}
    said = turn_json(turn)
    assert said["restored_in_part"] == list(turn.restored_steps) and said["block_states"][turn.restored_steps[0]] == "restored"
    assert RunStore(workspace).run(run.run_id).turns == run.turns
    timeline = lay_out(trace, profile_tokens(load_profile("embedded")))
    assert [row["restored_in_part"] for row in expand(turn.items, timeline.block_tokens) if row["kind"] == "evidence"] == [
        list(turn.restored_steps)
    ]


def test_pamer_plus_restores_steps_and_every_selection_is_kept_for_audit(tmp_path: Path) -> None:
    run = replay(LETTERS, "pamer+:minimum=300:retained=1", Workspace(tmp_path), ReplayOptions(parts=ALWAYS))
    restored = [turn for turn in run.turns if turn.restored_steps]
    assert restored and all(turn.action == "recall" for turn in restored)
    for turn in restored:
        assert all(turn.states[step] == "X" for step in turn.restored_steps)
        (item,) = [item for item in turn.items if item.text]
        assert item.kind == "evidence" and {step for first, last in item.spans for step in range(first, last)} == set(turn.restored_steps)
    rows = AuditStore(Workspace(tmp_path).database).rows(run_id=run.run_id)
    assert {row["router"] for row in rows} == {"embedded-3 index"} and run.head.settings["router"] == "index"
    looked = [turn.t for turn in run.turns if turn.stored and turn.action != "compress"]
    assert [row["turn"] for row in rows] == looked and {row["trace_id"] for row in rows} == {"t-letters"}


def test_a_continued_pamer_plus_run_has_each_audit_row_once(tmp_path: Path) -> None:
    trace, name, workspace = long_trace(12), "pamer+:minimum=300:retained=1", Workspace(tmp_path)
    seen: list[int] = []
    stop = ReplayOptions(parts=ALWAYS, watch=lambda turn, of: seen.append(turn.t), cancelled=lambda: len(seen) == 7)
    with pytest.raises(Cancelled):
        replay(trace, name, workspace, stop)
    run = replay(trace, name, workspace, ReplayOptions(parts=ALWAYS))
    other = replay(trace, name, Workspace(tmp_path / "other"), ReplayOptions(parts=ALWAYS))
    assert [untimed(turn) for turn in run.turns] == [untimed(turn) for turn in other.turns]
    turns = [row["turn"] for row in AuditStore(workspace.database).rows(run_id=run.run_id)]
    assert turns and turns == sorted(set(turns))
