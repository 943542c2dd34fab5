"""Charts of a replay: context over turns for all policies, and the strip of events.

No trace text enters a figure, and no figure knows which turn is open: `ui.shared.marks` shows that, so that opening another turn redraws
no chart.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pamer_lab.figures.recorded import add_recorded
from pamer_lab.figures.text import in_figure, round_ticks, short
from pamer_lab.figures.theme import (
    COLOURS,
    DROP_SIGN,
    DROP_SYMBOL,
    EVENTS,
    LIGHT,
    SIGNS,
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
"""Up to this many turns, each one gets a marker; with more, only events do, but every turn can still be clicked."""
SPARSE = 16
"""Markers along a longer line, if its look has any."""
MANY = 40
"""If there are more events of one kind, their marks are small, open and beneath the line, so that its colour stays visible."""
WINDOW = 256
"""Turns shown at once in the strip and the ledger."""
LONGEST_NAME = 22
"""Characters of a policy's name next to the strip; longer names would leave no space for the plot."""


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

    `recorded` and `compactions` are what the source recorded about its own context (`runs.recorded`).
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
    """Marks of the kinds of events that a run has many of (drawn beneath the lines), or few of (on top)."""
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
                hovertext=[", ".join(block_words(*span) for span in drop.spans) for drop in lost.values()],
                hovertemplate=f"{run.head.policy}, turn %{{x}}: drops %{{hovertext}}<extra></extra>",
            )
    figure.update_xaxes(range=[shown.start - 0.6, shown.stop - 0.4], dtick=tick_step(len(shown)), showgrid=False)
    rows = [run.head.policy for run in runs]
    names = [in_figure(name, LONGEST_NAME) for name in rows]
    figure.update_yaxes(showgrid=False, autorange="reversed", type="category", categoryorder="array", categoryarray=rows)
    figure.update_yaxes(tickvals=rows, ticktext=names)
    return figure


def block_words(first: int, last: int) -> str:
    """Blocks `first` to `last - 1`, in words."""
    return f"block {first}" if last == first + 1 else f"blocks {first} to {last - 1}"


def tick_step(count: int) -> int | None:
    """If there are few turns or blocks, each gets a tick, so that no tick is fractional; otherwise plotly chooses."""
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
