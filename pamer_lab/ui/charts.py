"""The charts of the transcript page, and how every chart is presented: question, figure, answer, data.

Figures are built from numbers only; text of a trace enters them through `in_figure`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from pamer_lab.ui.downloads import download
from pamer_lab.ui.numbers import round_ticks, short
from pamer_lab.ui.text import in_figure
from pamer_lab.ui.theme import CONFIG, Meaning, layout
from pamer_lab.ui.transcript import Transcript

HEIGHT = 180
FEW = 60
"""Up to this many turns each one gets its own marker."""


def show_chart(
    question: str, figure: Any, answer: str, *, key: str, hint: str = "", on_click: Callable[[], None] | None = None, csv: str = ""
) -> None:
    """A chart with its question above and its answer below; `csv` is offered for download."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{question}**", help=hint or None, width="stretch")
        if csv:
            download("CSV", csv, f"{key}.csv", "text/csv", key=f"{key}-csv")
    config = CONFIG | {"toImageButtonOptions": {"format": "svg", "filename": key}}
    st.plotly_chart(figure, key=key, config=config, on_select=on_click or "ignore", selection_mode="points", alt=f"{question} {answer}")
    st.caption(answer)


def clicked_point(key: str, field: str = "x") -> Any:
    """The value of the point that was clicked last, inside an `on_click` callback."""
    points = st.session_state[key]["selection"]["points"]
    return points[0][field] if points else None


def growth_figure(transcript: Transcript, block: int, colours: dict[Meaning, str]) -> Any:
    """Tokens before each decision point; the opened one is marked."""
    import plotly.graph_objects as go

    turns = list(range(len(transcript.before)))
    figure = go.Figure(layout=layout(height=HEIGHT))
    figure.add_vline(x=block, line={"color": colours["chosen"], "width": 2})
    figure.add_scatter(
        x=turns,
        y=transcript.before,
        mode="lines+markers" if len(turns) <= FEW else "lines",
        line={"color": colours["base"], "dash": "dot", "width": 2},
        marker={"size": 5, "color": colours["base"]},
        hovertemplate="before turn %{x}: %{y:,} tokens<extra></extra>",
        **_unfaded(),
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
            **_unfaded(),
        )


def strip_figure(transcript: Transcript, shown: Sequence[int], block: int, colours: dict[Meaning, str]) -> Any:
    """Tokens of each block as bars; the opened block and those on the page stand out."""
    import plotly.graph_objects as go

    paint = [
        colours["chosen"] if number == block else colours["active"] if number in shown else colours["faint"]
        for number in range(len(transcript.sizes))
    ]
    hover = [
        f"block {row['block']}: {row['tokens']:,} tokens<br>{in_figure(str(row['what']), 60)} {row['marks']}"
        for row in transcript.outline()
    ]
    figure = go.Figure(layout=layout(height=HEIGHT))
    figure.add_vline(x=block, line={"color": colours["chosen"], "width": 1})
    figure.add_bar(
        x=list(range(len(paint))),
        y=transcript.sizes,
        marker={"color": paint, "line": {"width": 0}},
        hovertext=hover,
        hovertemplate="%{hovertext}<extra></extra>",
        **_unfaded(),
    )
    _axes(figure, len(paint), "block", max(transcript.sizes))
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


def _unfaded() -> dict[str, Any]:
    """Our own colours mark the opened block; plotly's fading of the others would contradict them later."""
    return {"selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}}}
