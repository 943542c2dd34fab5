"""The chart of a live session: the client's history, what the model saw of it, and what the provider read from its cache."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pamer_lab.figures.runs import FEW, legend_above, tick_step, token_axis
from pamer_lab.figures.theme import COLOURS, DROP_SIGN, DROP_SYMBOL, EVENTS, LIGHT, SIGNS, SYMBOLS, Meaning, layout, look

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MARKS: dict[str, tuple[str, str, Meaning]] = {action: (SIGNS[action], SYMBOLS[action], COLOURS[action]) for action in EVENTS} | {
    "edit": (DROP_SIGN, DROP_SYMBOL, "compression")
}
"""Sign, symbol and colour of each event."""


def marked(request: Mapping[str, Any]) -> str | None:
    """The event of a request: `fallback`, the policy's action, or `edit` for any other request that does not extend the previous one."""
    if request["fallback"]:
        return "fallback"
    if request["action"] in EVENTS:
        return str(request["action"])
    return "edit" if request["edit"] else None


def live_context(requests: Sequence[Mapping[str, Any]], colours: dict[Meaning, str] = LIGHT, *, height: int = 300) -> "Figure":
    """Context of client and model per turn, from the requests of `live.summary.described`; of repeated requests of a turn, the last counts.

    The shaded part is what the provider reported as read from its cache, in its own tokens; no usage leaves a gap.
    """
    import plotly.graph_objects as go

    rows = list({row["t"]: row for row in requests if row["client_tokens"] is not None}.values())
    turns = [row["t"] for row in rows]
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    style = look(policies[-1] if policies else "base")
    figure = go.Figure(layout=layout(height=height, showlegend=True, legend=legend_above(), hovermode="closest"))
    read = [(row["usage"] or {}).get("read") for row in rows]
    if any(tokens for tokens in read):
        figure.add_scatter(
            x=turns,
            y=read,
            name="read from cache (recorded)",
            mode="lines",
            line={"width": 0, "shape": "hvh"},
            fill="tozeroy",
            fillcolor=colours["absent"],
            hovertemplate="turn %{x}: %{y:,} tokens read from the provider's cache<extra></extra>",
        )
    figure.add_scatter(
        x=turns,
        y=[row["client_tokens"] for row in rows],
        name="client's history",
        mode="lines",
        line={"color": colours["base"], "dash": "dot", "width": 2},
        hovertemplate="client's history, turn %{x}: %{y:,} tokens<extra></extra>",
    )
    figure.add_scatter(
        x=turns,
        y=[row["model_tokens"] for row in rows],
        name=f"model's view ({policies[0]})" if len(policies) == 1 else "model's view",
        customdata=[row["policy"] for row in rows],
        mode="lines+markers" if len(rows) <= FEW else "lines",
        line={"color": colours[style.meaning], "dash": style.dash, "width": style.width},
        marker={"size": 5, "color": colours[style.meaning], "symbol": style.symbol},
        hovertemplate="model's view (%{customdata}), turn %{x}: %{y:,} tokens<extra></extra>",
    )
    for name, (sign, symbol, meaning) in MARKS.items():
        found = [row for row in rows if marked(row) == name]
        if found:
            figure.add_scatter(
                x=[row["t"] for row in found],
                y=[row["model_tokens"] for row in found],
                mode="markers",
                showlegend=False,
                marker={"size": 10, "color": colours[meaning], "symbol": symbol},
                hovertemplate=f"{sign} {name}, turn %{{x}}: %{{y:,}} tokens<extra></extra>",
            )
    largest = max((row["client_tokens"] for row in rows), default=0)
    last = max(turns, default=0)
    token_axis(figure, max(largest, *(tokens or 0 for tokens in read), 1))
    figure.update_xaxes(title={"text": "turn", "standoff": 12}, range=[-0.6, last + 0.6], dtick=tick_step(last + 1), showgrid=False)
    return figure
