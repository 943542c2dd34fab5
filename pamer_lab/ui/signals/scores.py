"""Scores of one layer's probes around the threshold, which the reader may move; the counts follow.

A separate `part` of the page: moving the slider redraws nothing else.
"""

import math
from collections.abc import Sequence
from typing import Any

import polars as pl
import streamlit as st

from pamer_lab import figures
from pamer_lab.figures.text import counted, layer_words
from pamer_lab.probes.margins import Confusion, Margins, confusion, unpack
from pamer_lab.spreadsheet import csv_text
from pamer_lab.studies.study import Study
from pamer_lab.ui.shared.charts import drawing, show_chart
from pamer_lab.ui.shared.page import part
from pamer_lab.ui.shared.state import settle
from pamer_lab.ui.shared.studies import study_key
from pamer_lab.ui.shared.text import DEMO, in_code
from pamer_lab.ui.shared.widgets import table
from pamer_lab.ui.shared.words import HINTS

REACH = 4.0
"""How far the threshold can be moved either way, in logits."""
EVERY = "all"


@part
def score_panel(study: Study, rows: dict[str, dict[str, Any] | None], *, demo: bool = False) -> None:
    """Histograms and counts of both targets."""
    kept = {target: unpack(row) for target, row in rows.items() if row}
    if not any(kept.values()):
        st.info("This study has no stored test scores. Run its command again to see scores and move the threshold:")
        st.code(study.command, language="bash", wrap_lines=True)
        return
    count = max(len(seeds) for seeds in kept.values())
    left, right = st.columns([3, 4], gap="medium", vertical_alignment="bottom")
    shift = left.slider("Threshold shift (logits)", -REACH, REACH, 0.0, 0.05, key="shift", bind="query-params", help=HINTS["threshold"])
    names = [EVERY, *str(study.settings.get("seeds", "")).split(",")[:count]]
    settle("seed", names, EVERY)
    words = {EVERY: "all splits"} | {name: f"seed {name}" for name in names[1:]}
    seed = (
        right.container().segmented_control("Split", names, required=True, key="seed", format_func=words.__getitem__, help=HINTS["seed"])
        or EVERY
    )
    st.query_params["seed"] = seed
    columns = st.columns(2, gap="medium")
    for column, (target, seeds) in zip(columns, kept.items(), strict=False):
        row = rows[target]
        if row and seeds:
            with column:
                only = None if seed == EVERY else names.index(seed) - 1
                _target(study, target, row, seeds, only, shift, names[1:], demo=demo)


def _target(
    study: Study, target: str, row: dict[str, Any], kept: list[Margins], only: int | None, shift: float, names: Sequence[str], *, demo: bool
) -> None:
    seeds = kept if only is None else [kept[only]]
    splits = names if only is None else [names[only]]
    at, now = confusion(seeds), confusion(seeds, shift)
    decisions = now.hits + now.misses + now.false_alarms + now.rejections
    cuts = row["thresholds"] if only is None else [row["thresholds"][only]]
    span = f"{min(cuts):.2f} to {max(cuts):.2f}" if len(cuts) > 1 else f"{cuts[0]:.2f}"
    parts = f"the test sets of {counted(len(seeds), 'split')}" if only is None else "the test set of one split"
    answer = (
        f"Above the axis: {target} needed; below: not needed. Right of the line: predicted positive. "
        f"n = {counted(decisions, 'decision')} in {parts}, measured with {in_code(study.model, 40)}; "
        f"thresholds by validation F1 at logit {span}.{DEMO if demo else ''}"
    )
    of = (study_key(study), row["layer"], row["pooling"], only, shift)
    show_chart(
        f"{target.capitalize()} scores at {layer_words(row['layer'])}, {row['pooling']}",
        drawing(f"scores-{target}", of, lambda colours: figures.scores(seeds, shift, colours)),
        answer,
        key=f"scores-{target}",
        hint=HINTS["threshold"],
        csv=lambda: scores_csv(study, target, row, dict(zip(splits, zip(seeds, cuts, strict=True), strict=True)), demo=demo),
    )
    shown = [_counts("from validation", at)]
    if shift:
        shown.append(_counts(f"shifted by {shift:+.2f}", now))
    table(shown, key=f"counts-{target}")
    said = f"Precision {_share(now.precision)}, recall {_share(now.recall)}."
    if shift:
        said += " A threshold tuned on test scores would be optimistic; the study keeps the validation threshold."
    st.caption(said, help=HINTS["confusion"])


def scores_csv(study: Study, target: str, row: dict[str, Any], splits: dict[str, tuple[Margins, float]], *, demo: bool) -> str:
    """Each decision of the shown splits: its logit minus the threshold of its split. `splits` has margins and threshold by seed."""
    said = {"target": target, "layer": str(row["layer"]), "pooling": row["pooling"]}
    source = {"unit": "logits", "kind": "measured", "model": study.model, "demo": demo}
    lines = [
        said | {"seed": seed, "label": label, "margin": round(float(value), 4), "threshold": cut} | source
        for seed, (part, cut) in splits.items()
        for label, values in (("needed", part.positive), ("not needed", part.negative))
        for value in values
    ]
    return csv_text(pl.DataFrame(lines, infer_schema_length=None))


def _counts(name: str, found: Confusion) -> dict[str, Any]:
    return {
        "Threshold": name,
        "Hits": found.hits,
        "Misses": found.misses,
        "False alarms": found.false_alarms,
        "Rejections": found.rejections,
        "F1": _share(found.f1),
    }


def _share(value: float) -> str:
    return "none" if math.isnan(value) else f"{value:.3f}"
