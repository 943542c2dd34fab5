"""Runs in the workspace: one row per run, one per turn, and each added text once per run.

Order of writes: texts, then the turns that name them, so that a stored turn is always complete; the run's row is written before them as
`running` and again when it ends, or just once after them if the run has ended by then. A crash leaves the turns that were written, and
the next replay of the same run continues after them. Rows are appended; `tidy` merges the small files that many appends leave.
"""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pamer_lab.decisions import Action, Item
from pamer_lab.errors import InputError
from pamer_lab.memory import MemoryStore
from pamer_lab.memory.records import Memory
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.trust import unconfirmed
from pamer_lab.runs.turn_rows import TEXTS, TURNS, turn_of, turn_rows, unpacked
from pamer_lab.runs.values import Run, RunInfo, Turn
from pamer_lab.storage import Database, TableSpec, equals, in_parts, is_in
from pamer_lab.workspace import RUNS, Workspace
from pamer_lab.workspace.store import TOTALS


class RunStore:
    """Writes and reads runs of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.database: Database = workspace.database
        self._folder = workspace.path
        self._texts: dict[str, set[str]] = {}
        """Texts already written, by run."""
        self._items: dict[str, tuple[Item, ...]] = {}
        """Items of the turn written last, by run."""
        self.commits: list[float] = []
        """Seconds of each commit of new rows so far."""

    def put_head(self, head: RunInfo) -> None:
        """Write the run's row, new or changed."""
        self.database.upsert(RUNS, [run_row(head)])

    def add_head(self, head: RunInfo) -> None:
        """Write the row of a run that has none; if other machines write too, one may have been added meanwhile."""
        if self.database.remote:
            self.put_head(head)
        else:
            self._add(RUNS, [run_row(head)])

    def add_turns(self, run_id: str, turns: Sequence[Turn]) -> None:
        """Append finished turns in one commit, after the texts they name."""
        known = self._texts.setdefault(run_id, set())
        rows, fresh = turn_rows(run_id, turns, self._items.get(run_id, ()), known)
        if fresh:
            self._add(TEXTS, [{"run_id": run_id, "text_id": key, "text": text} for key, text in fresh.items()])
            known |= fresh.keys()
        if rows:
            self._add(TURNS, rows)
            self._items[run_id] = turns[-1].items

    def _add(self, spec: TableSpec, rows: list[dict[str, Any]]) -> None:
        """Add new rows; if other machines may write the same run (its lease ran out while we slept), only those not stored yet."""
        began = time.perf_counter()
        if self.database.remote:
            self.database.insert(spec, rows)
        else:
            self.database.append(spec, rows)
        self.commits.append(time.perf_counter() - began)

    def heads(self, *, trace_id: str = "", run_ids: Iterable[str] | None = None, trace_ids: Iterable[str] | None = None) -> list[RunInfo]:
        """Runs of the workspace, of one or several traces, or with these ids; oldest first."""
        column, values = ("run_id", run_ids) if run_ids is not None else ("trace_id", trace_ids)
        if values is not None:
            return _decoded([row for part in in_parts(values) for row in self._rows(is_in(column, part))])
        return _decoded(self._rows(equals("trace_id", trace_id) if trace_id else ""))

    def some_heads(self, profile: str, where: str, most: int) -> list[RunInfo]:
        """At most `most` runs with a profile that fit a filter; oldest first."""
        own = equals("profile", profile)
        return _decoded(self._rows(f"{own} AND {where}" if where else own, most))

    def _rows(self, where: str, limit: int | None = None) -> list[dict[str, Any]]:
        if not self.database.exists(RUNS):
            return []
        return self.database.rows(RUNS, where=where, columns=["head", "started", "run_id"], limit=limit)

    def head(self, run_id: str) -> RunInfo | None:
        found = self.heads(run_ids=[run_id])
        return found[0] if found else None

    def turns(self, run_id: str, *, texts: bool = True) -> list[Turn]:
        """The stored turns in order, without gaps; turns after a gap do not count."""
        return self._turns([run_id], texts=texts)[run_id]

    def count(self) -> int:
        """Runs of the workspace, finished or not."""
        return self.database.count(RUNS)

    def stored_count(self, run_id: str) -> int:
        """How many turns are stored; cheap, for following a running replay."""
        return self.database.count(TURNS, equals("run_id", run_id)) if self.database.exists(TURNS) else 0

    def has(self, spec: TableSpec, run_id: str) -> bool:
        """Whether a table has rows of a run; cheaper than reading them."""
        return self.database.exists(spec) and bool(self.database.count(spec, equals("run_id", run_id)))

    def last_turn(self, run_id: str) -> Turn | None:
        """The newest stored turn, without its items."""
        number = self.stored_count(run_id) - 1
        where = f"{equals('run_id', run_id)} AND t = {number}"
        rows = self.database.rows(TURNS, where=where, limit=1) if number >= 0 else []
        return turn_of(rows[0], ()) if rows else None

    def first_turn(self, run_id: str, action: Action) -> int | None:
        """The first turn at which a run took this action; None if it never did."""
        where = f"{equals('run_id', run_id)} AND {equals('action', action)}"
        rows = self.database.rows(TURNS, where=where, columns=["t"]) if self.database.exists(TURNS) else []
        return min((int(row["t"]) for row in rows), default=None)

    def seconds_per_turn(self, run_id: str) -> float:
        """The mean over a run's stored turns; 0 if there are none."""
        if not self.database.exists(TURNS):
            return 0.0
        seconds = self.database.arrow(TURNS, where=equals("run_id", run_id), columns=["seconds"])["seconds"].to_pylist()
        return sum(seconds) / len(seconds) if seconds else 0.0

    def policies_by_trace(self, trace_ids: Iterable[str] | None = None) -> dict[str, list[tuple[str, bool]]]:
        """Policies that each trace (or each of these) was replayed through, oldest run first, and whether to the end; each pair once."""
        found: dict[str, dict[tuple[str, bool], None]] = {}
        filters = [""] if trace_ids is None else [is_in("trace_id", part) for part in in_parts(trace_ids)]
        columns = ["trace_id", "policy", "status", "started"]
        filters = filters if self.database.exists(RUNS) else []
        rows = [row for where in filters for row in self.database.rows(RUNS, where=where, columns=columns)]
        for row in sorted(rows, key=lambda row: str(row["started"])):
            found.setdefault(row["trace_id"], {})[row["policy"], row["status"] == "done"] = None
        return {trace_id: list(pairs) for trace_id, pairs in found.items()}

    def memories(self, run: Run) -> dict[str, Memory]:
        """The memories a run stored, by id, wherever its profile keeps them."""
        if not any(turn.memory_ids for turn in run.turns):
            return {}
        elsewhere = _memory_uri(run.head, self._folder)
        store = MemoryStore(Database(elsewhere) if elsewhere else self.database)
        return {entry.memory_id: entry for entry in store.load(run.run_id).memories}

    def run(self, run_id: str) -> Run:
        """A stored run; the error for an unknown id says what to do."""
        head = self.head(run_id)
        if head is None:
            raise InputError(f"run {run_id!r} is not in this workspace; `pamer-lab replay` creates runs and prints their ids")
        return self.runs([head])[0]

    def runs(self, heads: Sequence[RunInfo]) -> list[Run]:
        """Runs with their turns, read together."""
        turns = self._turns([head.run_id for head in heads])
        return [Run(head, tuple(turns[head.run_id])) for head in heads]

    def remove(self, run_id: str) -> None:
        """Forget a run and its memories: its row first, so that no incomplete run is ever listed. Audit rows and reviews stay."""
        for spec in (RUNS, TURNS, TEXTS):
            if self.database.exists(spec):
                self.database.delete(spec, equals("run_id", run_id))
        MemoryStore(self.database).forget_session(run_id)
        self._texts.pop(run_id, None)
        self._items.pop(run_id, None)

    def forget_after(self, run_id: str, turns: int) -> None:
        """Drop turns from number `turns` on (those after a gap)."""
        self._items.pop(run_id, None)
        if self.database.exists(TURNS):
            self.database.delete(TURNS, f"{equals('run_id', run_id)} AND t >= {int(turns)}")

    def tidy(self) -> None:
        """Merge the small files of many appends."""
        for spec in (RUNS, TURNS, TEXTS):
            if self.database.exists(spec):
                self.database.tidy(spec)

    def _turns(self, run_ids: Sequence[str], *, texts: bool = True) -> dict[str, list[Turn]]:
        found: dict[str, list[Turn]] = {run_id: [] for run_id in run_ids}
        rows = {(row["run_id"], row["t"]): row for row in self.database.rows(TURNS, where=is_in("run_id", run_ids))}
        known = self._load_texts(run_ids) if texts else {}
        for run_id, ordered in found.items():
            items: tuple[Item, ...] = ()
            while (row := rows.get((run_id, len(ordered)))) is not None:
                items = unpacked(row["items"], items, known.get(run_id, {}))
                ordered.append(turn_of(row, items))
        return found

    def _load_texts(self, run_ids: Sequence[str]) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {}
        if self.database.exists(TEXTS):
            for row in self.database.rows(TEXTS, where=is_in("run_id", run_ids)):
                found.setdefault(row["run_id"], {})[row["text_id"]] = row["text"]
        for run_id, own in found.items():
            self._texts.setdefault(run_id, set()).update(own)
        return found


def _decoded(rows: list[dict[str, Any]]) -> list[RunInfo]:
    rows.sort(key=lambda row: (row["started"], row["run_id"]))
    return [msgspec.msgpack.decode(row["head"], type=RunInfo) for row in rows]


def newest(heads: Iterable[RunInfo], policies: Sequence[str], profile: str) -> dict[str, RunInfo]:
    """The run to show for each policy: the newest with this profile, one over all turns before one with a limit."""
    found: dict[str, RunInfo] = {}
    for head in sorted(heads, key=lambda head: (head.turns == head.trace_turns, head.started)):
        if head.policy in policies and head.profile == profile:
            found[head.policy] = head
    return {policy: found[policy] for policy in policies if policy in found}


def run_row(head: RunInfo) -> dict[str, Any]:
    """A run's row in `RUNS`."""
    totals: dict[str, Any] = {name: head.totals.get(name) for name in (*TOTALS, "reduction_pct")}
    named = ("run_id", "trace_id", "question_id", "task_id", "policy", "profile", "status", "turns", "started", "demo")
    return {name: getattr(head, name) for name in named} | totals | {"head": msgspec.msgpack.encode(head)}


def _memory_uri(head: RunInfo, workspace: Path) -> str:
    """Where the memories of a run are kept, if not in the workspace; a profile that is not known here keeps none elsewhere."""
    try:
        profile = load_profile(head.profile, workspace)
        return "" if unconfirmed(profile) else profile.memory_uri
    except InputError:
        return ""
