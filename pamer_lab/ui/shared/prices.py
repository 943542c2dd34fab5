"""The price table for the costs on a page: one of the dated tables, or the user's own, which is stored in the workspace."""

from collections.abc import Iterable

import msgspec
import streamlit as st

from pamer_lab.errors import InputError
from pamer_lab.prices import DEFAULT, MOST, PriceTable, price_tables, write_table
from pamer_lab.report.replay_part import run_counter
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.runs.cost import RunCost, run_cost
from pamer_lab.runs.values import Run
from pamer_lab.ui.shared.loaders import workspace
from pamer_lab.ui.shared.runs import timeline_of
from pamer_lab.ui.shared.text import in_code

OWN = "own"
"""Name of the table that the form writes."""


def choose_prices() -> PriceTable:
    """The chosen table, with its source and date, and the form for the user's own."""
    tables = tables_by_name()
    if st.session_state.get("prices") not in (None, *tables):
        st.session_state["prices"] = DEFAULT
    for sentence in price_tables(workspace().path)[1]:
        st.warning(in_code(sentence, 400))
    with st.popover("Prices", icon=":material/payments:"):
        name = st.selectbox("Price table", list(tables), index=list(tables).index(DEFAULT), key="prices", bind="query-params")
        table = tables[name or DEFAULT]
        st.caption(
            f"As of {in_code(table.date or 'an unknown date', 20)}. Source: {in_code(table.source, 300)}. {in_code(table.note, 400)}"
        )
        if not reviewer_mode():
            _own_form(table)
    return table


def chosen_prices() -> PriceTable:
    """The table that this page's `choose_prices` shows."""
    tables = tables_by_name()
    return tables.get(str(st.session_state.get("prices")), tables[DEFAULT])


def tables_by_name() -> dict[str, PriceTable]:
    """All tables by name; if one of the workspace cannot be read, the packaged one with its name is used."""
    return {table.name: table for table in (*price_tables()[0], *price_tables(workspace().path)[0])}


def _own_form(known: PriceTable) -> None:
    with st.form("price-form", border=False):
        st.caption(f"Your own prices per million tokens, saved in this workspace as {in_code(OWN)}; cache rules as in the table above.")
        currency = st.text_input("Currency", known.currency, max_chars=8)
        names = {"uncached": "Input", "read": "Cached input, read", "write": "Cached input, written", "output": "Output"}
        given = {
            name: st.number_input(label, min_value=0.0, max_value=float(MOST), value=getattr(known, name), step=0.1)
            for name, label in names.items()
        }
        if st.form_submit_button("Save"):
            cache = {name: getattr(known, name) for name in ("minimum_tokens", "granularity_tokens", "lifetime_seconds")}
            write_table(PriceTable(name=OWN, currency=currency or "USD", **given, **cache), workspace().path)
            st.rerun()


def price_key(prices: PriceTable) -> bytes:
    """Changes whenever a table's content does."""
    return msgspec.json.encode(prices)


@st.cache_resource(max_entries=400, show_spinner=False)
def _cost(path: str, run_id: str, turns: int, prices: bytes, _run: Run, _prices: PriceTable) -> RunCost:
    try:
        timeline = timeline_of(_run.head.trace_id, _run.head.profile)[0]
    except InputError:
        timeline = None
    return run_cost(_run, _prices, timeline, run_counter(_run, workspace()))


def cost_of(run: Run, prices: PriceTable) -> RunCost:
    """What a run costs at these prices."""
    return _cost(str(workspace().path), run.run_id, len(run.turns), price_key(prices), run, prices)


def current_prices() -> PriceTable:
    """The chosen table without its form, for what comes before the form on the page."""
    tables = tables_by_name()
    return tables.get(str(st.session_state.get("prices") or st.query_params.get("prices", ""))) or tables[DEFAULT]


def costs_by_policy(runs: Iterable[Run]) -> dict[str, float]:
    """What each policy's finished runs cost together at the chosen prices."""
    prices, found = current_prices(), dict[str, float]()
    for run in runs:
        found[run.head.policy] = found.get(run.head.policy, 0.0) + cost_of(run, prices).total
    return found
