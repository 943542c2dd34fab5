"""Where a run's cost comes from: the bill of each turn, and the ten turns that cost most."""

import polars as pl
import streamlit as st

from pamer_lab.figures import cost as cost_figures
from pamer_lab.figures.runs import window
from pamer_lab.figures.text import counted
from pamer_lab.figures.theme import SIGNS
from pamer_lab.prices import PriceTable
from pamer_lab.runs.cost import RunCost
from pamer_lab.runs.values import Run
from pamer_lab.spreadsheet import csv_text
from pamer_lab.ui.replay.tables import counting
from pamer_lab.ui.replay.turn_steps import open_turn
from pamer_lab.ui.shared.charts import drawing, show_chart
from pamer_lab.ui.shared.prices import cost_of, price_key
from pamer_lab.ui.shared.runs import run_key
from pamer_lab.ui.shared.text import DEMO, in_code
from pamer_lab.ui.shared.widgets import table
from pamer_lab.ui.shared.words import HINTS


def cost_panel(run: Run, prices: PriceTable) -> None:
    """The stacked chart of the open run and its most expensive turns; a row opens its turn."""
    cost = cost_of(run, prices)
    if not run.turns or not cost.total:
        st.caption("This run costs nothing at these prices.")
        return
    shown = window(len(run.turns), st.session_state.get("turn") or 0)
    share = ", ".join(f"{100 * value / cost.total:.0f} % {cost_figures.PART_LOOKS[name][0]}" for name, value in cost.parts.items() if value)
    rewritten = cost.tokens["rewritten"]
    versus = "" if cost.vs_base is None else f", {cost.vs_base:.2f} of the base agent's"
    answer = (
        f"{run.head.policy}: {cost.total:.4f} {in_code(prices.currency, 8)}{versus}: {share}. {rewritten:,} tokens were rewritten; "
        f"n = {counted(len(run.turns), 'turn')}, simulated with prices {in_code(prices.described, 300)}. Actions are fixed."
        f"{DEMO if run.head.demo else ''}"
    )
    show_chart(
        "Cost per turn",
        drawing(
            "cost",
            (run_key(run), price_key(prices), shown.start),
            lambda colours: cost_figures.cost_per_turn(run, cost, colours, shown=shown),
        ),
        answer,
        key="cost",
        hint=HINTS["cost_parts"],
        csv=lambda: cost_csv(run, cost),
    )
    _expensive(run, cost)


def _expensive(run: Run, cost: RunCost) -> None:
    dear = cost.expensive()

    def opened() -> None:
        rows = st.session_state["expensive"]["selection"]["rows"]
        if rows and rows[0] < len(dear):
            open_turn(dear[rows[0]].t)

    st.markdown("**Most expensive turns.** Select a row to open its turn.", help=HINTS["rewritten"])
    lines = [
        {
            "Turn": turn.t,
            "Action": f"{SIGNS[run.turns[turn.t].action]} {run.turns[turn.t].action}",
            f"Cost, {cost.prices.currency}": round(sum(turn.money(cost.prices).values()), 6),
            "Read": turn.read,
            "Written": turn.write,
            "Uncached": turn.uncached,
            "Output": turn.output,
            "Rewritten": turn.rewritten,
        }
        for turn in dear
    ]
    columns = {f"Cost, {cost.prices.currency}": st.column_config.NumberColumn(format="%.4f")}
    table(lines, key="expensive", on_select=opened, selection_mode="single-row", column_config=columns)


def cost_csv(run: Run, cost: RunCost) -> str:
    """What the chart shows, turn by turn."""
    names = ("read", "write", "uncached", "output", "aux_input", "aux_output", "rewritten")
    rows = [
        {
            "policy": run.head.policy,
            "turn": turn.t,
            "action": run.turns[turn.t].action,
            "prices": cost.prices.name,
            "prices_date": cost.prices.date,
            "currency": cost.prices.currency,
        }
        | {f"{name}_tokens": getattr(turn, name) for name in names}
        | {f"{name}_cost": value for name, value in turn.money(cost.prices).items()}
        | counting(run)
        for turn in cost.turns
    ]
    return csv_text(pl.DataFrame(rows))
