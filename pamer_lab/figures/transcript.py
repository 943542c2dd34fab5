"""The charts of one recorded trace: tokens before each turn, and tokens of each block.

Both share their horizontal range, so that each turn is above its block.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pamer_lab.figures.recorded import OURS, add_recorded
from pamer_lab.figures.runs import legend_above
from pamer_lab.figures.text import in_figure, round_ticks, short
from pamer_lab.figures.theme import LIGHT, SYMBOLS, Meaning, layout

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

HEIGHT = 200
FEW = 60
"""Up to this many turns each one gets its own marker."""


def history(
    before: Sequence[int],
    colours: dict[Meaning, str] = LIGHT,
    *,
    compressions: Sequence[int] = (),
    recalls: Sequence[int] = (),
    recorded: Sequence[int | None] = (),
    edits: Sequence[Mapping[str, Any]] = (),
) -> "Figure":
    """Context size before each turn, with marks where compression or recall was needed or recorded.

    `recorded` and `edits` are the source's own context and its compactions (`runs.recorded`); without recorded sizes neither is drawn.
    """
    import plotly.graph_objects as go

    turns = list(range(len(before)))
    figure = go.Figure(layout=layout(height=HEIGHT))
    figure.add_scatter(
        x=turns,
        y=list(before),
        mode="lines+markers" if len(turns) <= FEW else "lines",
        line={"color": colours["base"], "dash": "dot", "width": 2},
        marker={"size": 5, "color": colours["base"]},
        name=OURS,
        hovertemplate="before turn %{x}: %{y:,} tokens<extra></extra>",
    )
    _marks(figure, before, compressions, "compression", SYMBOLS["compress"], colours["compression"])
    _marks(figure, before, recalls, "recall", SYMBOLS["recall"], colours["recall"])
    largest = float(max(before, default=0))
    if any(recorded):
        largest = max(largest, add_recorded(figure, recorded, edits, colours, len(turns)))
        figure.update_layout(showlegend=True, legend=legend_above())
    _axes(figure, len(turns), "turn", largest)
    return figure


def blocks(sizes: Sequence[int], colours: dict[Meaning, str] = LIGHT, *, names: Sequence[str] = ()) -> "Figure":
    """Tokens per block; `names` describes the blocks in the hover text."""
    import plotly.graph_objects as go

    words = [in_figure(name, 60) for name in names] or [""] * len(sizes)
    figure = go.Figure(layout=layout(height=HEIGHT))
    figure.add_bar(
        x=list(range(len(sizes))),
        y=list(sizes),
        marker={"color": colours["summarised"], "line": {"width": 0}},
        hovertext=[f"{size:,} tokens<br>{word}" for size, word in zip(sizes, words, strict=True)],
        hovertemplate="block %{x}: %{hovertext}<extra></extra>",
    )
    _axes(figure, len(sizes), "block", max(sizes, default=0))
    return figure


def _marks(figure: Any, before: Sequence[int], places: Sequence[int], word: str, symbol: str, colour: str) -> None:
    if places:
        figure.add_scatter(
            x=list(places),
            y=[before[place] for place in places],
            mode="markers",
            marker={"size": 10, "color": colour, "symbol": symbol},
            name=word,
            hovertemplate=f"{word} needed or recorded at turn %{{x}}<extra></extra>",
        )


def _axes(figure: Any, count: int, name: str, largest: float) -> None:
    ticks = round_ticks(largest)
    figure.update_xaxes(
        title={"text": name, "standoff": 12}, range=[-0.6, count - 0.4], dtick=1 if count <= FEW // 4 else None, showgrid=False
    )
    figure.update_yaxes(
        title={"text": "tokens", "standoff": 12},
        rangemode="tozero",
        tickvals=ticks,
        ticktext=[short(tick).replace(".0", "") for tick in ticks],
    )
