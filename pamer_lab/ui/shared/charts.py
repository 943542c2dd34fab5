"""The charts of the transcript page, and how every chart is presented: question, figure, answer, data.

Figures are built from numbers only; text of a trace enters them through `in_figure`.
"""

from collections.abc import Callable
from typing import Any

import streamlit as st

from pamer_lab.figures.numbers import round_ticks, short
from pamer_lab.figures.text import in_figure
from pamer_lab.figures.theme import CONFIG, Meaning, layout
from pamer_lab.ui.shared.downloads import download
from pamer_lab.ui.shared.drawing import Drawing
from pamer_lab.ui.shared.pictures import frame
from pamer_lab.ui.shared.transcript import Transcript

HEIGHT = 180
PICTURE = "picture-format"
"""Session key of the format in which charts are saved."""
PICTURES = ("svg", "png")
FEW = 60
"""Up to this many turns each one gets its own marker."""


def show_chart(
    question: str,
    figure: Drawing,
    answer: str,
    *,
    key: str,
    hint: str = "",
    on_click: Callable[[], None] | None = None,
    csv: Callable[[], str] | None = None,
) -> None:
    """A chart with its question above and its answer below, which a saved picture holds too; `csv` makes the table behind it."""
    with st.container(key=frame(key)):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{question}**", help=hint or None, width="stretch")
            if csv:
                download("CSV", csv, f"{key}.csv", "text/csv", key=f"{key}-csv")
        config = CONFIG | {"toImageButtonOptions": {"format": picture_format(), "filename": key}}
        # The answer stays out of the description: it may change with the turn, and another description is another chart.
        st.plotly_chart(figure, key=key, config=config, on_select=on_click or "ignore", selection_mode="points", alt=question)
        st.caption(answer)


def picture_format() -> str:
    """What the camera above a chart saves; chosen in the panel Share."""
    return str(st.session_state.get(PICTURE, PICTURES[0]))


def growth_figure(transcript: Transcript, colours: dict[Meaning, str]) -> Any:
    """Tokens before each decision point."""
    import plotly.graph_objects as go

    turns = list(range(len(transcript.before)))
    figure = go.Figure(layout=layout(height=HEIGHT))
    figure.add_scatter(
        x=turns,
        y=transcript.before,
        mode="lines+markers" if len(turns) <= FEW else "lines",
        line={"color": colours["base"], "dash": "dot", "width": 2},
        marker={"size": 5, "color": colours["base"]},
        hovertemplate="before turn %{x}: %{y:,} tokens<extra></extra>",
    )
    _add_marks(figure, transcript, "▼", colours["compression"])
    _add_marks(figure, transcript, "▲", colours["recall"])
    _axes(figure, len(turns), "turn", max(transcript.before))
    return figure


def _add_marks(figure: Any, transcript: Transcript, sign: str, colour: str) -> None:
    places = [block for block in range(len(transcript.before)) if sign in transcript.marks(block)]
    if places:
        word, symbol = ("compression", "triangle-down") if sign == "▼" else ("recall", "triangle-up")
        figure.add_scatter(
            x=places,
            y=[transcript.before[place] for place in places],
            mode="markers",
            marker={"size": 10, "color": colour, "symbol": symbol},
            hovertemplate=f"{word} needed or recorded at turn %{{x}}<extra></extra>",
        )


def strip_figure(transcript: Transcript, colours: dict[Meaning, str]) -> Any:
    """Tokens of each block as bars."""
    import plotly.graph_objects as go

    hover = [f"{row['tokens']:,} tokens<br>{in_figure(str(row['what']), 60)} {row['marks']}" for row in transcript.outline]
    figure = go.Figure(layout=layout(height=HEIGHT))
    figure.add_bar(
        x=list(range(len(hover))),
        y=transcript.sizes,
        marker={"color": colours["summarised"], "line": {"width": 0}},
        hovertext=hover,
        hovertemplate="block %{x}: %{hovertext}<extra></extra>",
    )
    _axes(figure, len(hover), "block", max(transcript.sizes))
    return figure


def _axes(figure: Any, count: int, name: str, largest: int) -> None:
    """Both charts share their horizontal range, so that a turn stands over its block."""
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
