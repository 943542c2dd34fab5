"""Charts of the arena: reward against cost between the two bounds, and the tokens of each task."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pamer_lab.figures.theme import LIGHT, Meaning, layout, look

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def reward_against_cost(rows: Sequence[dict[str, Any]], colours: dict[Meaning, str] = LIGHT) -> "Figure":
    """Success rate with its 95 % interval against the mean cost of a task, a mark per policy."""
    import plotly.graph_objects as go

    names = [row["policy"] for row in rows]
    figure = go.Figure(layout=layout(height=360, showlegend=True, hovermode="closest"))
    for row in rows:
        style = look(row["policy"], names)
        colour = colours[style.meaning]
        low, high = row["ci"]
        figure.add_scatter(
            x=[row["cost"]],
            y=[row["success_rate"]],
            mode="markers",
            name=row["policy"] + (" (bound)" if row["bound"] else ""),
            marker={"symbol": "diamond-open" if row["bound"] else style.symbol, "color": colour, "size": 11},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [high - row["success_rate"]],
                "arrayminus": [row["success_rate"] - low],
                "width": 0,
                "thickness": 1,
                "color": colour,
            },
            hovertemplate=f"{row['policy']}: score %{{y:.2f}}, cost %{{x:.4f}}, n = {row['n']}<extra></extra>",
        )
    figure.update_xaxes(title={"text": "mean cost per task"}, rangemode="tozero")
    figure.update_yaxes(title={"text": "score"}, range=[-0.05, 1.08])
    return figure


def tokens_over_tasks(tasks: Sequence[dict[str, Any]], colours: dict[Meaning, str] = LIGHT) -> "Figure":
    """Tokens of each task by policy: a box with every task as a point."""
    import plotly.graph_objects as go

    names = list(dict.fromkeys(row["policy"] for row in tasks))
    figure = go.Figure(layout=layout(height=360, showlegend=False, hovermode="closest"))
    for name in names:
        own = [row for row in tasks if row["policy"] == name]
        style = look(name, names)
        figure.add_box(
            y=[row["total"] for row in own],
            name=name,
            boxpoints="all",
            jitter=0.5,
            pointpos=0,
            marker={"color": colours[style.meaning], "size": 5},
            line={"width": 1},
            fillcolor="rgba(0,0,0,0)",
            customdata=[[row["task"], row["ended"]] for row in own],
            hovertemplate=f"{name}, task %{{customdata[0]}}: %{{y:,}} tokens (%{{customdata[1]}})<extra></extra>",
        )
    figure.update_yaxes(title={"text": "tokens per task"}, rangemode="tozero")
    return figure
