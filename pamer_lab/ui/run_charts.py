"""The charts of a replay: context over turns for all policies, the strip of events, the ledger of blocks.

Figures are built from numbers and our own words only; no text of a trace enters them.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from pamer_lab.replay.ledger import LETTERS
from pamer_lab.replay.values import Run, Turn
from pamer_lab.replay.whatif import WhatIf
from pamer_lab.ui.looks import COLOURS, SIGNS, STATE_LETTERS, STATE_MEANINGS, SYMBOLS, look
from pamer_lab.ui.numbers import round_ticks, short
from pamer_lab.ui.theme import Meaning, layout

UNFADED: dict[str, Any] = {"selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}}}
"""Our own marks show what is open; plotly's fading of the rest would contradict them later."""
MOST_POINTS = 4_000
"""Points of all lines together that get a marker to click; with more, only events do."""
WINDOW = 256
"""Turns shown at once in the strip and the ledger."""
LETTERED = 30
"""Up to this many turns the ledger writes a letter into each cell."""


def context_figure(
    runs: Sequence[Run],
    turn: int | None,
    colours: dict[Meaning, str],
    *,
    whatif: WhatIf | None = None,
    recorded: Sequence[int] = (),
    raw: bool = False,
) -> Any:
    """Active tokens before each turn, a line per policy, with its events as marks; `raw` adds the request as it came."""
    import plotly.graph_objects as go

    figure = go.Figure(layout=layout(height=290, showlegend=True, legend=_legend(), hovermode="closest"))
    if turn is not None:
        figure.add_vline(x=turn, line={"color": colours["chosen"], "width": 1.5})
    if raw and runs:
        figure.add_scatter(
            x=[entry.t for entry in runs[0].turns],
            y=[entry.raw_tokens for entry in runs[0].turns],
            name="raw history",
            mode="lines",
            line={"color": colours["base"], "dash": "dot", "width": 2},
            hovertemplate="raw history, turn %{x}: %{y:,} tokens<extra></extra>",
        )
    marked = sum(len(run.turns) for run in runs) <= MOST_POINTS
    for run in runs:
        _line(figure, run, colours, marked=marked)
    for run in runs:
        _events(figure, run, colours)
    if whatif is not None:
        figure.add_scatter(
            x=list(range(len(whatif.actions))),
            y=whatif.active_tokens.tolist(),
            name="what if",
            mode="lines",
            line={"color": colours["chosen"], "dash": "dash", "width": 1.5},
            hovertemplate="what if, turn %{x}: %{y:,} tokens<extra></extra>",
        )
    largest = max((max(entry.active_tokens, entry.raw_tokens if raw else 0) for run in runs for entry in run.turns), default=0)
    if recorded:
        figure.add_scatter(
            x=list(recorded),
            y=[0] * len(recorded),
            name="recorded by the source",
            mode="markers",
            marker={"symbol": "diamond", "size": 9, "color": colours["compression"]},
            hovertemplate="the source changed its own context before turn %{x}<extra></extra>",
            **UNFADED,
        )
    turns = max((len(run.turns) for run in runs), default=1)
    _token_axis(figure, largest)
    figure.update_xaxes(title={"text": "turn", "standoff": 4}, range=[-0.6, turns - 0.4], showgrid=False)
    return figure


def _line(figure: Any, run: Run, colours: dict[Meaning, str], *, marked: bool) -> None:
    style = look(run.head.policy)
    figure.add_scatter(
        x=[turn.t for turn in run.turns],
        y=[turn.active_tokens for turn in run.turns],
        customdata=_pairs(run, run.turns),
        name=run.head.policy,
        mode="lines+markers" if marked else "lines",
        line={"color": colours[style.meaning], "dash": style.dash, "width": style.width},
        marker={"size": 5 if len(run.turns) <= 60 else 3, "color": colours[style.meaning], "symbol": style.symbol},
        hovertemplate=f"{run.head.policy}, turn %{{x}}: %{{y:,}} tokens<extra></extra>",
        **UNFADED,
    )


def _events(figure: Any, run: Run, colours: dict[Meaning, str]) -> None:
    for action in ("compress", "recall", "fallback"):
        turns = [turn for turn in run.turns if turn.action == action]
        if turns:
            small = len(turns) > 40
            figure.add_scatter(
                x=[turn.t for turn in turns],
                y=[turn.active_tokens for turn in turns],
                customdata=_pairs(run, turns),
                mode="markers",
                showlegend=False,
                marker={"size": 6 if small else 10, "color": colours[COLOURS[action]], "symbol": SYMBOLS[action]},
                hovertemplate=f"{SIGNS[action]} {action}, {run.head.policy}, turn %{{x}}: %{{y:,}} tokens<extra></extra>",
                **UNFADED,
            )


def window(turns: int, turn: int) -> range:
    """The turns shown at once: the page of `WINDOW` turns that holds the open one."""
    first = turn // WINDOW * WINDOW
    return range(first, min(turns, first + WINDOW))


def strip_figure(runs: Sequence[Run], policy: str, turn: int, colours: dict[Meaning, str]) -> Any:
    """A row per policy, a mark per turn: what it did there."""
    import plotly.graph_objects as go

    shown = window(max((len(run.turns) for run in runs), default=1), turn)
    figure = go.Figure(layout=layout(height=58 + 22 * len(runs)))
    figure.add_vline(x=turn, line={"color": colours["chosen"], "width": 1.5})
    for run in runs:
        cells = run.turns[shown.start : shown.stop]
        figure.add_scatter(
            x=[entry.t for entry in cells],
            y=[run.head.policy] * len(cells),
            customdata=_pairs(run, cells),
            mode="markers",
            marker={
                "symbol": [SYMBOLS[entry.action] for entry in cells],
                "color": [colours[COLOURS[entry.action]] for entry in cells],
                "size": [5 if entry.action == "pass" else 11 for entry in cells],
                "line": {
                    "width": [2 if entry.t == turn and run.head.policy == policy else 0 for entry in cells],
                    "color": colours["chosen"],
                },
            },
            hovertext=[f"{run.head.policy}, turn {entry.t}: {entry.action}" for entry in cells],
            hovertemplate="%{hovertext}<extra></extra>",
            **UNFADED,
        )
    figure.update_xaxes(range=[shown.start - 0.6, shown.stop - 0.4], showgrid=False)
    figure.update_yaxes(showgrid=False, autorange="reversed", type="category")
    return figure


def ledger_figure(run: Run, turn: int, colours: dict[Meaning, str]) -> Any:
    """Rows are blocks, columns are turns, a cell is where the block is: in the context, in a summary, brought back, or gone.

    A click anywhere in a column opens its turn: an unseen point stands in each column, and plotly takes the nearest by turn.
    """
    import plotly.graph_objects as go

    shown = window(len(run.turns), turn)
    codes = {letter: number for number, letter in enumerate(LETTERS)}
    grid = np.full((max(shown.stop - 1, 1), len(shown)), np.nan, dtype=np.float32)  # (blocks, turns)
    for column, t in enumerate(shown):
        states = run.turns[t].states
        grid[: len(states), column] = [codes[letter] for letter in states]
    count = len(LETTERS)
    scale = [[edge / count, colours[meaning]] for number, meaning in enumerate(STATE_MEANINGS) for edge in (number, number + 1)]
    lettered = len(run.turns) <= LETTERED
    figure = go.Figure(
        layout=layout(height=360, hovermode="x", hoverdistance=-1, bargap=0, barmode="overlay", showlegend=True, legend=_legend())
    )
    figure.add_heatmap(
        z=grid,
        x=list(shown),
        y=list(range(grid.shape[0])),
        zmin=-0.5,
        zmax=count - 0.5,
        colorscale=scale,
        showscale=False,
        xgap=1 if lettered else 0,
        ygap=1 if lettered else 0,
        customdata=_words(grid),
        hoverongaps=False,
        text=_letters(grid) if lettered else None,
        texttemplate="%{text}" if lettered else None,
        hovertemplate="block %{y} at turn %{x}: %{customdata}<extra></extra>",
    )
    _hatching(figure, run, shown, colours)
    _state_legend(figure, run, shown, colours)
    figure.add_scatter(
        x=list(shown),
        y=[grid.shape[0] / 2] * len(shown),
        customdata=_pairs(run, run.turns[shown.start : shown.stop]),
        mode="markers",
        marker={"size": 1, "opacity": 0},
        hoverinfo="none",
        showlegend=False,
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
    )
    figure.add_vline(x=turn, line={"color": colours["chosen"], "width": 1.5})
    figure.update_xaxes(
        title={"text": "turn", "standoff": 4}, range=[shown.start - 0.6, shown.stop - 0.4], showgrid=False, showspikes=False
    )
    figure.update_yaxes(title={"text": "block", "standoff": 4}, range=[grid.shape[0] - 0.5, -0.5], showgrid=False)
    return figure


def absent_spans(states: str) -> list[tuple[int, int]]:
    """Runs of absent blocks: first, and one past the last."""
    return [match.span() for match in re.finditer(r"\.+", states)]


def _hatching(figure: Any, run: Run, shown: range, colours: dict[Meaning, str]) -> None:
    """Absent blocks are hatched, so that they cannot be taken for summarised ones without colour."""
    spans = [(t, first, last) for t in shown for first, last in absent_spans(run.turns[t].states)]
    if spans:
        figure.add_bar(
            x=[t for t, _, _ in spans],
            y=[last - first for _, first, last in spans],
            base=[first - 0.5 for _, first, _ in spans],
            width=1,
            marker=_hatch(colours),
            hoverinfo="skip",
            showlegend=False,
        )


def _hatch(colours: dict[Meaning, str]) -> dict[str, Any]:
    pattern = {"shape": "/", "fgcolor": colours["base"], "bgcolor": colours["absent"], "size": 5, "solidity": 0.25}
    return {"color": colours["absent"], "line": {"width": 0}, "pattern": pattern}


def _state_legend(figure: Any, run: Run, shown: range, colours: dict[Meaning, str]) -> None:
    """One entry per state that occurs; a bar without data draws the legend's square."""
    seen = set("".join(run.turns[t].states for t in shown))
    for (letter, word), meaning in zip(LETTERS.items(), STATE_MEANINGS, strict=True):
        if letter in seen:
            marker = _hatch(colours) if letter == "." else {"color": colours[meaning], "line": {"width": 0}}
            figure.add_bar(x=[None], y=[None], name=f"{STATE_LETTERS[letter]} {word}", marker=marker, hoverinfo="skip")


def _words(grid: Any) -> Any:
    """A word per cell, as an array: plotly looks at every element of nested lists, which takes a second for 256 turns."""
    words = np.array([*LETTERS.values(), ""], dtype=object)
    return words[np.nan_to_num(grid, nan=len(LETTERS)).astype(np.int64)]


def _pairs(run: Run, turns: Sequence[Turn]) -> Any:
    """What a click gives back: policy and turn of each point, as an array."""
    return np.array([[run.head.policy, turn.t] for turn in turns], dtype=object).reshape(len(turns), 2)


def _letters(grid: Any) -> list[list[str]]:
    letters = list(STATE_LETTERS.values())
    return [["" if np.isnan(value) else letters[int(value)] for value in row] for row in grid]


def _token_axis(figure: Any, largest: float) -> None:
    ticks = round_ticks(largest)
    figure.update_yaxes(
        title={"text": "tokens", "standoff": 4},
        range=[-0.04 * largest, 1.06 * largest],
        tickvals=ticks,
        ticktext=[short(tick).replace(".0", "") for tick in ticks],
    )


def _legend() -> dict[str, Any]:
    return {"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0}
