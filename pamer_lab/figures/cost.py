"""Charts of cost: what each turn is billed, part by part, and evidence in context against cost."""

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pamer_lab.figures.labels import Point, label_positions, ranges
from pamer_lab.figures.text import short
from pamer_lab.figures.theme import COLOURS, LIGHT, SIGNS, SYMBOLS, Meaning, layout, look
from pamer_lab.policies.interface import FAMILIES
from pamer_lab.policies.registry import family_of
from pamer_lab.runs.cost import PARTS, RunCost
from pamer_lab.runs.values import Run

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MANY = 8
"""With more points, the legend is grouped by family and only points on the Pareto frontier are labelled."""
SPAN = (0.1, 3.0)
"""Minimum range of the cost axis, which is logarithmic: half and double the base agent's cost are equally far from it."""
SHOWN = (80, 100)
"""Minimum range of the evidence axis in percent, so that similar policies do not look far apart."""
LEAST = 0.001
"""Where a cost of zero is drawn."""
DRAWN_WIDTH, DRAWN_AROUND = 1_000.0, 80.0
"""Pixels: the approximate width of the frontier chart, and the part of its height outside the plot."""
STROKE_POINTS = 24
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50, 100)
PART_LOOKS: dict[str, tuple[str, Meaning, str]] = {
    "read": ("read from the cache", "base", ""),
    "write": ("written to the cache", "pamer", "/"),
    "uncached": ("uncached", "fallback", "x"),
    "output": ("output", "active", ""),
    "auxiliary": ("auxiliary calls", "ablation", "."),
}
"""Part -> its name, colour and pattern."""


def cost_per_turn(run: Run, cost: RunCost, colours: dict[Meaning, str] = LIGHT, *, shown: range | None = None) -> "Figure":
    """What each turn is billed, stacked by part; events are marked with the tokens that the cache had to rewrite."""
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
                hovertemplate=f"{SIGNS[action]} {action} at turn %{{x}}: %{{customdata:,}} tokens rewritten to the cache<extra></extra>",
            )


def frontier(found: dict[str, Any], colours: dict[Meaning, str] = LIGHT) -> "Figure":
    """Evidence in context against cost relative to the base agent, a point per policy, with a line along the Pareto frontier."""
    import plotly.graph_objects as go

    points = [point for point in found["points"] if point["evidence_pct"] is not None]
    names = [point["policy"] for point in points]
    many = len(points) > MANY
    height = 640 if many else 380
    figure = go.Figure(layout=layout(height=height, showlegend=True, hovermode="closest", legend={"groupclick": "toggleitem"}))
    points.sort(key=lambda point: [*FAMILIES].index(family_of(point["policy"])))
    labels = _labels([point for point in points if not many or point["frontier"]])
    texts = [labels.get(point["policy"], "") for point in points]
    best = sorted((point for point in points if point["frontier"]), key=lambda point: (point["cost_vs_base"], point["evidence_pct"]))
    barred = [point for point in (best if many else points) if point["traces"] > 1]
    costs = [max(point["cost_vs_base"], LEAST) for point in points]
    low, high = 0.9 * min([*costs, SPAN[0] / 0.9]), 1.1 * max([*costs, SPAN[1] / 1.1])
    strokes = _strokes(barred, best)
    spots = [_spot(point["cost_vs_base"], point["evidence_pct"]) for point in points]
    area = ((math.log10(low), math.log10(high)), ranges([*spots, *strokes, *(_spot(1, level) for level in SHOWN)])[1])
    places = label_positions(spots, texts, size=(DRAWN_WIDTH, height - DRAWN_AROUND), area=area, marks=strokes)
    figure.add_scatter(
        x=[point["cost_vs_base"] for point in best],
        y=[point["evidence_pct"] for point in best],
        mode="lines",
        line={"color": colours["faint"], "width": 2, "shape": "hv"},
        name="Pareto frontier",
        hoverinfo="skip",
    )
    for point, label, place in zip(points, texts, places, strict=True):
        style = look(point["policy"], names)
        several = point in barred
        family = FAMILIES[family_of(point["policy"])]
        figure.add_scatter(
            x=[point["cost_vs_base"]],
            y=[point["evidence_pct"]],
            mode="markers+text" if label else "markers",
            text=[label],
            textposition=place,
            textfont={"size": 11, "color": colours[style.meaning]},
            cliponaxis=False,
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
    figure.add_vline(x=1, line={"color": colours["faint"], "dash": "dot", "width": 1})
    # On a logarithmic axis, an annotation's position is an exponent of ten.
    figure.add_annotation(x=0, y=0, yref="paper", yanchor="bottom", xanchor="left", text="base", showarrow=False)
    figure.update_xaxes(
        title={"text": "cost relative to the base agent (logarithmic)"},
        type="log",
        range=[math.log10(low), math.log10(high)],
        tickvals=[tick for tick in TICKS if low <= tick <= high],
    )
    figure.update_yaxes(title={"text": "evidence in context (%)"}, range=area[1])
    return figure


def _labels(points: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Policy -> its label; policies at the same place share the label of the first, which is the base agent if it is there."""
    together: dict[Point, list[str]] = {}
    for point in sorted(points, key=lambda point: point["policy"] != "base"):
        together.setdefault((round(point["cost_vs_base"], 3), round(point["evidence_pct"], 1)), []).append(point["policy"])
    return {first: f"{first} and {len(rest)} more" if rest else first for first, *rest in together.values()}


def _spot(cost: float, evidence: float) -> Point:
    """A point's position on the chart, with its logarithmic cost axis."""
    return math.log10(max(cost, LEAST)), evidence


def _strokes(barred: Sequence[dict[str, Any]], best: Sequence[dict[str, Any]]) -> list[Point]:
    """Points along all drawn lines (intervals and the steps of the frontier), so that labels avoid them."""
    ends = []
    for point in barred:
        cost, evidence = point["cost_vs_base"], point["evidence_pct"]
        if point["cost_low"] is not None:
            ends.append((_spot(point["cost_low"], evidence), _spot(point["cost_high"], evidence)))
        if point["evidence_low"] is not None:
            ends.append((_spot(cost, point["evidence_low"]), _spot(cost, point["evidence_high"])))
    for one, other in itertools.pairwise(best):
        corner = _spot(other["cost_vs_base"], one["evidence_pct"])
        ends += [
            (_spot(one["cost_vs_base"], one["evidence_pct"]), corner),
            (corner, _spot(other["cost_vs_base"], other["evidence_pct"])),
        ]
    parts = [number / STROKE_POINTS for number in range(STROKE_POINTS + 1)]
    return [(x + part * (right - x), y + part * (top - y)) for (x, y), (right, top) in ends for part in parts]


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
