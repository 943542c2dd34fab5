"""The document, its inert form, its tables and the command; the page itself is tested in Chromium (`test_share_page.py`)."""

import hashlib
import html
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from pamer_lab.audit import AuditStore, ReviewStore
from pamer_lab.cli import main
from pamer_lab.errors import FormatError, InputError
from pamer_lab.factory import Parts
from pamer_lab.report.bundle import bundle
from pamer_lab.report.config import ReplaySection, ReportConfig, StudySection, config_json, read_config
from pamer_lab.report.document import build
from pamer_lab.report.making import make, with_runs, write
from pamer_lab.report.page import page
from pamer_lab.report.replay_part import choice_of, letter_runs
from pamer_lab.report.texts import fit, json_text, shortened, size_in_file
from pamer_lab.reviewer_mode import READONLY_VARIABLE
from pamer_lab.runs.values import FIXED_ACTIONS, RunInfo
from pamer_lab.trajectory.values import Label, Trace
from pamer_lab.workspace import Workspace
from tests.report.world import HOSTILE, everything, filled, hostile_trace
from tests.runs.making import call, estimated, make_trace

Reported = tuple[Workspace, list[RunInfo]]
PLAIN = ["base", "sliding-window:3", "periodic-summary:3"]
KEY = "sk-" + "proj-" + "Qq7w" * 9


def _csv(archive: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: opened.read(name) for name in opened.namelist() if name.endswith(".csv")}


def _secret_trace() -> Trace:
    blocks = [call(n, f"clue {n}", f"The key is {KEY}, ask ada@example.org in /home/ada/x; document {n}") for n in range(5)]
    return make_trace(blocks, trace_id="t-secret", task=f"Use {KEY} to look")


def test_no_text_can_leave_its_data_element(reported: Reported) -> None:
    workspace, heads = reported
    text = page(build(everything(heads), workspace))
    body = text[text.index("<body>") :]
    assert len(re.findall(r"<script", body)) == len(re.findall(r"</script>", body)) == 2 + 6 + 2  # manifest, texts, about..., the program
    elements = re.findall(r'<script type="application/json" id="[a-z0-9-]+">(.*?)</script>', body, re.S)
    assert len(elements) == 9
    assert not any(mark in element for element in elements for mark in ("<", ">", "&", "\u2028", "\u2029"))
    texts = json.loads(next(part for part in elements if "right to left" in part and part.startswith('{"')))
    shown = "\n".join(texts.values()) if all(isinstance(value, str) for value in texts.values()) else json.dumps(texts)
    assert HOSTILE[0] in shown and HOSTILE[4].split()[0] in shown


def test_the_policy_allows_the_pages_own_script_and_style_and_nothing_else(reported: Reported) -> None:
    workspace, heads = reported
    text = page(build(everything(heads), workspace))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy and policy[1].startswith("default-src &#x27;none&#x27;; script-src &#x27;sha256-") and "unsafe" not in policy[1]
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", re.sub(r"<script type=.*?</script>", "", text, flags=re.S))


def test_json_for_a_page_means_the_same_as_it_did() -> None:
    value = {"a": [*HOSTILE, 'quote " and \\ back'], "n": 1.5, "none": None}
    assert json.loads(json_text(value)) == value
    assert json.loads(json_text("half a \ud83d character")) == "half a \ufffd character"
    assert json.loads(json_text([float("nan"), {"a": float("inf")}])) == [None, {"a": None}]


def test_without_text_the_words_are_gone_and_the_numbers_stay(reported: Reported) -> None:
    workspace, heads = reported
    full, bare = (make(everything(heads, text=text), workspace) for text in (True, False))
    assert len(bare.html) < len(full.html)
    assert b"word8" in full.html and b"word8" not in bare.html and b"Document D0001" not in bare.html
    turns = [document.sections[0]["runs"][3]["turns"] for document in (full.document, bare.document)]
    assert [turn["active"] for turn in turns[0]] == [turn["active"] for turn in turns[1]]


def test_a_report_never_grows_past_its_limit_and_says_what_was_cut(tmp_path: Path) -> None:
    trace = msgspec.structs.replace(hostile_trace(12, words=9_000), labels=(Label(3, "recall", origin="hindsight"),))
    workspace, heads = filled(tmp_path / "w", trace, ["base"])
    runs = tuple(choice_of(head) for head in heads)
    report = make(ReportConfig(sections=(ReplaySection(trace_id="t-hostile", runs=runs),), max_mb=0.6), workspace)
    assert len(report.html) <= 600_000 and report.document.about["text"]["cut"] == 12
    assert any("[… " in text for text in report.document.texts.values())
    assert [label["origin"] for label in report.document.sections[0]["trace"]["labels"]] == ["hindsight"]
    with pytest.raises(InputError, match="--max-mb"):
        make(ReportConfig(sections=(StudySection(sample="layerwise"),) * 6, max_mb=0.51), workspace)


@pytest.mark.parametrize("text", ["a" * 5_000, "<" * 5_000, "ünï" * 2_000, "\u4e16\u754c" * 2_000])
def test_a_shortened_text_keeps_its_ends_within_the_limit(text: str) -> None:
    short = shortened(text, 1_000)
    assert size_in_file(short) <= 1_100 and short[0] == text[0] and short[-1] == text[-1] and "\n[… " in short
    fitted = fit([text, "small", "small too"], 2_000)
    assert fitted.cut == 1 and sum(size_in_file(item) for item in fitted.words.values()) <= 2_000
    assert all(hashlib.sha256(item.encode()).hexdigest()[:24] == name for name, item in fitted.words.items())


def test_states_are_packed_without_loss() -> None:
    assert letter_runs("SSSAA.") == "S3 A2 .1" and letter_runs("") == ""


def test_the_zip_holds_the_numbers_and_a_config_that_gives_the_same_csv_in_a_fresh_workspace(tmp_path: Path) -> None:
    first, heads = filled(tmp_path / "one", policies=PLAIN, parts=Parts())
    config = everything(heads)
    archive = bundle(build(config, first))
    file = tmp_path / "config.json"
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        file.write_bytes(opened.read("config.json"))
        sums = dict(reversed(line.split("  ")) for line in opened.read("SHA256SUMS").decode().splitlines())
        assert all(hashlib.sha256(opened.read(name)).hexdigest() == digest for name, digest in sums.items())
        assert FIXED_ACTIONS in opened.read("README.txt").decode()
        parquet = pl.read_parquet(io.BytesIO(opened.read("turns.parquet")))
    second = Workspace(tmp_path / "two")
    second.add_traces([hostile_trace()], estimated(), demo=True)
    again = bundle(build(with_runs(read_config(file), second), second))
    assert _csv(again) == _csv(archive) and len(_csv(archive)) >= 8
    assert parquet.height == 16 * 3 and parquet["active_tokens"].sum() > 0


def test_pamer_runs_made_in_another_workspace_give_the_same_csv(reported: Reported, tmp_path: Path) -> None:
    workspace, heads = reported
    other, again = filled(tmp_path / "other")
    first, second = (_csv(bundle(build(everything(made), lab))) for made, lab in ((heads, workspace), (again, other)))
    assert {"turns.csv", "items.csv", "selections.csv", "growth_means.csv"} <= first.keys()
    assert {name: body for name, body in first.items() if name != "reviews.csv"} == {
        name: body for name, body in second.items() if name != "reviews.csv"
    }


def test_a_config_whose_run_comes_out_otherwise_here_is_refused(tmp_path: Path) -> None:
    workspace, heads = filled(tmp_path / "one", policies=["base"])
    other = choice_of(heads[0]).model_copy(update={"run_id": "r-elsewhere"})
    with pytest.raises(InputError, match="differ"):
        with_runs(ReportConfig(sections=(ReplaySection(trace_id="t-hostile", runs=(other,)),)), workspace)


def test_a_title_shows_direction_overrides(reported: Reported) -> None:
    config = ReportConfig(sections=(StudySection(sample="controls"),), title="\u202egpj.exe\u2066")
    text = make(config, reported[0]).html.decode()
    assert "<title>⟨U+202E⟩gpj.exe⟨U+2066⟩ · PaMER Lab</title>" in text


def test_a_configuration_is_read_as_it_was_written_and_unknown_keys_are_refused(reported: Reported, tmp_path: Path) -> None:
    config = everything(reported[1], title="A title", redact="all")
    file = tmp_path / "c.json"
    file.write_text(config_json(config))
    assert read_config(file) == config
    for broken in (
        '{"sections": []}',
        '{"sections": [{"kind": "secret"}]}',
        '{"sections": [{"kind": "published", "table": "x", "path": "/"}]}',
        "[",
        "",
    ):
        file.write_text(broken)
        with pytest.raises(InputError):
            read_config(file)


@pytest.mark.parametrize(
    ("choice", "gone", "left"), [("keys", [KEY], ["ada@example.org"]), ("all", [KEY, "ada@example.org", "/home/ada"], [])]
)
def test_secrets_are_replaced_in_the_page_and_in_the_zip_and_the_file_says_so(
    tmp_path: Path, workspace: Workspace, choice: str, gone: list[str], left: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    filled(workspace.path, _secret_trace(), ["base", "periodic-summary:2"])
    out = tmp_path / "r.html"
    assert main(["report", "t-secret", "--redact", choice, "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    with zipfile.ZipFile(out.with_suffix(".zip")) as opened:
        everywhere = out.read_bytes() + b"".join(opened.read(name) for name in opened.namelist())
    assert not any(secret.encode() in everywhere for secret in gone) and all(text.encode() in everywhere for text in left)
    assert b"[redacted: API key 1]" in everywhere and KEY not in json.dumps(told)
    assert told["found"][0] == {"kind": "API key", "redacted": True, "different": 1, "places": told["found"][0]["places"]}
    assert any("block 2" in finding["place"] for finding in told["findings"])


def test_a_scan_writes_nothing(tmp_path: Path, workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    filled(workspace.path, _secret_trace(), ["base"])
    assert main(["report", "t-secret", "--scan", "--out", str(tmp_path / "r.html")]) == 0
    assert re.search(r"API key\D+1\b", capsys.readouterr().out) and not list(tmp_path.glob("r.*"))


def test_the_command_takes_runs_studies_and_tables_and_refuses_what_it_does_not_know(
    tmp_path: Path, workspace: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, heads = filled(workspace.path, policies=["base", "sliding-window:3"])
    out = tmp_path / "r.html"
    monkeypatch.setenv(READONLY_VARIABLE, "1")  # a report only reads
    arguments = [
        "report",
        heads[0].run_id,
        "--growth",
        "--study",
        "controls",
        "--published",
        "ablation",
        "--no-text",
        "--title",
        "Two policies",
        "--prices",
        "no-cache",
        "--max-mb",
        "3",
        "--out",
        str(out),
        "--json",
    ]
    assert main(arguments) == 0
    assert "--title 'Two policies' --prices no-cache --max-mb 3 " in html.unescape(out.read_text()) and str(tmp_path) not in out.read_text()
    told = json.loads(capsys.readouterr().out)
    assert told["sections"] == ["replay", "growth", "study", "published"] and told["path"] == str(out)
    assert told["bytes"] == out.stat().st_size and told["zip_bytes"] == out.with_suffix(".zip").stat().st_size
    for bad in (
        ["r-none"],
        [],
        ["--published", "none"],
        ["--study", "none"],
        [heads[0].run_id, "--config", "x.json"],
        [heads[0].run_id, "--out", "x.pdf"],
    ):
        assert main(["report", *bad]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_both_files_are_whole_or_not_there(reported: Reported, tmp_path: Path) -> None:
    workspace, _ = reported
    report = make(ReportConfig(sections=(StudySection(sample="controls"),)), workspace)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match=re.escape(str(tmp_path / "file"))):
        write(report, tmp_path / "file" / "r.html")
    write(report, tmp_path / "r.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "r.html", "r.zip"]


def _offline(audit_id: str, /, **more: Any) -> dict[str, Any]:
    review = {
        "audit_id": audit_id,
        "reviewer": "Bo",
        "verdict": "right",
        "steps": [2, 1],
        "note": HOSTILE[0],
        "created_at": "2026-11-16T05:00:00.123Z",
    }
    return {"format": "pamer-lab-reviews", "version": 1, "report_id": "x", "exported_at": "now", "reviews": [review | more]}


def test_reviews_of_a_share_page_come_into_the_lab_once_and_edits_become_revisions(
    tmp_path: Path, workspace: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(workspace.path)
    audit_id = AuditStore(workspace.database).rows()[1]["audit_id"]
    file = tmp_path / "reviews.json"
    monkeypatch.setenv(READONLY_VARIABLE, "1")  # reviews may be written in reviewer mode
    value = _offline(audit_id)
    value["reviews"].append(value["reviews"][0] | {"audit_id": "a-elsewhere"})
    file.write_text(json.dumps(value))
    for added in (1, 0):
        assert main(["audit", "import", str(file), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["added"] == {"selection": 0, "review": added, "unknown": 1}
    file.write_text(json.dumps(_offline(audit_id, verdict="wrong step", created_at="2026-11-16T06:00:00Z")))
    assert main(["audit", "import", str(file)]) == 0
    history = ReviewStore(workspace.database).history(audit_id, "Bo")
    assert [(review.revision, review.verdict, review.steps, review.note) for review in history] == [
        (0, "right", (1, 2), HOSTILE[0]),
        (1, "wrong step", (1, 2), HOSTILE[0]),
    ]
    assert history[0].created_at.isoformat() == "2026-11-16T05:00:00.123000+00:00"


@pytest.mark.parametrize(
    "more",
    [
        {"verdict": "good"},
        {"steps": [-1]},
        {"steps": "1"},
        {"reviewer": " "},
        {"created_at": "2026-11-16T05:00:00"},
        {"extra": 1},
        {"audit_id": "a-none"},
    ],
)
def test_a_file_of_reviews_that_makes_no_sense_is_refused_with_its_place(more: dict[str, Any], tmp_path: Path, reported: Reported) -> None:
    from pamer_lab.audit import import_audit

    workspace, _ = reported
    audit_id = AuditStore(workspace.database).rows()[1]["audit_id"]
    file = tmp_path / "reviews.json"
    file.write_text(json.dumps(_offline(audit_id, **more)))
    with pytest.raises((FormatError, InputError)) as refused:
        import_audit(workspace.database, file)
    assert "reviews.json" in str(refused.value) and not ReviewStore(workspace.database).history(audit_id)
