"""Arena: an agent acts on what each policy lets it see; score, tokens and cost of the closed loop."""

import polars as pl
import streamlit as st

from pamer_lab.arena.store import ArenaStore
from pamer_lab.arena.summary import listed, summary
from pamer_lab.figures.arena import reward_against_cost, tokens_over_tasks
from pamer_lab.figures.text import counted
from pamer_lab.prices import DEFAULT
from pamer_lab.report.config import ArenaSection
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.spreadsheet import csv_text
from pamer_lab.ui.arena.playing import ended, follow, form, jobs
from pamer_lab.ui.arena.tables import BADGE, pair_rows, result_rows, show_outcomes
from pamer_lab.ui.shared.charts import drawing, show_chart
from pamer_lab.ui.shared.loaders import workspace
from pamer_lab.ui.shared.page import run as run_page
from pamer_lab.ui.shared.share import share
from pamer_lab.ui.shared.state import settle
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.widgets import table, table_height


def main() -> None:
    title, picker, link = st.columns([3, 8, 2], vertical_alignment="bottom")
    title.title("Arena")
    store = ArenaStore(workspace())
    known = {name: listed(store, name) for name in store.ids()}
    if jobs().current is not None:
        follow()
    ended()
    if not known:
        st.markdown(
            "An agent acts on the context that each policy gives it, in small worlds with known answers. Unlike a replay, this shows "
            "what forgetting costs: repeated searches and wrong answers."
        )
        hint = "" if reviewer_mode() else " Start one below: the default takes about a minute and needs no model."
        st.info(f"No arena has been played yet.{hint}")
        form(opened=True)
        return
    settle("arena", list(known), next(iter(known)))
    picked = picker.selectbox(
        "Arena",
        list(known),
        format_func=lambda name: f"{known[name]['agent']}, level {known[name]['level']}, seed {known[name]['seed']} · {name}",
        key="arena",
        label_visibility="collapsed",
    )
    st.query_params["arena"] = picked
    result = summary(store, picked, DEFAULT)
    if not result["results"]:
        st.info("No episode has finished yet.")
        form()
        return
    with link:
        share(lambda: [ArenaSection(arena_id=picked)])
    n = max(row["n"] for row in result["results"])
    who = f"{BADGE} " if result["simulated"] else ""
    st.markdown(
        f"{who}{in_code(result['agent'])} · {counted(n, 'task')} · level {in_code(result['level'], 40)} · seed {result['seed']} · "
        f"tokens measured with {in_code(result['tokenizer'], 60)} · costs simulated at {result['prices']}"
    )
    rows = result_rows(result)
    table(rows, height=table_height(len(rows), most=480))
    form()
    shown = [*result["results"], *result["bounds"].values()]
    left, right = st.columns(2)
    said = "Simulated agent; " if result["simulated"] else ""
    source = {name: result[name] for name in ("agent", "simulated", "level", "seed", "tokenizer", "prices")}
    with left:
        figure = drawing("arena-cost", (picked, str(shown)), lambda colours: reward_against_cost(shown, colours))
        show_chart(
            "Score against cost",
            figure,
            f"{said}score with Wilson's 95 % interval, n = {n}; open diamonds are the bounds.",
            key="arena-cost",
            csv=lambda: csv_text(pl.DataFrame([row | source for row in rows], infer_schema_length=None)),
        )
    with right:
        tasks = [entry for entry in result["tasks"] if entry["policy"] not in result["bounds"]]
        figure = drawing("arena-tokens", (picked, len(tasks), str(tasks)), lambda colours: tokens_over_tasks(tasks, colours))
        show_chart("Tokens per task", figure, f"{said}main and auxiliary tokens of each task, n = {n}.", key="arena-tokens")
    st.subheader("Differences from base on the same tasks")
    table(pair_rows(result), height=table_height(len(result["pairs"]), most=320))
    st.subheader("Outcome by task")
    show_outcomes(result)


run_page(main)
