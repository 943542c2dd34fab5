"""Layerwise signals: at which layer of the frozen model probes detect the need for memory, compared with controls."""

from typing import Any

import polars as pl
import streamlit as st

from pamer_lab import figures
from pamer_lab.analysis.signals import all_curves, has_metric, layers_of, preferred_layer, reference_rows, row_of
from pamer_lab.figures.layerwise import Shown
from pamer_lab.figures.text import layer_words
from pamer_lab.spreadsheet import csv_text
from pamer_lab.studies.decisions import TARGETS
from pamer_lab.studies.study import Study
from pamer_lab.ui.shared.charts import drawing, show_chart
from pamer_lab.ui.shared.page import run as run_page
from pamer_lab.ui.shared.state import settle
from pamer_lab.ui.shared.studies import SAMPLE, controls_of, study_details, study_head, study_key, study_line
from pamer_lab.ui.shared.study_form import layerwise_form, study_panel
from pamer_lab.ui.shared.text import DEMO
from pamer_lab.ui.shared.words import HINTS
from pamer_lab.ui.signals.answers import auroc_answer, gap_answer
from pamer_lab.ui.signals.scores import score_panel

FIRST_CONTROLS = ["Length + turn + tool type", "Recent2 text embedding"]
# Drawn unless the reader chooses others. (A bare string here would be drawn on the page.)


def open_clicked(key: str) -> None:
    """A click on a point opens its layer below."""
    points = st.session_state[key]["selection"]["points"]
    if points and points[0].get("customdata"):
        st.session_state["layer"], st.session_state["pooling"] = points[0]["customdata"][:2]


def chosen_controls(study: Study) -> dict[str, list[dict[str, Any]]]:
    """Control rows to draw, by target."""
    controls = controls_of(study)
    if controls is None:
        st.caption("No controls for this corpus and model yet. Run `pamer-lab controls` on the same traces to add them.")
        return {}
    names = list(dict.fromkeys(row["name"] for target in TARGETS for row in reference_rows(controls, target)))
    start = [name for name in FIRST_CONTROLS if name in names]
    wanted = st.multiselect("Controls", names, default=start, key="controls", bind="query-params", help=HINTS["controls"])
    found = {target: [row for row in reference_rows(controls, target) if row["name"] in wanted] for target in TARGETS}
    if not any(row.get("kind") == "shuffled" for row in study.rows):
        for target in TARGETS:
            found[target] += [row for row in controls.rows if row["target"] == target and row.get("kind") == "shuffled"]
    return found


def choose_shown(study: Study) -> Shown:
    """What to show with the curves; all settings are in the URL."""
    left, middle, right = st.columns([3, 4, 5], gap="medium", vertical_alignment="bottom")
    with left:
        poolings = st.pills(
            "Pooling", ["last", "mean"], default=["last", "mean"], selection_mode="multi", key="poolings", bind="query-params",
            help=HINTS["pooling"],
        )  # fmt: skip
    with middle, st.container(horizontal=True):
        intervals = st.toggle("95 % intervals", value=True, key="intervals", bind="query-params", help=HINTS["interval"])
        published = st.toggle("Published curve", value=True, key="published", bind="query-params", help=HINTS["published"])
    with right:
        references = chosen_controls(study)
    return Shown(tuple(poolings) or ("last",), intervals, published, references, st.session_state["layer"])


def settle_layer(study: Study) -> None:
    layers = layers_of(study)
    preferred = preferred_layer(study, "compression")
    settle("layer", layers, preferred if preferred in layers else layers[-1])
    settle("pooling", ["last", "mean"], "last")


def curves_csv(study: Study, metric: str, *, demo: bool) -> str:
    """All curves of a metric, each row with the model it was measured with."""
    return csv_text(all_curves(study, metric).with_columns(pl.lit(study.model).alias("model"), pl.lit(demo).alias("demo")))


def curves(study: Study, *, demo: bool) -> None:
    shown = choose_shown(study)
    names = tuple((target, row["name"], row["mean"]) for target, rows in shown.references.items() for row in rows)
    of = (study_key(study), names, shown.poolings, shown.intervals, shown.published, shown.layer)
    show_chart(
        "Probe AUROC by layer",
        drawing("auroc", of, lambda colours: figures.layers(study, "auroc", shown, colours)),
        auroc_answer(study, controls_of(study), published=shown.published) + (DEMO if demo else ""),
        key="layers-auroc",
        hint=f"{HINTS['auroc']} {HINTS['sd']} {HINTS['layer']} {HINTS['shuffled']} Click a point to open its scores below.",
        on_click=lambda: open_clicked("layers-auroc"),
        csv=lambda: curves_csv(study, "auroc", demo=demo),
    )
    if not has_metric(study, "logit_gap"):
        return
    show_chart(
        "Logit gap by layer",
        drawing("logit_gap", of, lambda colours: figures.layers(study, "logit_gap", shown, colours)),
        gap_answer(study) + (DEMO if demo else ""),
        key="layers-gap",
        hint=f"{HINTS['gap']} {HINTS['sd']}",
        on_click=lambda: open_clicked("layers-gap"),
        csv=lambda: curves_csv(study, "logit_gap", demo=demo),
    )


def scores(study: Study, *, demo: bool) -> None:
    st.subheader("Scores and threshold at one layer")
    left, right, _ = st.columns([2, 2, 3], gap="medium", vertical_alignment="bottom")
    layers = layers_of(study)
    layer = left.selectbox("Layer", layers, key="layer", format_func=layer_words, help=HINTS["layer"])
    pooling = right.segmented_control("Pooling", ["last", "mean"], required=True, key="pooling", help=HINTS["pooling"]) or "last"
    st.query_params["layer"], st.query_params["pooling"] = layer, pooling
    score_panel(study, {target: row_of(study, target, layer, pooling) for target in TARGETS}, demo=demo)


def main() -> None:
    picked = study_head("Layerwise signals", "layerwise")
    if picked is not None:
        name, study = picked
        settle_layer(study)
        study_line(name, study)
    study_panel("layerwise", "New study", layerwise_form)
    if picked is None:
        return
    curves(study, demo=name == SAMPLE)
    scores(study, demo=name == SAMPLE)
    study_details(study)


run_page(main)
