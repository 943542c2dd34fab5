"""Compact contexts: how much of the history the model must read, and what each condition shows it."""

import streamlit as st

from pamer_lab import figures
from pamer_lab.analysis.compact import over_the_limit, tradeoff
from pamer_lab.analysis.published import table as published_table
from pamer_lab.studies.study import Study
from pamer_lab.ui.contexts.pair import context_pair
from pamer_lab.ui.contexts.tables import budgets, conditions_csv, conditions_table, orderings_shown, pairs, retrievers, tradeoff_answer
from pamer_lab.ui.shared.charts import drawing, show_chart
from pamer_lab.ui.shared.loaders import rows_or_demo
from pamer_lab.ui.shared.page import run as run_page
from pamer_lab.ui.shared.published_rows import published_rows
from pamer_lab.ui.shared.studies import SAMPLE, study_details, study_head, study_key, study_line
from pamer_lab.ui.shared.study_form import compact_form, study_panel
from pamer_lab.ui.shared.widgets import choose_part, table_height
from pamer_lab.ui.shared.words import HINTS

MORE = ["Paired differences", "Retrieval controls", "Evidence budgets", "The paper's orderings"]
NO_STUDY = "There is no compact-context study yet. Create one above or in a terminal. Until then, here are the paper's results:"


def measured(study: Study, *, demo: bool) -> None:
    with st.container(horizontal=True):
        published = st.toggle("Show published results", value=True, key="published", bind="query-params", help=HINTS["published_rows"])
        deviations = st.toggle("± sd over seeds", key="deviations", bind="query-params", help=HINTS["seed"])
    show_chart(
        "AUROC against tokens read",
        drawing(
            "tradeoff",
            (study_key(study), published, deviations),
            lambda colours: figures.tradeoff(tradeoff(study), colours, published=published, deviations=deviations),
        ),
        tradeoff_answer(study, published=published),
        key="tradeoff",
        hint=f"{HINTS['share']} {HINTS['auroc']}",
        csv=lambda: conditions_csv(study, demo=demo),
    )
    st.subheader("Results by condition", help=f"{HINTS['condition']} {HINTS['agreement']}")
    conditions_table(study, published=published)
    st.caption(
        "C compression, R recall; mean ± sd over seeds. ★ best compact condition of a column, excluding Full Context. Click a heading to "
        "sort. The paper does not define the base of its hidden bank: here it is the state of task and last block, concatenated with the "
        f"mean of the selected stored block states; GRU512 reads all stored block states. {over_the_limit(study)}"
    )
    shown = dict(zip(MORE, (pairs, retrievers, budgets, orderings_shown), strict=True))
    shown[choose_part(MORE, key="more")](study)


def only_published() -> None:
    """The empty state: how to create a study, and the paper's table."""
    st.info(NO_STUDY)
    st.code("pamer-lab compact @workspace --sample 300", language="bash")
    st.markdown(":orange-badge[Published] Numbers reported in the paper.")
    shown = published_table("compact")
    answer = f"{shown.caption} Published, {shown.place}; not measured here. n = {len(shown.rows)} conditions."
    show_chart(
        shown.title,
        drawing("published", shown.name, lambda colours: figures.published_table(shown, colours)),
        answer,
        key="published-compact",
    )
    st.dataframe(published_rows(shown), hide_index=True, placeholder="", height=table_height(len(shown.rows), most=460))


def main() -> None:
    rows_or_demo()
    picked = study_head("Compact contexts", "compact")
    study = picked[1] if picked else None
    if picked:
        study_line(*picked)
    study_panel("compact", "New study", compact_form)
    if picked and study is not None:
        measured(study, demo=picked[0] == SAMPLE)
    elif not st.query_params.get("compact-study"):
        only_published()
    st.divider()
    st.subheader("What does the model see at one decision point?", help=HINTS["condition"])
    context_pair(study)
    if study is not None:
        study_details(study)


run_page(main)
