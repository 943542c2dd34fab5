"""The chart of the Context growth page: mean active context per turn and policy, and how many traces are still running."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from pamer_lab.analysis.growth import REFERENCE_LINE
from pamer_lab.figures.text import in_figure, round_ticks, short
from pamer_lab.figures.theme import LIGHT, Look, Meaning, layout, look
from pamer_lab.policies.interface import FAMILIES
from pamer_lab.policies.registry import family_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_BANDS = 8
"""Up to this many policies get bands; with more, bands would hide the lines."""
MOST_LINES = 240
"""Maximum number of lines of single traces, over all policies; with more, a browser becomes slow."""


def drawn_traces(runs: pl.DataFrame) -> list[str]:
    """Traces that are drawn as single lines, the longest first: as many as `MOST_LINES` allows with every policy."""
    longest = runs.group_by("trace_id").agg(pl.col("turns").max()).sort(["turns", "trace_id"], descending=[True, False])
    return longest["trace_id"].to_list()[: max(1, MOST_LINES // max(1, runs["policy"].n_unique()))]


def mean_context(
    means: pl.DataFrame,
    policies: Sequence[str] = (),
    colours: dict[Meaning, str] = LIGHT,
    *,
    singles: pl.DataFrame | None = None,
    names: Mapping[str, str] | None = None,
    reference: bool = False,
    highlight: Sequence[str] = (),
) -> "Figure":
    """Mean context size per turn, and the number of traces still running. `means` comes from `analysis.growth.mean_context`.

    One line per policy with its 10 to 90 % band, or with single traces: `singles` has their turns, `names` maps the drawn ones to labels.
    `highlight`: these policies keep their looks; all others become faint lines without a legend entry.
    """
    from plotly.subplots import make_subplots

    policies = policies or means["policy"].unique(maintain_order=True).to_list()
    names = names or {}
    if singles is not None:
        singles = singles.filter(pl.col("trace_id").is_in(list(names)))

    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.82, 0.18], vertical_spacing=0.05)
    figure.update_layout(
        layout(
            height=460,
            showlegend=True,
            # The names of all single lines at once would hide the chart.
            hovermode="x unified" if singles is None else "closest",
            legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        )
    )
    for policy in sorted(policies, key=lambda name: not highlight or name in highlight):  # faint lines first, so that the others are on top
        part = means.filter(pl.col("policy") == policy)
        if part.is_empty():
            continue
        if highlight and policy not in highlight:
            _faint(figure, policy, part, colours)
            continue
        _policy(figure, look(policy, policies), policy, part, colours, band=singles is None and len(highlight or policies) <= MOST_BANDS)
    if singles is not None:
        _singles(figure, singles, names, colours)
    largest = float(means["high" if singles is None else "mean_active"].max() or 0)  # type: ignore[arg-type]
    if singles is not None and not singles.is_empty():
        largest = max(largest, float(singles["active_tokens"].max() or 0))  # type: ignore[arg-type]
    if reference:
        largest = max(largest, REFERENCE_LINE)
        figure.add_hline(
            y=REFERENCE_LINE,
            line={"color": colours["faint"], "dash": "dash", "width": 1},
            annotation_text="128K (reference)",
            row=1,
            col=1,
        )
    ticks = round_ticks(largest)
    texts = [short(tick).replace(".0", "") for tick in ticks]
    figure.update_yaxes(title={"text": "tokens"}, range=[0, 1.05 * largest], tickvals=ticks, ticktext=texts, row=1, col=1)
    most = int(means["running"].max() or 1)  # type: ignore[arg-type]
    figure.update_yaxes(title={"text": "running"}, range=[0, 1.15 * most], tickvals=[0, most], row=2, col=1)
    figure.update_xaxes(title={"text": "turn"}, showgrid=False, row=2, col=1)
    return figure


def by_family(means: pl.DataFrame, policies: Sequence[str], colours: dict[Meaning, str] = LIGHT) -> "Figure":
    """One panel per family of policies; each includes the base agent, and all share their axes."""
    from plotly.subplots import make_subplots

    present = {str(policy) for policy in means["policy"].unique()}
    groups = {
        title: [policy for policy in policies if policy in present and family_of(policy) == family] for family, title in FAMILIES.items()
    }
    shown = {title: names for title, names in groups.items() if names}
    columns = min(2, len(shown))
    rows = -(-len(shown) // columns)
    figure = make_subplots(
        rows=rows,
        cols=columns,
        shared_xaxes=True,
        shared_yaxes=True,
        subplot_titles=list(shown),
        vertical_spacing=0.09,
        horizontal_spacing=0.04,
    )
    figure.update_layout(layout(height=120 + 260 * rows, showlegend=True, hovermode="closest", legend={"groupclick": "toggleitem"}))
    figure.update_layout(margin={"t": 32})  # room for the titles of the first row
    for number, (title, names) in enumerate(shown.items()):
        place = {"row": number // columns + 1, "col": number % columns + 1}
        if "base" in present and "base" not in names:
            _faint(figure, "base", means.filter(pl.col("policy") == "base"), colours, **place)
        for policy in names:
            style, part = look(policy, policies), means.filter(pl.col("policy") == policy)
            figure.add_scatter(
                x=part["t"].to_list(),
                y=part["mean_active"].round(0).to_list(),
                name=policy,
                mode="lines",
                line={"color": colours[style.meaning], "dash": style.dash, "width": style.width},
                legendgroup=title,
                legendgrouptitle={"text": title},
                hovertemplate=f"{policy}, turn %{{x}}: %{{y:,.0f}} tokens<extra></extra>",
                **place,
            )
    ticks = round_ticks(float(means["mean_active"].max() or 0))  # type: ignore[arg-type]
    figure.update_yaxes(tickvals=ticks, ticktext=[short(tick).replace(".0", "") for tick in ticks], rangemode="tozero")
    figure.update_xaxes(title={"text": "turn"}, showgrid=False, row=rows)
    return figure


def _faint(figure: Any, policy: str, part: pl.DataFrame, colours: dict[Meaning, str], row: int = 1, col: int = 1) -> None:
    """A line for comparison only."""
    figure.add_scatter(
        x=part["t"].to_list(),
        y=part["mean_active"].round(0).to_list(),
        name=policy,
        mode="lines",
        line={"color": colours["faint"], "width": 1},
        showlegend=False,
        hovertemplate=f"{policy}, turn %{{x}}: %{{y:,.0f}} tokens<extra></extra>",
        row=row,
        col=col,
    )


def _policy(figure: Any, style: Look, policy: str, part: pl.DataFrame, colours: dict[Meaning, str], *, band: bool) -> None:
    colour = colours[style.meaning]
    turns = part["t"].to_list()
    if band and part["running"].max() != 1:
        figure.add_scatter(
            x=[*turns, *reversed(turns)],
            y=[*part["high"].to_list(), *reversed(part["low"].to_list())],
            fill="toself",
            fillcolor=colour,
            opacity=0.12,
            line={"width": 0},
            hoverinfo="skip",
            showlegend=False,
            row=1,
            col=1,
        )
    figure.add_scatter(
        x=turns,
        y=part["mean_active"].round(0).to_list(),
        name=policy,
        mode="lines",
        line={"color": colour, "dash": style.dash, "width": style.width},
        hovertemplate="%{y:,.0f}" if band else f"{policy}, mean at turn %{{x}}: %{{y:,.0f}} tokens<extra></extra>",
        row=1,
        col=1,
    )
    figure.add_scatter(
        x=turns,
        y=part["running"].to_list(),
        name=f"{policy}, running",
        mode="lines",
        line={"color": colour, "dash": style.dash, "width": 1, "shape": "hv"},
        showlegend=False,
        hovertemplate="%{y}",
        row=2,
        col=1,
    )


def _singles(figure: Any, singles: pl.DataFrame, names: Mapping[str, str], colours: dict[Meaning, str]) -> None:
    for (policy, trace_id), part in singles.sort("t").group_by("policy", "trace_id", maintain_order=True):
        figure.add_scatter(
            x=part["t"].to_list(),
            y=part["active_tokens"].to_list(),
            mode="lines",
            opacity=0.35,
            line={"color": colours[look(str(policy)).meaning], "width": 1},
            showlegend=False,
            meta=in_figure(names[str(trace_id)], 60),
            hovertemplate=f"%{{meta}}<br>{policy}, turn %{{x}}: %{{y:,}} tokens<extra></extra>",
            row=1,
            col=1,
        )
