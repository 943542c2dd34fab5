"""The trade-off chart: token share against AUROC for both targets, with one labelled mark per condition.

Names are placed greedily around their marks, best AUROC first; one that finds no free place is left to the hover text.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pamer_lab.figures.labels import LETTER, LINE
from pamer_lab.figures.text import in_figure
from pamer_lab.figures.theme import LIGHT, NAMED, Meaning, layout
from pamer_lab.studies.compact.registry import groups
from pamer_lab.studies.decisions import TARGETS

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

HEIGHT = 430
ROOM = (350, 330)
"""Pixels a panel has at the least, in a window of 1,024; names that fit there fit in wider ones."""
PLACES = ((0, 12), (0, -12), (1, 0), (-1, 0), (1, 12), (-1, 12), (1, -12), (-1, -12), (0, 24), (0, -24))
"""Where a name may go: to the right (1), left (-1) or centred (0), and how many pixels above."""


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
            _names(figure, own, colours, column, low, high, published=published)
    figure.update_xaxes(title={"text": "tokens, % of full context", "standoff": 4}, range=[0, 112], zeroline=False)
    figure.update_yaxes(tickformat=".2f", zeroline=False, range=[low, high])
    figure.update_yaxes(title={"text": "AUROC", "standoff": 6}, row=1, col=1)
    return figure


def _look(heading: str) -> tuple[Meaning, str]:
    """Colour and mark of a group; one that no condition has any more stays in the background."""
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
    """The AUROC range of both panels, with some air: marks at the same height mean the same."""
    values = [point["auroc"] for point in points if point["auroc"] is not None]
    if published:
        values += [point["published_auroc"] for point in points if point["published_auroc"] is not None]
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = max(0.08 * (high - low), 0.01)
    return low - room, high + room


def _names(
    figure: Any, points: Sequence[dict[str, Any]], colours: dict[Meaning, str], column: int, low: float, high: float, *, published: bool
) -> None:
    for point, (side, above) in placed(points, low, high, published=published):
        figure.add_annotation(
            x=point["tokens_pct"],
            y=point["auroc"],
            xref="x" if column == 1 else f"x{column}",
            yref="y" if column == 1 else f"y{column}",
            text=in_figure(short_name(point["label"]), 30),
            showarrow=False,
            xanchor={0: "center", 1: "left", -1: "right"}[side],
            xshift=8 * side,
            yshift=above,
            font={"size": 10, "color": colours["active"]},
        )


def placed(
    points: Sequence[dict[str, Any]], low: float, high: float, *, published: bool = False
) -> list[tuple[dict[str, Any], tuple[int, int]]]:
    """Which names are written and where, so that none covers another name or a mark, the published ones included."""
    width, height = ROOM

    def spot(x: float, y: float) -> tuple[float, float]:
        return x / 112 * width, (y - low) / max(high - low, 1e-9) * height

    spots = [spot(point["tokens_pct"], point["auroc"]) for point in points]
    open_marks = [
        spot(point["published_tokens_pct"], point["published_auroc"])
        for point in points
        if published and point["published_tokens_pct"] is not None and point["published_auroc"] is not None
    ]
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in [*spots, *open_marks]]
    found = []
    for number in sorted(range(len(points)), key=lambda number: -points[number]["auroc"]):
        x, y = spots[number]
        size = LETTER * len(short_name(points[number]["label"]))
        for side, above in PLACES:
            left = x - size / 2 if side == 0 else x + 8 if side == 1 else x - 8 - size
            box = (left, y + above - LINE / 2, left + size, y + above + LINE / 2)
            if box[0] >= 0 and box[2] <= width and not any(_touch(box, other) for other in taken):
                taken.append(box)
                found.append((points[number], (side, above)))
                break
    return found


def _touch(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def short_name(label: str) -> str:
    """A short name of a condition, for the label of a mark."""
    for long, short in (
        ("Selective Raw", "Raw"), ("Embedding", "Emb"), ("Hidden Bank Similarity", "Bank Sim"), ("Hidden Bank", "Bank"),
        (" + decision KD", " KD"), (" + scalar state", " scalar"), ("Full Context", "Full"), ("Similarity", "Sim"),
    ):  # fmt: skip
        label = label.replace(long, short)
    return label
