"""The layerwise page: the sample study, a study of the workspace, its threshold, links, and making one from here."""

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from pamer_lab import figures
from pamer_lab.analysis.background import StudyJobs
from pamer_lab.analysis.published import sample_study
from pamer_lab.errors import InputError
from pamer_lab.figures.layerwise import Shown
from pamer_lab.figures.theme import LIGHT
from pamer_lab.probes.margins import confusion, unpack
from pamer_lab.runs.hindsight import labelled
from pamer_lab.studies.study import Study, save_study
from pamer_lab.trajectory.labels import HINDSIGHT
from pamer_lab.trajectory.values import Label
from pamer_lab.ui.shared.studies import FULL_HISTORY, RECORDED_HISTORY
from pamer_lab.ui.shared.text import DEMO
from pamer_lab.workspace import Workspace
from tests.analysis.making import control_study, layer_study
from tests.commands.test_studies import write_corpus
from tests.pages.conftest import Visit, charts, holds, put, says, sentences, texts

PAGE = "pages/signals.py"


@pytest.fixture(scope="module")
def study() -> Study:
    return layer_study()


def counts(app: AppTest) -> list[dict[str, object]]:
    return [row for frame in app.dataframe if "Hits" in frame.value.columns for row in frame.value.to_dict("records")]


@pytest.mark.usefixtures("no_demo")
def test_an_empty_workspace_shows_the_sample_study_and_says_what_it_stands_on(visit: Visit) -> None:
    app = visit(PAGE)
    assert not app.exception
    assert not app.error
    said = texts(app)
    assert ":gray-badge[demo]" in said and sum(caption.value.endswith(DEMO) for caption in app.caption) >= 2
    assert any("±" in element.proto.help for element in app.markdown)
    assert says(app, "5 of 5")
    assert says(app, FULL_HISTORY) and {"layers-auroc", "layers-gap"} <= set(charts(app))
    finals = [row for row in sample_study("layerwise").rows if row["name"] == "final last"]
    assert len(finals) == 2 and all(f"{row['mean']:.3f} ± {row['sd']:.3f}" in said for row in finals)


def test_a_study_of_the_workspace_comes_first_with_scores_and_counts(visit: Visit, workspace: Workspace, study: Study) -> None:
    save_study(workspace, study)
    save_study(workspace, control_study())
    app = visit(PAGE)
    assert not app.exception
    said = texts(app)
    assert says(app, "last tool type") and ":gray-badge[demo]" not in said and not app.info
    row = next(row for row in study.rows if row["name"] == "final last" and row["target"] == "compression")
    expected = confusion(unpack(row))
    assert counts(app)[0] | {"Hits": expected.hits, "Misses": expected.misses, "False alarms": expected.false_alarms} == counts(app)[0]


def test_a_study_of_recorded_histories_says_so(visit: Visit, workspace: Workspace, study: Study) -> None:
    corpus = study.corpus | {"history": "recorded", "recorded_traces": 3}
    save_study(workspace, replace(study, settings=study.settings | {"history": "recorded"}, corpus=corpus))
    said = texts(visit(PAGE))
    assert holds(said, RECORDED_HISTORY, 3, study.corpus["traces"])
    assert FULL_HISTORY not in said


def test_scores_that_cannot_be_read_are_a_sentence_in_their_own_part(
    visit: Visit, workspace: Workspace, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(row: object) -> None:
        raise InputError("the kept scores are damaged")

    monkeypatch.setattr("pamer_lab.ui.signals.scores.unpack", damaged)
    save_study(workspace, study)
    app = visit(PAGE)
    assert "the kept scores are damaged" in app.error[0].value and not app.exception
    assert "layers-auroc" in charts(app) and app.expander, "the rest of the page stands"


def test_moving_the_threshold_changes_the_counts_and_stands_in_the_link(visit: Visit, workspace: Workspace, study: Study) -> None:
    save_study(workspace, study)
    app = visit(PAGE)
    app.slider(key="shift").set_value(4.0).run()
    moved = [row for row in counts(app) if "+4.00" in str(row["Threshold"])]
    assert len(moved) == 2
    assert all(row["Hits"] <= 2 for row in moved)  # type: ignore[operator]
    again = visit(PAGE, shift="4.0", seed="1", layer="block_1", pooling="mean")
    assert says(again, "layer 1", "mean") and not says(app, "layer 1", "mean")
    assert len(counts(again)) == 4


def test_a_link_to_a_missing_study_says_which_and_a_study_without_scores_how_to_get_them(
    visit: Visit, workspace: Workspace, study: Study
) -> None:
    app = visit(PAGE, **{"layerwise-study": "layerwise-gone"})
    assert "layerwise-gone" in app.error[0].value
    assert not app.exception
    old = replace(study, rows=[{key: value for key, value in row.items() if key != "margins"} for row in study.rows])
    name = save_study(workspace, old)
    app = visit(PAGE, **{"layerwise-study": name})
    assert len(app.info) == 1 and not counts(app)
    assert any("pamer-lab layerwise made" in code.value for code in app.code)


def test_a_leak_is_shown_in_red(visit: Visit, workspace: Workspace, study: Study) -> None:
    leaking = study.notes | {"splits": ["seed 0: 5 training questions; 2 in two parts"]}
    save_study(workspace, replace(study, notes=leaking))
    assert any(":red" in text and holds(text, 1, 1) for text in sentences(visit(PAGE)))


@pytest.mark.usefixtures("no_demo")
def test_too_few_labelled_questions_say_what_to_do(visit: Visit, workspace: Workspace) -> None:
    app = visit(PAGE, **{"make-study": "true"})
    app.session_state["make-study"] = True
    app.run()
    assert any(holds(info.value, 7, 0) for info in app.info)


def test_a_study_that_cannot_run_ends_with_its_sentence(visit: Visit, workspace: Workspace, tmp_path) -> None:  # type: ignore[no-untyped-def]
    put(workspace, corpus=write_corpus(tmp_path / "corpus.jsonl", 8).read_bytes())
    app = visit(PAGE)
    app.session_state["make-study"] = True
    app.run()
    assert says(app, 16) and "study-labels" not in [box.key for box in app.selectbox]
    trace = workspace.trace(workspace.trace_rows()[0]["trace_id"]).trace
    workspace.relabel([labelled(trace, [Label(3, "recall", origin=HINDSIGHT)])])
    app.run()
    native = next(name for name in app.selectbox(key="study-labels").options if name != HINDSIGHT)
    assert says(app, 1)
    app.selectbox(key="study-labels").set_value(native).run()
    assert says(app, "SmolLM2-135M-Instruct", "all-MiniLM-L6-v2")
    app.text_input(key="study-seeds").set_value("one").run()
    app.button(key="start-study").click().run()
    from pamer_lab.ui.shared.studies import jobs

    job = jobs().latest
    assert job is not None
    assert job.commands[0][:4] == ("layerwise", "@workspace", "--labels", native)
    assert job.wait(120)
    app.run()
    assert any("--seeds" in warning.value for warning in app.warning)


def test_figures_hold_both_targets_and_can_be_told_apart_without_colour(study: Study) -> None:
    references = {"compression": [row for row in control_study().rows if row["target"] == "compression"][:2]}
    shown = Shown(("last", "mean"), True, True, references, "final")
    figure = figures.layers(study, "auroc", shown, LIGHT)
    lines = {trace.name: (trace.line.dash, trace.marker.symbol) for trace in figure.data if trace.name}
    assert len(set(lines.values())) == len(lines) == 5
    assert {annotation.text for annotation in figure.layout.annotations} >= {"compression", "recall"}
    bars = figures.scores(unpack(study.rows[0]), 0.5, LIGHT).data
    assert min(bars[0].y) >= 0 >= max(bars[1].y)
    assert bars[1].marker.pattern.shape == "/"


def test_a_reviewer_sees_the_study_and_cannot_start_one(visit: Visit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAMER_LAB_READONLY", "1")
    app = visit(PAGE)
    assert not app.exception
    assert "layers-auroc" in charts(app)
    with pytest.raises(InputError):
        StudyJobs(workspace.path).start([["doctor"]])
