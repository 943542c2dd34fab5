"""Charts of cost: what each turn is billed, part by part, and evidence in context against cost."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pamer_lab.figures.text import short
from pamer_lab.figures.theme import COLOURS, LIGHT, SIGNS, SYMBOLS, Meaning, layout, look
from pamer_lab.policies.interface import FAMILIES
from pamer_lab.policies.registry import family_of
from pamer_lab.runs.cost import PARTS, RunCost
from pamer_lab.runs.values import Run

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MANY = 8
"""Points from which on the legend is grouped by family."""
PART_LOOKS: dict[str, tuple[str, Meaning, str]] = {
    "read": ("read from the cache", "base", ""),
    "write": ("written to the cache", "pamer", "/"),
    "uncached": ("uncached", "fallback", "x"),
    "output": ("output", "active", ""),
    "auxiliary": ("auxiliary calls", "ablation", "."),
}
"""Part -> its name, colour and pattern."""


def cost_per_turn(run: Run, cost: RunCost, colours: dict[Meaning, str] = LIGHT, *, shown: range | None = None) -> "Figure":
    """What each turn is billed, stacked by part; compressions and recalls are marked with the tokens that were written again."""
    import plotly.graph_objects as go

    turns = [turn for turn in cost.turns if shown is None or turn.t in shown]
    figure = go.Figure(
        layout=layout(height=300, showlegend=True, barmode="stack", legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"})
    )
    money = {turn.t: turn.money(cost.prices) for turn in turns}
    for name in PARTS:
        words, meaning, pattern = PART_LOOKS[name]
        values = [money[turn.t][name] for turn in turns]
        if not any(values):
            continue
        tokens = [turn.aux_input + turn.aux_output if name == "auxiliary" else getattr(turn, name) for turn in turns]
        figure.add_bar(
            x=[turn.t for turn in turns],
            y=values,
            name=words,
            marker={"color": colours[meaning], "pattern": {"shape": pattern, "solidity": 0.25}, "line": {"width": 0}},
            customdata=tokens,
            hovertemplate=f"turn %{{x}}, {words}: %{{customdata:,}} tokens, %{{y:.6f}} {cost.prices.currency}<extra></extra>",
        )
    _marks(figure, run, turns, money, colours)
    figure.update_yaxes(title={"text": cost.prices.currency}, rangemode="tozero")
    figure.update_xaxes(title={"text": "turn"}, showgrid=False)
    return figure


def _marks(figure: Any, run: Run, turns: Sequence[Any], money: dict[int, dict[str, float]], colours: dict[Meaning, str]) -> None:
    top = max((sum(parts.values()) for parts in money.values()), default=0.0)
    for action in ("compress", "recall", "fallback"):
        found = [turn for turn in turns if run.turns[turn.t].action == action]
        if found:
            figure.add_scatter(
                x=[turn.t for turn in found],
                y=[sum(money[turn.t].values()) + 0.04 * top for turn in found],
                mode="markers",
                name=action,
                marker={"symbol": SYMBOLS[action], "color": colours[COLOURS[action]], "size": 8},
                customdata=[turn.rewritten for turn in found],
                hovertemplate=f"{SIGNS[action]} {action} at turn %{{x}}: %{{customdata:,}} tokens written again<extra></extra>",
            )


def frontier(found: dict[str, Any], colours: dict[Meaning, str] = LIGHT) -> "Figure":
    """Evidence in context against cost relative to the base agent, a point per policy; those that no other beats are joined."""
    import plotly.graph_objects as go

    points = [point for point in found["points"] if point["evidence_pct"] is not None]
    names = [point["policy"] for point in points]
    many = len(points) > MANY
    figure = go.Figure(
        layout=layout(height=640 if many else 380, showlegend=True, hovermode="closest", legend={"groupclick": "toggleitem"})
    )
    points.sort(key=lambda point: [*FAMILIES].index(family_of(point["policy"])))
    best = sorted((point for point in points if point["frontier"]), key=lambda point: (point["cost_vs_base"], point["evidence_pct"]))
    figure.add_scatter(
        x=[point["cost_vs_base"] for point in best],
        y=[point["evidence_pct"] for point in best],
        mode="lines",
        line={"color": colours["faint"], "width": 2, "shape": "hv"},
        name="not beaten",
        hoverinfo="skip",
    )
    for point in points:
        style = look(point["policy"], names)
        # With many points, bars are drawn for those that no other beats.
        several = point["traces"] > 1 and (not many or point["frontier"])
        family = FAMILIES[family_of(point["policy"])]
        figure.add_scatter(
            x=[point["cost_vs_base"]],
            y=[point["evidence_pct"]],
            mode="markers",
            name=point["policy"],
            legendgroup=family,
            legendgrouptitle={"text": family} if many else None,
            marker={"symbol": style.symbol, "color": colours[style.meaning], "size": 11},
            error_x=_error(point, "cost_vs_base", "cost", colours[style.meaning]) if several else None,
            error_y=_error(point, "evidence_pct", "evidence", colours[style.meaning]) if several else None,
            hovertemplate=(
                f"{point['policy']}: %{{x:.2f}} of base, %{{y:.1f}} % evidence<br>tokens {point['tokens_vs_base'] or 0:.2f} of base, "
                f"mean peak {short(point['mean_peak'])}, {100 * point['uncached_share']:.0f} % of input uncached or written<extra></extra>"
            ),
        )
    figure.add_vline(x=1, line={"color": colours["faint"], "dash": "dot", "width": 1}, annotation_text="base")
    figure.update_xaxes(title={"text": "cost relative to the base agent"}, rangemode="tozero")
    figure.update_yaxes(title={"text": "evidence in context (%)"})
    return figure


def _error(point: dict[str, Any], name: str, prefix: str, colour: str) -> dict[str, Any] | None:
    if point[f"{prefix}_low"] is None:
        return None
    below, above = point[name] - point[f"{prefix}_low"], point[f"{prefix}_high"] - point[name]
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(0.0, above)],
        "arrayminus": [max(0.0, below)],
        "width": 0,
        "thickness": 1,
        "color": colour,
    }
