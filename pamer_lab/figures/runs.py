"""The charts of a replay: context over turns for all policies, the strip of events, the ledger of blocks.

No trace text enters a figure, and no figure knows which turn is open: `ui.shared.marks` shows that, so that opening another turn redraws
no chart.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pamer_lab.decisions import LETTERS
from pamer_lab.figures.recorded import add_recorded
from pamer_lab.figures.text import in_figure, round_ticks, short
from pamer_lab.figures.theme import (
    COLOURS,
    DROP_SIGN,
    DROP_SYMBOL,
    EVENTS,
    LIGHT,
    SIGNS,
    STATE_LETTERS,
    STATE_MEANINGS,
    SYMBOLS,
    Look,
    Meaning,
    layout,
    look,
)
from pamer_lab.runs.drops import drops
from pamer_lab.runs.values import Run, Turn
from pamer_lab.runs.whatif import WhatIf

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

FEW = 60
"""Up to this many turns each one gets its own marker; with more, only events do, and every turn can still be pointed at and clicked."""
SPARSE = 16
"""Markers along a longer line whose look needs them."""
MANY = 40
"""Events of one kind above which their marks are small, open and under the line, so that it keeps its colour."""
WINDOW = 256
"""Turns shown at once in the strip and the ledger."""
MOST_LINES = 8
"""Lines that tell where the blocks of one turn are."""
LONGEST_NAME = 22
"""Letters of a policy's name beside the strip; a long one would take the room of the plot."""
LETTERED = 30
"""Up to this many turns the ledger writes a letter into each cell."""


def context(
    runs: Sequence[Run],
    colours: dict[Meaning, str] = LIGHT,
    *,
    whatif: WhatIf | None = None,
    recorded: Sequence[int | None] = (),
    compactions: Sequence[Mapping[str, Any]] = (),
    raw: bool = False,
    height: int = 290,
) -> "Figure":
    """Context size per turn. One line per policy with its events as marks; `raw` adds the unchanged request.

    `recorded` and `compactions` are what the source said of its own context (`runs.recorded`).
    """
    import plotly.graph_objects as go

    figure = go.Figure(layout=layout(height=height, showlegend=True, legend=legend_above(), hovermode="closest"))
    if raw and runs:
        figure.add_scatter(
            x=[entry.t for entry in runs[0].turns],
            y=[entry.raw_tokens for entry in runs[0].turns],
            name="raw history",
            mode="lines",
            line={"color": colours["base"], "dash": "dot", "width": 2},
            hovertemplate="raw history, turn %{x}: %{y:,} tokens<extra></extra>",
        )
    policies = [run.head.policy for run in runs]
    for run in runs:
        _add_events(figure, run, colours, many=True)
    for run in runs:
        _add_line(figure, run, look(run.head.policy, policies), colours)
    for run in runs:
        _add_events(figure, run, colours, many=False)
    if whatif is not None:
        figure.add_scatter(
            x=list(range(len(whatif.actions))),
            y=whatif.active_tokens.tolist(),
            name="what if",
            mode="lines",
            line={"color": colours["chosen"], "dash": "dash", "width": 1.5},
            hovertemplate="what if, turn %{x}: %{y:,} tokens<extra></extra>",
        )
    largest: float = max((max(entry.active_tokens, entry.raw_tokens if raw else 0) for run in runs for entry in run.turns), default=0)
    if whatif is not None:
        largest = max(largest, int(whatif.active_tokens.max(initial=0)))
    turns = max((len(run.turns) for run in runs), default=1)
    largest = max(largest, add_recorded(figure, recorded, compactions, colours, turns))
    token_axis(figure, largest)
    figure.update_xaxes(title={"text": "turn", "standoff": 12}, range=[-0.6, turns - 0.4], dtick=tick_step(turns), showgrid=False)
    return figure


def _add_line(figure: Any, run: Run, style: Look, colours: dict[Meaning, str]) -> None:
    few = len(run.turns) <= FEW
    figure.add_scatter(
        x=np.array([turn.t for turn in run.turns]),
        y=np.array([turn.active_tokens for turn in run.turns]),
        name=run.head.policy,
        mode="lines+markers" if few or style.marked else "lines",
        line={"color": colours[style.meaning], "dash": style.dash, "width": style.width},
        marker={
            "size": 5 if few else 7,
            "color": colours[style.meaning],
            "symbol": style.symbol,
            "maxdisplayed": 0 if few else SPARSE,
        },
        hovertext=["" if turn.action == "pass" else f"{SIGNS[turn.action]} {turn.action}, " for turn in run.turns],
        hovertemplate=f"%{{hovertext}}{run.head.policy}, turn %{{x}}: %{{y:,}} tokens<extra></extra>",
    )


def _add_events(figure: Any, run: Run, colours: dict[Meaning, str], *, many: bool) -> None:
    """The marks of those kinds of events of which a run has many, or few; many lie under the lines."""
    kinds: list[tuple[str, str, str, Meaning, list[Turn]]] = [
        (action, SIGNS[action], SYMBOLS[action], COLOURS[action], [turn for turn in run.turns if turn.action == action])
        for action in EVENTS
    ]
    kinds.append(("drop", DROP_SIGN, DROP_SYMBOL, "bad", [run.turns[drop.t] for drop in drops(run.turns, run.head.block_tokens)]))
    for action, sign, symbol, meaning, turns in kinds:
        if turns and (len(turns) > MANY) == many:
            figure.add_scatter(
                x=[turn.t for turn in turns],
                y=[turn.active_tokens for turn in turns],
                name=run.head.policy,
                mode="markers",
                showlegend=False,
                marker={
                    "size": 6 if many else 10,
                    "color": colours[meaning],
                    "symbol": symbol if symbol.endswith("-open") or not many else f"{symbol}-open",
                },
                hovertemplate=f"{sign} {action}, {run.head.policy}, turn %{{x}}: %{{y:,}} tokens<extra></extra>",
            )


def window(turns: int, turn: int) -> range:
    """The turns shown at once: the page of `WINDOW` turns that holds the open one."""
    first = turn // WINDOW * WINDOW
    return range(first, min(turns, first + WINDOW))


def events(runs: Sequence[Run], shown: range | None = None, colours: dict[Meaning, str] = LIGHT) -> "Figure":
    """Actions of each policy per turn. Long stretches without an event are a thin line; `shown` is all turns by default."""
    import plotly.graph_objects as go

    if shown is None:
        shown = range(max((len(run.turns) for run in runs), default=0))
    figure = go.Figure(layout=layout(height=58 + 22 * len(runs), hovermode="closest"))
    for run in runs:
        lost = {drop.t: drop for drop in drops(run.turns, run.head.block_tokens) if drop.t in shown}
        cells = run.turns[shown.start : shown.stop]
        for action in dict.fromkeys(entry.action for entry in cells):
            thin = action == "pass" and len(shown) > FEW
            turns = [entry.t for entry in cells if entry.action == action and (thin or action != "pass" or entry.t not in lost)]
            figure.add_scatter(
                x=np.array(turns),
                y=[run.head.policy] * len(turns),
                name=run.head.policy,
                mode="lines" if thin else "markers",
                line={"width": 1, "color": colours["faint"]},
                marker={"symbol": SYMBOLS[action], "color": colours[COLOURS[action]], "size": 5 if action == "pass" else 11},
                hovertemplate=f"{run.head.policy}, turn %{{x}}: {action}<extra></extra>",
            )
        if lost:
            figure.add_scatter(
                x=list(lost),
                y=[run.head.policy] * len(lost),
                name=run.head.policy,
                mode="markers",
                marker={"symbol": DROP_SYMBOL, "color": colours["bad"], "size": 9},
                hovertext=[", ".join(_blocks(*span) for span in drop.spans) for drop in lost.values()],
                hovertemplate=f"{run.head.policy}, turn %{{x}}: drops %{{hovertext}}<extra></extra>",
            )
    figure.update_xaxes(range=[shown.start - 0.6, shown.stop - 0.4], dtick=tick_step(len(shown)), showgrid=False)
    rows = [run.head.policy for run in runs]
    names = [in_figure(name, LONGEST_NAME) for name in rows]
    figure.update_yaxes(showgrid=False, autorange="reversed", type="category", categoryorder="array", categoryarray=rows)
    figure.update_yaxes(tickvals=rows, ticktext=names)
    return figure


def ledger(run: Run, shown: range | None = None, colours: dict[Meaning, str] = LIGHT) -> "Figure":
    """Where is each block? Rows are blocks, columns are turns, colours are states; `shown` is all turns by default.

    All areas of a state are one path, since a browser draws one path faster than a thousand bars. Pointing at or clicking anywhere in
    a column means its turn: each has an invisible point, and plotly takes the nearest.
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
    """The outlines of spans (turn, first block, one past the last) as one path with breaks; a span that lasts is one box over its turns."""
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
    # Arrays, since plotly looks at every element of a list.
    x = np.stack([left, right, right, left, left, gap], axis=1).ravel()
    y = np.stack([top, top, bottom, bottom, top, gap], axis=1).ravel()
    return x, y


def _column(states: str) -> str:
    """Where the blocks of one turn are, in words; long columns are cut."""
    words = [f"{_blocks(*match.span())}: {LETTERS[match.group()[0]]}" for match in re.finditer(r"(.)\1*", states)]
    return "<br>".join(words[:MOST_LINES] + [f"… {len(words) - MOST_LINES} more"] * (len(words) > MOST_LINES)) or "no earlier block"


def spans_of(states: str, letter: str, *, single: bool = False) -> list[tuple[int, int]]:
    """Blocks in one state: the first of each row of neighbours, and one past its last; `single` keeps neighbours apart."""
    return [match.span() for match in re.finditer(re.escape(letter) + ("" if single else "+"), states)]


def _blocks(first: int, last: int) -> str:
    return f"block {first}" if last == first + 1 else f"blocks {first} to {last - 1}"


def _hatch(colours: dict[Meaning, str]) -> dict[str, Any]:
    """Absent blocks are hatched, so that they cannot be taken for summarised ones without colour."""
    return {"shape": "/", "fgcolor": colours["base"], "bgcolor": colours["absent"], "size": 5, "solidity": 0.25}


def tick_step(count: int) -> int | None:
    """Few turns or blocks get a tick each, since there is nothing between two of them; with more plotly chooses."""
    return 1 if count <= FEW // 4 else None


def token_axis(figure: Any, largest: float) -> None:
    ticks = round_ticks(largest)
    figure.update_yaxes(
        title={"text": "tokens", "standoff": 4},
        range=[-0.04 * largest, 1.06 * largest],
        tickvals=ticks,
        ticktext=[short(tick).replace(".0", "") for tick in ticks],
    )


def legend_above() -> dict[str, Any]:
    return {"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0}
