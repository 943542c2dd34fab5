import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from pamer_lab.audit import AuditStore, ReviewStore, cohens_kappa, export_audit, import_audit, quality
from pamer_lab.audit.reviews import Review
from pamer_lab.audit.store import restored_tokens, steps_of
from pamer_lab.audit.tables import RESTORED, REVIEWS, SELECTIONS
from pamer_lab.bench.crash import PROCESSES
from pamer_lab.cli import main
from pamer_lab.controller.router import Candidate, SelectionRecord
from pamer_lab.errors import InputError
from pamer_lab.redaction import Scan
from pamer_lab.storage import Database, TableSpec

ODD = 'a "quoted", text\nwith lines\r\n; and ünïcode; =1+1'


def record(turn: int, *steps: int, outcome: Any = "accepted") -> SelectionRecord:
    candidates = tuple(Candidate("m1", step, 1 / (rank + 1), rank) for rank, step in enumerate((4, 2, 7), 1))
    return SelectionRecord(
        session_id="it's",
        turn=turn,
        table_version=3,
        query=ODD,
        router="r",
        agent="a",
        answer="{}",
        outcome=outcome,
        reason=ODD if outcome == "refused" else "fine",
        candidates=candidates,
        summary_ids=("m1",),
        steps=steps,
        near_misses=candidates[1:],
        cache="miss",
        cited_steps=steps,
        chosen_tokens=10,
        covered_tokens=40,
    )


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """Three selections, two reviewers, one edited review."""
    database = Database(tmp_path / "lance")
    audit, reviews = AuditStore(database, run_id="run 1", trace_id="t"), ReviewStore(database)
    for entry in (record(5, 4), record(6, 2, 7), record(7, outcome="refused")):
        audit.record(entry)
    first, second, _ = (row["audit_id"] for row in audit.rows())
    reviews.save(first, "Ada", "right", (4,))
    reviews.save(first, "Ada", "missing evidence", (4, 2), ODD)
    reviews.save(first, "Bo  Lee", "right")
    reviews.save(second, "Ada", "unnecessary step", (2,))
    return database


def test_rows_come_back_in_order_with_everything_spec_7_asks_for(database: Database) -> None:
    audit = AuditStore(database)
    rows = audit.rows(run_id="run 1")
    assert [row["turn"] for row in rows] == [5, 6, 7] and rows[2]["reason"] == ODD
    full = audit.row(rows[0]["audit_id"])
    assert full is not None and full["query"] == ODD and full["candidates"][0] == {"memory_id": "m1", "step": 4, "score": 0.5, "rank": 1}
    assert audit.rows(run_id="other' OR true") == [] and audit.row("none") is None


def test_an_edit_is_a_new_revision_and_the_old_one_stays(database: Database) -> None:
    reviews = ReviewStore(database)
    first = AuditStore(database).rows()[0]["audit_id"]
    assert [(review.revision, review.verdict) for review in reviews.history(first, "Ada")] == [(0, "right"), (1, "missing evidence")]
    assert {review.reviewer: review.revision for review in reviews.current() if review.audit_id == first} == {"Ada": 1, "Bo Lee": 0}


@pytest.mark.parametrize(
    ("reviewer", "verdict", "steps"), [("", "right", ()), ("A", "good", ()), ("A", "right", (1, 1)), ("A", "right", (-1,))]
)
def test_a_review_that_makes_no_sense_is_refused(database: Database, reviewer: str, verdict: str, steps: tuple[int, ...]) -> None:
    with pytest.raises(InputError):
        ReviewStore(database).save("a", reviewer, verdict, steps)


def _review(folder: str, who: int, barrier: Any) -> None:
    reviews = ReviewStore(Database(folder))
    for number in range(8):
        barrier.wait(120)
        reviews.save("a-1", "One Person", "right", (who,), f"{who}-{number}")


def test_two_windows_saving_at_the_same_moment_lose_nothing(tmp_path: Path) -> None:
    barrier = PROCESSES.Barrier(2)
    processes = [PROCESSES.Process(target=_review, args=(str(tmp_path), who, barrier)) for who in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
    history = ReviewStore(Database(tmp_path)).history("a-1")
    assert sorted(review.note for review in history) == sorted(f"{who}-{number}" for who in range(2) for number in range(8))
    assert [review.revision for review in history] == list(range(16))


def said(reviewer: str, *verdicts: str) -> list[Review]:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    return [Review(f"a{number}", reviewer, 0, verdict, (), "", when) for number, verdict in enumerate(verdicts)]  # type: ignore[arg-type]


def test_kappa_is_the_textbook_value_or_none_with_the_reason() -> None:
    one = said("A", *["right"] * 25, *["wrong step"] * 25)
    other = said("B", *["right"] * 20, *["wrong step"] * 5, *["right"] * 10, *["wrong step"] * 15)
    found = cohens_kappa([*one, *other], "A", "B")
    assert found.common == 50 and found.agreed == pytest.approx(0.7) and found.kappa == pytest.approx(0.4)
    assert cohens_kappa(one, "A", "B").reason
    same = cohens_kappa([*said("A", "right", "right"), *said("B", "right", "right")], "A", "B")
    assert same.kappa is None and same.agreed == 1 and "chance" in same.reason
    assert cohens_kappa([*said("A", "right"), *said("B", "right")], "A", "B").kappa is None


def test_quality_counts_selected_steps_against_the_reviewers(database: Database) -> None:
    found = quality(ReviewStore(database).current(), steps_of(AuditStore(database).rows()))
    assert found.reviews == 3
    assert found.precision == pytest.approx(3 / 4) and found.recall == pytest.approx(3 / 4) and found.exact == pytest.approx(1 / 3)
    assert quality([], {}).precision is None


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_what_is_exported_comes_back_the_same_and_only_once(database: Database, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"audit.{ending}"
    assert export_audit(database, file, Scan("keys")) == 7
    other = Database(tmp_path / "other")
    assert import_audit(other, file) == {"selection": 3, "review": 4}
    assert AuditStore(other).full_rows() == AuditStore(database).full_rows()
    assert ReviewStore(other).all() == ReviewStore(database).all()
    assert import_audit(other, file) == {"selection": 0, "review": 0}


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_an_exported_file_says_what_the_scan_replaced_and_still_comes_back(database: Database, tmp_path: Path, ending: str) -> None:
    first = ReviewStore(database).all()[0]
    ReviewStore(database).save(first.audit_id, "Eve", "right", (), "ask eve@example.org")
    file, other = tmp_path / f"audit.{ending}", Database(tmp_path / "other")
    export_audit(database, file, Scan("all"))
    assert import_audit(other, file)["review"] == 5
    assert "ask [redacted: e-mail address 1]" in {review.note for review in ReviewStore(other).all()}
    read = {"csv": pl.read_csv, "jsonl": pl.read_ndjson, "parquet": pl.read_parquet}[ending]
    said = read(file).filter(pl.col("table") == "scan")["note"].to_list()
    assert len(said) == 1 and "e-mail address" in said[0] and "eve@" not in said[0]


@pytest.mark.parametrize(("name", "body"), [("a.csv", b"x,y\n1,2\n"), ("a.jsonl", b"{broken"), ("a.parquet", b"no"), ("a.txt", b"")])
def test_a_file_of_another_kind_is_refused_in_one_sentence(tmp_path: Path, name: str, body: bytes) -> None:
    (tmp_path / name).write_bytes(body)
    with pytest.raises(InputError):
        import_audit(Database(tmp_path / "lance"), tmp_path / name)


def test_the_command_exports_imports_and_measures(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PAMER_LAB_HOME", str(tmp_path))
    file = str(tmp_path / "out.csv")
    assert main(["audit", "export", file]) == 0 and "7 rows" in capsys.readouterr().out
    assert main(["audit", "import", file, "--json"]) == 0 and '"selection":0' in capsys.readouterr().out
    assert main(["audit", "agreement"]) == 0 and re.search(r"Ada .*Bo Lee\b.*\b1\b", capsys.readouterr().out)
    assert main(["audit", "list", "--run", "run 1"]) == 0 and capsys.readouterr().out.count("turn") == 3
    assert main(["audit", "export"]) == 2 and main(["audit", "import", str(tmp_path / "none.csv")]) == 2


@pytest.mark.parametrize(("old", "new"), [('"verdict": "right"', '"verdict": "fine"'), ('"outcome": "accepted"', '"outcome": "<b>"')])
def test_a_file_with_a_word_that_nobody_knows_adds_nothing(database: Database, tmp_path: Path, old: str, new: str) -> None:
    file = tmp_path / "audit.jsonl"
    export_audit(database, file, Scan("keys"))
    file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    other = Database(tmp_path / "other")
    with pytest.raises(InputError, match=r"right|accepted"):
        import_audit(other, file)
    assert AuditStore(other).rows() == [] and ReviewStore(other).all() == []


OLDER = TableSpec(SELECTIONS.name, pa.schema([column for column in SELECTIONS.schema if column not in RESTORED]), SELECTIONS.key)
"""The table before it said what was restored."""


def test_rows_from_before_restored_tokens_were_kept_stay_and_new_ones_join_them(tmp_path: Path, database: Database) -> None:
    (old, *_) = AuditStore(database).full_rows()
    workspace = tmp_path / "older"
    Database(workspace).append(OLDER, [{name: old[name] for name in OLDER.schema.names}])
    audit = AuditStore(Database(workspace), run_id="new")
    (row,) = audit.rows()
    assert (row["restored_tokens"], row["restored_in_part"]) == (None, None) and restored_tokens(row) == row["chosen_tokens"] == 10
    audit.record(replace(record(9, 4), restored_tokens=6, restored_in_part=(4,)))
    (new,) = AuditStore(Database(workspace)).rows(run_id="new")
    assert (restored_tokens(new), new["restored_in_part"]) == (6, [4]) and len(audit.rows()) == 2


def test_a_file_exported_before_restored_tokens_were_kept_can_be_imported(tmp_path: Path, database: Database) -> None:
    file, other = tmp_path / "old.csv", Database(tmp_path / "other")
    export_audit(database, file, Scan("none"))
    pl.read_csv(file, infer_schema=False).drop("restored_tokens", "restored_in_part").write_csv(file)
    assert import_audit(other, file)["selection"] == 3
    assert {(row["restored_tokens"], tuple(row["restored_in_part"])) for row in AuditStore(other).rows()} == {(None, ())}


def test_the_check_lists_affected_reviews_and_changes_none(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PAMER_LAB_HOME", str(tmp_path))
    before = ReviewStore(database).all()
    assert main(["audit", "check", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["reviews"] == 3 and [(one["reviewer"], one["doubt"], one["chosen"]) for one in found["doubtful"]] == [
        ("Bo Lee", "steps lost", [4])
    ]
    assert ReviewStore(database).all() == before
    ReviewStore(database).save(found["doubtful"][0]["audit_id"], "Bo Lee", "right", (4,), as_shown=True)
    assert main(["audit", "check"]) == 0


def test_reviews_from_before_forms_noted_what_they_showed_are_read_and_marked(tmp_path: Path) -> None:
    names = [name for name in REVIEWS.schema.names if name != "as_shown"]
    old = TableSpec(name=REVIEWS.name, key=REVIEWS.key, schema=pa.schema([REVIEWS.schema.field(name) for name in names]))
    when = datetime(2026, 1, 1, tzinfo=UTC)
    row = {"audit_id": "a-1", "reviewer": "Ada", "revision": 0, "verdict": "right", "steps": [], "note": "", "created_at": when}
    Database(tmp_path).insert(old, [row])
    store = ReviewStore(Database(tmp_path))
    assert [review.as_shown for review in store.current()] == [None]
    assert store.save("a-1", "Ada", "right", (4,), as_shown=True).revision == 1
