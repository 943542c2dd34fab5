"""The user's own prices: the form, and the file in the workspace that stores them."""

from collections.abc import Iterable

import streamlit as st

from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.runs.prices import FILE, Price, PriceTable, costs_by_policy, read_prices, write_prices
from pamer_lab.runs.values import Run
from pamer_lab.ui.shared.loaders import workspace


def own_prices() -> PriceTable:
    """The user's own prices, stored in the workspace. No default prices are included."""
    path = workspace().path / FILE
    prices = read_prices(path)
    if reviewer_mode():
        return prices
    with st.popover("Prices", icon=":material/payments:"):
        known = prices.rows.get("default") or Price(0.0, 0.0)
        st.caption("Your prices per million tokens, stored in this workspace. No default prices are included.")
        with st.form("price-form", border=False):
            currency = st.text_input("Currency", prices.currency, max_chars=8)
            plain = st.number_input("Input", min_value=0.0, value=known.input, step=0.1)
            cached = st.number_input("Cached input", min_value=0.0, value=known.cached_input or known.input, step=0.1)
            output = st.number_input("Output", min_value=0.0, value=known.output, step=0.1)
            if st.form_submit_button("Apply"):
                prices = PriceTable(currency or "USD", prices.rows | {"default": Price(plain, output, cached)})
                write_prices(path, prices)
    return prices


def stored_costs(runs: Iterable[Run]) -> dict[str, float]:
    """What each policy's runs cost at the stored prices; a policy that cannot be priced is left out."""
    prices = read_prices(workspace().path / FILE)
    return costs_by_policy((run.head for run in runs if run.totals), prices) if prices.rows else {}


def prices_key() -> str:
    """Changes whenever the stored prices do."""
    return repr(read_prices(workspace().path / FILE))
