"""The compact contexts page: the paper's table where there is no study, a real small study, and one decision point twice.

`fixtures/compact-study.json` is what `pamer-lab compact` gave for the corpus of `tests/commands/test_compact.py` with a tiny model of
random weights, two seeds.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
import streamlit as st

from pamer_lab import figures
from pamer_lab.analysis.compact import expanded_table, orderings, tradeoff
from pamer_lab.features import pace
from pamer_lab.features.pace import FILE, depth_of
from pamer_lab.figures.compact import ROOM, WIDEST, name_positions, short_name
from pamer_lab.figures.labels import box_of, to_pixels
from pamer_lab.figures.theme import LIGHT
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.models.frozen import chosen_model, model_name
from pamer_lab.models.profiles import load_profile
from pamer_lab.studies.study import Study, read_study, save_study
from pamer_lab.ui.contexts.tables import best_line
from pamer_lab.ui.shared.words import BASES
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_paths
from tests.commands.test_compact import write_corpus
from tests.pages.conftest import Visit, charts, chat, holds, linked, put, says, texts

PAGE = "pages/contexts.py"
FIXTURE = Path(__file__).resolve().parents[1] / "fixtures" / "compact-study.json"


@pytest.fixture(scope="module")
def study() -> Study:
    return read_study(FIXTURE)


@pytest.mark.usefixtures("no_demo")
def test_without_a_study_the_page_says_how_to_make_one_and_shows_the_published_table(
    visit: Visit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pamer_lab.analysis.published.SAMPLE_FOLDER", tmp_path)
    app = visit(PAGE)
    assert not app.exception
    assert not app.error
    assert len(app.info) == 2, "there is no study, and there are no traces"
    assert any("pamer-lab compact" in code.value for code in app.code)
    assert ":orange-badge[Published]" in texts(app) and charts(app) == ["published-compact"]
    assert "traces" in linked(app)


def test_a_study_shows_its_trade_off_its_best_and_its_pairs(visit: Visit, workspace: Workspace, study: Study) -> None:
    name = save_study(workspace, study)
    app = visit(PAGE, **{"compact-study": name})
    assert not app.exception
    assert not app.error
    lines = expanded_table(study)
    best = lines[best_line(lines, "compression_auroc") or 0]
    assert says(app, best["label"], f"{best['compression_auroc']:.3f}")
    with_published = texts(app)
    frame = next(frame.value for frame in app.dataframe if "Condition" in frame.value.columns)
    assert frame["C AUROC"].tolist() == [line["compression_auroc"] for line in lines]
    assert any("published" in name for name in frame.columns)
    pairs = next(frame.value for frame in app.dataframe if "Sign-flip p" in frame.value.columns)
    assert "+0.0058" in set(pairs["Published difference"])
    parts = app.segmented_control(key="more").options
    app.segmented_control(key="more").set_value(parts[1]).run()
    controls = next(frame.value for frame in app.dataframe if "Retriever" in frame.value.columns)
    assert controls["Published R AUROC"].tolist()[:2] == [0.752, 0.753]
    assert controls["Differs from Recency"].tolist()[1] == "0 of 84"
    app.segmented_control(key="more").set_value(parts[2]).run()
    budget = next(frame.value for frame in app.dataframe if "P95" in frame.value.columns)
    assert budget["Published mean"].dropna().tolist() == [5540, 8765, 9167]
    assert budget["Maximum"].max() < 8192
    assert budget["Cap binds at"].tolist()[1:] == ["0 of 84", "0 of 84", ""]
    app.segmented_control(key="more").set_value(parts[3]).run()
    found = orderings(study)
    held, tested = sum(row["state"] == "holds" for row in found), sum(row["state"] != "not tested" for row in found)
    assert tested == len(found) - 1 and says(app, held, tested, 1)
    app.segmented_control(key="more").set_value(parts[0])
    app.toggle(key="published").set_value(False).run()
    assert len(texts(app)) < len(with_published), "the sentence about the paper's marks is gone"
    frame = next(frame.value for frame in app.dataframe if "Condition" in frame.value.columns)
    assert not any("published" in name for name in frame.columns)


def test_one_decision_point_under_two_conditions_by_link(visit: Visit, workspace: Workspace, study: Study, tmp_path: Path) -> None:
    import_paths([write_corpus(tmp_path / "corpus.jsonl")], workspace)
    save_study(workspace, study)
    entry = next(entry for entry in study.decisions if entry["t"] == 7)
    app = visit(PAGE, trace=entry["trace_id"], point="7", left="recent2", right="raw-top3")
    assert not app.exception
    said = texts(app)
    assert "**Recent2**" in said
    assert "**Selective Raw Top3**" in said
    assert ("compression not" in said) == (not entry["compression"])
    blocks = next(frame.value for frame in app.dataframe if "Differs" in frame.value.columns)
    assert len(blocks) == 8
    assert blocks["Recent2"].tolist()[1:] == ["left out"] * 5 + ["recent"] * 2
    chosen = [word for word in blocks["Selective Raw Top3"] if word.startswith("evidence")]
    assert len(chosen) == 3
    assert list(blocks["Differs"]).count("≠") == 3
    assert len(re.findall(r"\bby Recent2\b", said)) == 3


@pytest.fixture
def small_embedder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In the place of the embedded one; nothing that was chosen with either stays for another test."""
    st.cache_resource.clear()
    monkeypatch.setattr("pamer_lab.ui.contexts.pair.load_embedder", lambda *_: HashingEmbedder(128))
    yield
    st.cache_resource.clear()


@pytest.mark.usefixtures("small_embedder")
def test_the_view_has_the_studys_caps_and_says_that_its_models_are_others(
    visit: Visit, workspace: Workspace, study: Study, tmp_path: Path
) -> None:
    import_paths([write_corpus(tmp_path / "corpus.jsonl")], workspace)
    save_study(workspace, study)
    app = visit(PAGE, trace=study.decisions[0]["trace_id"], point="7", left="embedding-top3-cap60", right="recent2")
    assert not app.exception
    said = texts(app)
    assert "**Embedding Top3, cap 60 tokens**" in said
    assert says(app, "` hashing-256 `", "` hashing-128 `")
    assert says(app, "` model `")


def test_a_study_form_takes_the_pace_that_was_measured_here(
    visit: Visit, workspace: Workspace, study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "busy", lambda: 1.0)
    import_paths([write_corpus(tmp_path / "corpus.jsonl")], workspace)
    profile, name = load_profile("embedded"), save_study(workspace, study)
    measured = {f"{model_name(chosen_model(profile.frozen_model))} cpu": {"blocks": 2_247.0 * depth_of(profile)}}
    (workspace.path / FILE).write_text(json.dumps(measured))
    app = visit(PAGE, **{"compact-study": name})
    app.session_state["make-study"] = True
    app.run()
    assert says(app, "2,247", BASES["measured"])


def test_what_cannot_be_shown_is_said(visit: Visit, workspace: Workspace) -> None:
    put(workspace, one=chat(1), two=chat(5))
    rows = {row["turns"]: row["trace_id"] for row in workspace.trace_rows()}
    app = visit(PAGE, trace=rows[1])
    assert app.info and "point" not in {field.key for field in app.number_input}
    app = visit(PAGE, trace=rows[5], point="99")
    assert holds(app.warning[0].value, 99, 4) and "point" in {field.key for field in app.number_input}
    app = visit(PAGE, trace=rows[5], left="bank-recent5", **{"compact-study": "compact-gone"})
    assert "compact-gone" in app.error[0].value
    assert says(app, "mean", 3), "they have no text to show"


def test_names_in_the_chart_touch_neither_each_other_nor_a_mark(study: Study) -> None:
    points = [point for point in tradeoff(study) if point["target"] == "recall"]
    low, high = min(point["auroc"] for point in points) - 0.02, max(point["auroc"] for point in points) + 0.02
    area = ((0.0, float(WIDEST)), (low, high))
    pixels = to_pixels([(point["tokens_pct"], point["auroc"]) for point in points], ROOM, area)
    found = zip(name_positions(points, (low, high)), pixels, points, strict=True)
    boxes = [box_of(position, at, short_name(point["label"])) for position, at, point in found if position]
    assert len(boxes) > 8 and all(one.shared(other) == 0 for one, other in combinations(boxes, 2))


def test_every_group_has_its_own_mark(study: Study) -> None:
    figure = figures.tradeoff(tradeoff(study), LIGHT, published=True, deviations=True)
    shown = {trace.name: trace.marker.symbol for trace in figure.data if trace.showlegend and "published" not in trace.name}
    assert len(set(shown.values())) == len(shown) == 8


def test_a_decision_point_is_shown_with_the_history_that_the_study_used(visit: Visit, workspace: Workspace, study: Study) -> None:
    events = [{"kind": "compaction", "before_message": 8, "text": "told so far", "replaced": [[2, 8]]}]
    put(workspace, run=chat(6, pamer_lab=1, events=events))
    trace_id = workspace.trace_rows()[0]["trace_id"]
    recorded = {"settings": study.settings | {"history": "recorded"}, "corpus": study.corpus | {"recorded_traces": 1}}
    for made, told in ((study, False), (replace(study, **recorded), True)):
        name = save_study(workspace, made)
        app = visit(PAGE, trace=trace_id, point="4", left="full", right="recent2", **{"compact-study": name})
        assert not app.exception
        frame = next(frame.value for frame in app.dataframe if "Differs" in frame.value.columns)
        assert ("block 1" in frame["Item"].tolist()) == (not told)
