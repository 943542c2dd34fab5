"""The ledger of a run: where each block is at each turn. No trace text enters it."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pamer_lab.decisions import LETTERS
from pamer_lab.figures.runs import block_words, legend_above, tick_step
from pamer_lab.figures.theme import LIGHT, STATE_LETTERS, STATE_MEANINGS, Meaning, layout
from pamer_lab.runs.values import Run

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_LINES = 8
"""Maximum lines of the hover text of one turn."""
NO_BLOCK = "no earlier block"
LETTERED = 30
"""Up to this many turns the ledger writes a letter into each cell."""


def ledger(run: Run, shown: range | None = None, colours: dict[Meaning, str] = LIGHT) -> "Figure":
    """Where is each block? Rows are blocks, columns are turns, colours are states; `shown` is all turns by default.

    All areas of a state are one path, since a browser draws one path faster than a thousand bars. Pointing or clicking anywhere in
    a column selects its turn: each column has an invisible point, and plotly takes the nearest.
    """
    import plotly.graph_objects as go

    if shown is None:
        shown = range(len(run.turns))
    lettered = len(run.turns) <= LETTERED
    blocks = max(shown.stop - 1, 1)
    options = layout(height=360, hovermode="x", hoverdistance=-1, legend=legend_above())
    figure = go.Figure(layout=options | {"showlegend": True})
    letters: list[tuple[int, int, str]] = []
    for (letter, word), meaning in zip(LETTERS.items(), STATE_MEANINGS, strict=True):
        spans = [(t, first, last) for t in shown for first, last in spans_of(run.turns[t].states, letter, single=lettered)]
        if spans:
            letters += [(t, first, STATE_LETTERS[letter]) for t, first, _ in spans]
            x, y = _boxes(spans, 0.03 if lettered else 0.0)
            figure.add_scatter(
                x=x,
                y=y,
                name=f"{STATE_LETTERS[letter]} {word}",
                mode="lines",
                line={"width": 0},
                fill="toself",
                fillcolor=colours["absent" if letter == "." else meaning],
                fillpattern=_hatch(colours) if letter == "." else None,
                hoverinfo="skip",
            )
    if lettered:
        figure.add_scatter(
            x=[t for t, _, _ in letters],
            y=[block for _, block, _ in letters],
            text=[sign for _, _, sign in letters],
            mode="text",
            textfont={"size": 11, "color": [colours["absent" if sign == "A" else "compression"] for _, _, sign in letters]},
            hoverinfo="skip",
            showlegend=False,
        )
    figure.add_scatter(
        x=list(shown),
        y=[blocks / 2] * len(shown),
        mode="markers",
        marker={"size": 1, "opacity": 0},
        hovertext=[_column(run.turns[t].states) for t in shown],
        hovertemplate="turn %{x}<br>%{hovertext}<extra></extra>",
        showlegend=False,
    )
    turn_range, tick = [shown.start - 0.6, shown.stop - 0.4], tick_step(len(shown))
    figure.update_xaxes(title={"text": "turn", "standoff": 12}, range=turn_range, dtick=tick, showgrid=False, showspikes=False)
    block_range, tick = [blocks - 0.5, -0.5], tick_step(blocks)
    figure.update_yaxes(title={"text": "block", "standoff": 4}, range=block_range, dtick=tick, showgrid=False, zeroline=False)
    return figure


def _boxes(spans: Sequence[tuple[int, int, int]], inset: float) -> tuple[Any, Any]:
    """The outlines of spans (turn, first block, one past the last) as one path with breaks; a lasting span is one box over its turns."""
    boxes: list[list[int]] = []
    newest: dict[tuple[int, int], list[int]] = {}
    for t, first, last in spans:
        box = newest.get((first, last))
        if box is not None and box[1] == t - 1 and not inset:
            box[1] = t
        else:
            newest[first, last] = box = [t, t, first, last]
            boxes.append(box)
    edges = np.array(boxes, dtype=np.float32) + np.array([inset - 0.5, 0.5 - inset, inset - 0.5, -0.5 - inset], dtype=np.float32)
    left, right, top, bottom = edges.T
    gap = np.full(len(boxes), np.nan, dtype=np.float32)
    # Arrays, since plotly inspects every element of a list.
    x = np.stack([left, right, right, left, left, gap], axis=1).ravel()
    y = np.stack([top, top, bottom, bottom, top, gap], axis=1).ravel()
    return x, y


def _column(states: str) -> str:
    """Where the blocks of one turn are, in words; long columns are cut."""
    words = [f"{block_words(*match.span())}: {LETTERS[match.group()[0]]}" for match in re.finditer(r"(.)\1*", states)]
    return "<br>".join(words[:MOST_LINES] + [f"… {len(words) - MOST_LINES} more"] * (len(words) > MOST_LINES)) or NO_BLOCK


def spans_of(states: str, letter: str, *, single: bool = False) -> list[tuple[int, int]]:
    """Runs of neighbouring blocks in one state as (first, one past the last); `single` makes each block its own run."""
    return [match.span() for match in re.finditer(re.escape(letter) + ("" if single else "+"), states)]


def _hatch(colours: dict[Meaning, str]) -> dict[str, Any]:
    """Absent blocks are hatched, so that they differ from summarised ones even without colour."""
    return {"shape": "/", "fgcolor": colours["base"], "bgcolor": colours["absent"], "size": 5, "solidity": 0.25}
