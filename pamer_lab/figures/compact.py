"""The trade-off chart: token share against AUROC for both targets, with one labelled mark per condition.

Names are placed in order of AUROC, best first; one without free space appears only in the hover text.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pamer_lab.figures.labels import label_positions
from pamer_lab.figures.text import in_figure
from pamer_lab.figures.theme import LIGHT, NAMED, Meaning, layout
from pamer_lab.studies.compact.registry import groups
from pamer_lab.studies.decisions import TARGETS

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

HEIGHT = 430
ROOM = (350, 330)
"""Minimum size of a panel in pixels, in a window 1,024 wide; names that fit there fit in wider windows."""
WIDEST = 112
"""Token share at the right edge, in percent; leaves room for the full context's mark."""


def tradeoff(
    points: Sequence[dict[str, Any]], colours: dict[Meaning, str] = LIGHT, *, published: bool = True, deviations: bool = False
) -> "Figure":
    """AUROC against tokens read. `points` comes from `analysis.compact.tradeoff`."""
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=len(TARGETS), shared_yaxes=False, horizontal_spacing=0.08, subplot_titles=list(TARGETS))
    legend = {"orientation": "h", "y": -0.2, "yanchor": "top", "x": 0}
    figure.update_layout(
        layout(height=HEIGHT, showlegend=True, hovermode="closest", legend=legend, margin={"l": 8, "r": 8, "t": 30, "b": 8})
    )
    figure.update_annotations(font_size=13)
    low, high = span(points, published=published)
    for column, target in enumerate(TARGETS, 1):
        own = [point for point in points if point["target"] == target and point["auroc"] is not None]
        for group in dict.fromkeys(point["group"] for point in own):
            _group(figure, [point for point in own if point["group"] == group], colours, column, deviations=deviations)
        if published:
            _published(figure, own, colours, column)
        if own:
            _names(figure, own, colours, column, (low, high), published=published)
    figure.update_xaxes(title={"text": "tokens, % of full context", "standoff": 4}, range=[0, WIDEST], zeroline=False)
    figure.update_yaxes(tickformat=".2f", zeroline=False, range=[low, high])
    figure.update_yaxes(title={"text": "AUROC", "standoff": 6}, row=1, col=1)
    return figure


def _look(heading: str) -> tuple[Meaning, str]:
    """Colour and mark of a group; a group that no longer exists is drawn faintly."""
    found = next((group.look for group in groups().values() if group.heading == heading), None)
    return (NAMED[found.colour], found.mark) if found else ("faint", "circle")


def _group(figure: Any, points: Sequence[dict[str, Any]], colours: dict[Meaning, str], column: int, *, deviations: bool) -> None:
    meaning, symbol = _look(points[0]["group"])
    figure.add_scatter(
        x=[point["tokens_pct"] for point in points],
        y=[point["auroc"] for point in points],
        error_y={"type": "data", "array": [point["sd"] for point in points], "thickness": 1, "width": 2} if deviations else None,
        name=points[0]["group"],
        legendgroup=points[0]["group"],
        showlegend=column == 1,
        mode="markers",
        marker={"size": 10, "color": colours[meaning], "symbol": symbol},
        hovertext=[
            f"{in_figure(point['label'], 60)}: {point['tokens_pct']:.1f} % of the tokens, AUROC {point['auroc']:.3f} ± {point['sd']:.3f}, "
            f"n = {point['n']:,}"
            for point in points
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        row=1,
        col=column,
    )


def _published(figure: Any, points: Sequence[dict[str, Any]], colours: dict[Meaning, str], column: int) -> None:
    known = [point for point in points if point["published_tokens_pct"] is not None and point["published_auroc"] is not None]
    if not known:
        return
    figure.add_scatter(
        x=[point["published_tokens_pct"] for point in known],
        y=[point["published_auroc"] for point in known],
        name="published (open marks)",
        legendgroup="published",
        showlegend=column == 1,
        mode="markers",
        marker={
            "size": 9,
            "color": [colours[_look(point["group"])[0]] for point in known],
            "symbol": [f"{_look(point['group'])[1]}-open" for point in known],
        },
        hovertext=[
            f"published, {in_figure(point['label'], 60)}: {point['published_tokens_pct']:.1f} %, AUROC {point['published_auroc']:.3f}"
            for point in known
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        row=1,
        col=column,
    )


def span(points: Sequence[dict[str, Any]], *, published: bool) -> tuple[float, float]:
    """The AUROC range that both panels share, with a margin."""
    values = [point["auroc"] for point in points if point["auroc"] is not None]
    if published:
        values += [point["published_auroc"] for point in points if point["published_auroc"] is not None]
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = max(0.08 * (high - low), 0.01)
    return low - room, high + room


def _names(
    figure: Any,
    points: Sequence[dict[str, Any]],
    colours: dict[Meaning, str],
    column: int,
    heights: tuple[float, float],
    *,
    published: bool,
) -> None:
    positions = name_positions(points, heights, published=published)
    named = [(point, position) for point, position in zip(points, positions, strict=True) if position]
    figure.add_scatter(
        x=[point["tokens_pct"] for point, _ in named],
        y=[point["auroc"] for point, _ in named],
        text=[in_figure(short_name(point["label"]), 30) for point, _ in named],
        textposition=[position for _, position in named],
        textfont={"size": 10, "color": colours["active"]},
        mode="markers+text",
        marker={"size": 10, "opacity": 0},  # plotly keeps the text outside of a mark of this size
        hoverinfo="skip",
        showlegend=False,
        row=1,
        col=column,
    )


def name_positions(points: Sequence[dict[str, Any]], heights: tuple[float, float], *, published: bool = False) -> list[str]:
    """A position for each name where it covers no other name or mark, published ones included; "" if there is none."""
    marks = [(point["published_tokens_pct"], point["published_auroc"]) for point in points] if published else []
    return label_positions(
        [(point["tokens_pct"], point["auroc"]) for point in points],
        [short_name(point["label"]) for point in points],
        size=ROOM,
        area=((0, WIDEST), heights),
        marks=[mark for mark in marks if None not in mark],
        priority=[point["auroc"] for point in points],
        only_free=True,
    )


def short_name(label: str) -> str:
    """A short name of a condition, for the label of a mark."""
    for long, short in (
        ("Selective Raw", "Raw"), ("Embedding", "Emb"), ("Hidden Bank Similarity", "Bank Sim"), ("Hidden Bank", "Bank"),
        (" + decision KD", " KD"), (" + scalar state", " scalar"), ("Full Context", "Full"), ("Similarity", "Sim"),
    ):  # fmt: skip
        label = label.replace(long, short)
    return label
