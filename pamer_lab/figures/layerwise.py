"""The charts of the Layerwise signals page: a metric by depth for both targets, and scores on both sides of the threshold.

Figures are built from numbers and names of layers and controls; a control's name passes through `in_figure`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

from pamer_lab.analysis.signals import blocks_of, curve, depth, histogram, layers_of, published_curve
from pamer_lab.figures.text import in_figure
from pamer_lab.figures.theme import LIGHT, Meaning, layout
from pamer_lab.probes.margins import Margins
from pamer_lab.studies.decisions import TARGETS
from pamer_lab.studies.study import Study

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Metric = Literal["auroc", "logit_gap"]
"""`auroc`: how well a probe ranks. `logit_gap`: mean logit of needed minus that of not needed."""
UNFADED: dict[str, Any] = {"selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}}}
NAMES: dict[Metric, str] = {"auroc": "AUROC", "logit_gap": "logit gap"}
MARGIN = {"l": 8, "r": 120, "t": 8, "b": 8}
"""Room at the right for the names of reference lines."""
WRAP = 17
"""Characters per line in the names of reference lines."""
NEAREST = 0.1
"""Minimum distance between labels of reference lines, as a share of the axis."""


@dataclass(frozen=True)
class Style:
    """How one pooling's line looks."""

    meaning: Meaning
    dash: str
    symbol: str


STYLES = {"last": Style("chosen", "solid", "circle"), "mean": Style("ablation", "dash", "square")}


@dataclass(frozen=True)
class Shown:
    """What to show with the curves."""

    poolings: tuple[str, ...] = ("last", "mean")
    intervals: bool = True
    published: bool = True
    references: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Control rows by target."""
    layer: str = ""
    """The open layer, which is marked; empty for none."""


ALL = Shown()
"""Both poolings with intervals and the published curves, no controls."""


def layers(study: Study, metric: Metric = "auroc", shown: Shown = ALL, colours: dict[Meaning, str] = LIGHT) -> "Figure":
    """A probe metric by layer: compression left, recall right, on the same vertical axis."""
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=len(TARGETS), shared_yaxes=True, horizontal_spacing=0.19, subplot_titles=list(TARGETS))
    legend = {"orientation": "h", "y": 1.09, "yanchor": "bottom", "x": 0}
    figure.update_layout(
        layout(height=390 if metric == "auroc" else 280, showlegend=True, hovermode="closest", legend=legend, margin=MARGIN)
    )
    figure.update_annotations(font_size=13)
    blocks = blocks_of(study)
    reach: list[float] = []
    for column, target in enumerate(TARGETS, 1):
        if shown.layer:
            figure.add_vline(x=depth(shown.layer, blocks), line={"color": colours["chosen"], "width": 1}, opacity=0.5, row=1, col=column)
        if metric == "auroc" and shown.published:
            _published(figure, target, blocks, shown, colours, column)
        for pooling in shown.poolings:
            reach += _line(figure, study, target, pooling, metric, shown, colours, column)
        reach += _shuffled(figure, study, target, metric, colours, column)
    if metric == "auroc":
        reach += [row["mean"] for rows in shown.references.values() for row in rows] + [0.45]
        if shown.published:
            reach += [
                point["mean"] for target in TARGETS for pooling in shown.poolings for point in published_curve(target, pooling, blocks)
            ]
    low, high = min([0.0, *reach] if metric != "auroc" else reach), max(reach)
    room = 0.06 * (high - low)
    for column, target in enumerate(TARGETS, 1):
        _references(figure, shown.references.get(target, []) if metric == "auroc" else [], high - low, colours, column)
        level = 0.5 if metric == "auroc" else 0.0
        figure.add_hline(y=level, line={"color": colours["faint"], "width": 1}, row=1, col=column)
    figure.update_yaxes(range=[low - room, high + room], zeroline=False)
    figure.update_yaxes(title={"text": NAMES[metric], "standoff": 6}, tickformat=".2f", row=1, col=1)
    ticks, words = _ticks(study, blocks)
    figure.update_xaxes(
        title={"text": "layer", "standoff": 4}, tickvals=ticks, ticktext=words, showgrid=False, range=[0.2, blocks + 1.2], zeroline=False
    )
    return figure


def _line(
    figure: Any, study: Study, target: str, pooling: str, metric: str, shown: Shown, colours: dict[Meaning, str], column: int
) -> list[float]:
    points = curve(study, target, pooling, metric)
    if points.is_empty():
        return []
    style = STYLES[pooling]
    reach = points["mean"].to_list()
    if shown.intervals and points["low"].null_count() == 0:
        places = points["depth"].to_list()
        reach += points["low"].to_list() + points["high"].to_list()
        figure.add_scatter(
            x=[*places, *reversed(places)],
            y=[*points["high"].to_list(), *reversed(points["low"].to_list())],
            fill="toself",
            fillcolor=colours[style.meaning],
            opacity=0.13,
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
            showlegend=False,
            legendgroup=pooling,
            row=1,
            col=column,
        )
    between = [
        f" [{row['low']:.3f}, {row['high']:.3f}]" if row["low"] is not None else "" for row in points.select("low", "high").to_dicts()
    ]
    figure.add_scatter(
        x=points["depth"].to_list(),
        y=points["mean"].to_list(),
        customdata=[[layer, pooling] for layer in points["layer"]],
        name=f"{'last token' if pooling == 'last' else 'mean over tokens'}",
        legendgroup=pooling,
        showlegend=column == 1,
        mode="lines+markers",
        line={"color": colours[style.meaning], "dash": style.dash, "width": 2},
        marker={"size": 7, "color": colours[style.meaning], "symbol": style.symbol},
        hovertext=[
            f"{target}, {row['layer']}, {pooling}: {row['mean']:.3f} ± {row['sd']:.3f} ({row['seeds']}){rest}"
            for row, rest in zip(points.to_dicts(), between, strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        row=1,
        col=column,
        **UNFADED,
    )
    return reach


def _shuffled(figure: Any, study: Study, target: str, metric: str, colours: dict[Meaning, str], column: int) -> list[float]:
    points = curve(study, target, "last", metric, shuffled=True)
    if points.is_empty():
        return []
    figure.add_scatter(
        x=points["depth"].to_list(),
        y=points["mean"].to_list(),
        name="shuffled labels",
        legendgroup="shuffled",
        showlegend=column == 1,
        mode="lines",
        line={"color": colours["base"], "dash": "dot", "width": 2},
        hovertext=[f"shuffled labels, {row['layer']}: {row['mean']:.3f} ± {row['sd']:.3f}" for row in points.to_dicts()],
        hovertemplate="%{hovertext}<extra></extra>",
        row=1,
        col=column,
    )
    return [float(value) for value in points["mean"]]


def _published(figure: Any, target: str, blocks: int, shown: Shown, colours: dict[Meaning, str], column: int) -> None:
    for pooling in shown.poolings:
        points = published_curve(target, pooling, blocks)
        figure.add_scatter(
            x=[point["depth"] for point in points],
            y=[point["mean"] for point in points],
            name=f"published, {pooling}",
            legendgroup=f"published-{pooling}",
            showlegend=column == 1,
            mode="lines+markers",
            opacity=0.75,
            line={"color": colours[STYLES[pooling].meaning], "dash": "dot", "width": 1.2},
            marker={"size": 9, "symbol": f"{STYLES[pooling].symbol}-open", "color": colours[STYLES[pooling].meaning]},
            hovertext=[f"published, {target}, {point['layer']}, {pooling}: {point['mean']:.3f}" for point in points],
            hovertemplate="%{hovertext}<extra></extra>",
            row=1,
            col=column,
        )


def _references(figure: Any, rows: Sequence[dict[str, Any]], height: float, colours: dict[Meaning, str], column: int) -> None:
    """Horizontal lines with their names at the right edge, pushed apart where they would touch."""
    placed: list[float] = []
    for row in sorted(rows, key=lambda row: -row["mean"]):
        meaning: Meaning = "base" if row["kind"] == "shuffled" else "periodic"
        dash = "dot" if row["kind"] == "shuffled" else "dashdot"
        figure.add_hline(y=row["mean"], line={"color": colours[meaning], "dash": dash, "width": 1.2}, row=1, col=column)
        text = row["mean"]
        if placed and placed[-1] - text < NEAREST * height:
            text = placed[-1] - NEAREST * height
        placed.append(text)
        figure.add_annotation(
            x=1.0,
            xref="x domain" if column == 1 else f"x{column} domain",
            y=text,
            yref="y" if column == 1 else f"y{column}",
            text="<br>".join(wrap(f"{in_figure(str(row['name']), 40)} {row['mean']:.3f}", WRAP)),
            showarrow=False,
            align="left",
            xanchor="left",
            yanchor="middle",
            xshift=4,
            font={"size": 11, "color": colours[meaning]},
        )


def _ticks(study: Study, blocks: int) -> tuple[list[float], list[str]]:
    step = next(step for step in (1, 2, 4, 5, 8, 10, 20, 50, 1000) if blocks / step <= 8)
    final = "final" in layers_of(study)
    numbers = [number for number in range(step, blocks + 1, step) if not final or blocks - number >= step / 2]
    return [*map(float, numbers), *([blocks + 0.5] if final else [])], [*map(str, numbers), *(["final"] if final else [])]


def scores(seeds: Sequence[Margins], shift: float = 0.0, colours: dict[Meaning, str] = LIGHT) -> "Figure":
    """Histograms of the scores, needed above the axis and not needed below, around the threshold shifted by `shift` logits."""
    import plotly.graph_objects as go

    edges, positive, negative = histogram(seeds)
    middle = (edges[1:] + edges[:-1]) / 2
    width = float(edges[1] - edges[0])
    figure = go.Figure(layout=layout(height=230, barmode="overlay", bargap=0, hovermode="closest"))
    for name, counts, meaning, pattern in (("needed", positive, "recall", ""), ("not needed", -negative, "base", "/")):
        figure.add_bar(
            x=middle.tolist(),
            y=counts.tolist(),
            width=width,
            name=name,
            marker={"color": colours[meaning], "pattern": {"shape": pattern, "fgcolor": colours["faint"]}, "line": {"width": 0}},  # type: ignore[index]
            hovertext=[f"{name}: {abs(int(count))} decisions from {edges[n]:.2f} to {edges[n + 1]:.2f}" for n, count in enumerate(counts)],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    figure.add_hline(y=0, line={"color": colours["active"], "width": 1})
    figure.add_vline(x=0, line={"color": colours["faint"], "width": 1.5, "dash": "dash"})
    figure.add_vline(x=shift, line={"color": colours["chosen"], "width": 2})
    most = max(int(positive.max()), int(negative.max()), 1)
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 100000) if most / step <= 3)
    ticks = [number * step for number in range(-(most // step), most // step + 1)]
    figure.update_yaxes(title={"text": "decisions"}, tickvals=ticks, ticktext=[f"{abs(tick):,}" for tick in ticks], zeroline=False)
    figure.update_xaxes(title={"text": "logit minus threshold", "standoff": 4}, zeroline=False)
    return figure
