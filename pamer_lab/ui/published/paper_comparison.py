"""The second half of the Published results page: each cell of a study table next to what a study here measured."""

import polars as pl
import streamlit as st

from pamer_lab.analysis.growth import recorded_scores
from pamer_lab.analysis.paper_comparison import BENCHMARK, KINDS, comparison, recorded_comparison
from pamer_lab.analysis.published import PublishedTable, sample_names
from pamer_lab.figures.text import counted
from pamer_lab.spreadsheet import csv_text
from pamer_lab.ui.shared.downloads import download
from pamer_lab.ui.shared.loaders import catalogue, workspace
from pamer_lab.ui.shared.studies import SAMPLE, listed_studies, open_study, study_line
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.widgets import table, table_height
from pamer_lab.ui.shared.words import HINTS
from pamer_lab.workspace.catalogue import Filters

WORDS = {"auroc": "AUROC", "auprc": "AUPRC", "f1": "F1", "agreement": "agreement", "tokens_pct": "tokens, %"}
WORDS |= {"tokens_mean": "evidence tokens, mean", "tokens_p95": "evidence tokens, P95", "tokens_max": "evidence tokens, maximum"}
PAGES = {"layerwise": "pages/signals.py", "controls": "pages/signals.py", "compact": "pages/contexts.py"}
DIFFERENT = (
    "The two use different models and traces: compare the order of the rows, not the values. Measured values are mean ± sd over seeds "
    "(number of seeds)."
)


def study_comparison(name: str) -> None:
    """The newest study of the workspace that measures the table, else the sample study; or how to make one."""
    kind = KINDS[name]
    own = [row["study_id"] for row in listed_studies() if row["kind"] == kind]
    chosen = own[0] if own else SAMPLE if kind in sample_names() else ""
    if not chosen:
        st.info(f"No study has measured this table yet. Run `pamer-lab {kind} @workspace` on your labelled traces.")
        return
    study = open_study(kind, chosen)
    lines = comparison(name, study)
    study_line(chosen, study)
    if not lines:
        st.info(f"This study contains none of the table's rows. Its command was {in_code(study.command, 400)}.")
        return
    table(
        [
            {
                "Published row": line["row"],
                "Row here": line["here"],
                "Target": line["target"],
                "Metric": WORDS[line["metric"]],
                "Published": _number(line["published"], line["metric"]),
                "Measured here": _number(line["measured"], line["metric"])
                + (f" ± {line['sd']:.3f} ({line['seeds']})" if line["sd"] is not None else ""),
            }
            for line in lines
        ],
        key="comparison",
        column_config={
            "Metric": st.column_config.TextColumn(help=HINTS["p95"] if any("p95" in line["metric"] for line in lines) else None),
            "Measured here": st.column_config.TextColumn(help=HINTS["sd"]),
        },
        height=table_height(len(lines), most=460),
    )
    st.caption(f"{counted(len(lines), 'cell')}. {DIFFERENT}")
    source = {"model": study.model, "demo": chosen == SAMPLE}
    csv = csv_text(pl.DataFrame([line | source for line in lines], infer_schema_length=None))
    with st.container(horizontal=True):
        download("CSV", csv, f"{name}-comparison.csv", "text/csv", key="comparison-csv")
        if kind in PAGES:
            st.page_link(PAGES[kind], label="Open the study", icon=":material/open_in_new:")


def recorded_tasks(shown: PublishedTable) -> None:
    """The base agent's row next to what traces of the same benchmark recorded here; nothing where there are none."""
    ids = [row["trace_id"] for row in catalogue(Filters(formats=(BENCHMARK,), reward="recorded")).rows]
    line = recorded_comparison(shown, recorded_scores(workspace(), ids)) if ids else None
    if line is None:
        return
    domains = [(name, one) for name, one in line["domains"].items() if one["recorded"]]
    rows = [{"": "Score", "Published": f"{line['score']:.1f}", "Recorded here": f"{line['recorded_score']:.1f}", "n": line["tasks"]}]
    rows += [
        {"": f"{name.capitalize()} score", "Published": f"{one['score']:.1f}", "Recorded here": f"{one['recorded']['score']:.1f}"}
        | {"n": one["recorded"]["tasks"]}
        for name, one in domains
    ]
    if line["recorded_tokens"] is not None:
        said, here = f"{line['tokens']:,}", f"{round(line['recorded_tokens']):,}"
        rows.append({"": "Tokens per task", "Published": said, "Recorded here": here, "n": line["usage_traces"]})
    st.markdown(f"**Reward and tokens: {line['row']} and the benchmark traces here**")
    st.dataframe(rows, hide_index=True, placeholder="")
    st.caption(
        "Recorded by the benchmark's proxy and grader, not measured by a replay; n: tasks, or for tokens, traces with recorded usage."
    )


def _number(value: float, metric: str) -> str:
    if metric == "tokens_pct":
        return f"{value:.1f}"
    return f"{value:,.0f}" if metric.startswith("tokens") else f"{value:.3f}"
