"""Charts of the paper's published tables: score against tokens with arrows, and one chart that fits any other table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pamer_lab.analysis.published import Column, PublishedTable
from pamer_lab.figures.labels import label_positions
from pamer_lab.figures.text import round_ticks, short
from pamer_lab.figures.theme import LIGHT, Meaning, layout

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

CYCLE: tuple[Meaning, ...] = ("pamer", "pamer+", "recall", "ablation", "periodic", "sliding", "base")
ALONG = [number / 30 for number in range(1, 30)]
"""Points of an arrow that labels should avoid, as fractions of its length."""
MARKS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon")


def heading(column: Column) -> str:
    """A column's title with its unit, unless the title already contains it."""
    said = not column.unit or column.unit.casefold() in column.title.casefold()
    return column.title if said else f"{column.title}, {column.unit}"


def published_table(table: PublishedTable, colours: dict[Meaning, str] = LIGHT) -> "Figure | None":
    """A chart of a published table; None if it has nothing to draw."""
    keys = {column.key for column in table.columns}
    if {"tokens", "average"} <= keys:
        return _scatter(table, "tokens", "average", colours)
    if {"tokens", "reward"} <= keys:
        return _scatter(table, "tokens", "reward", colours)
    if "tokens_pct" in keys:
        score = next((key for key in ("compression_auroc", "compression") if key in keys), "")
        return _scatter(table, "tokens_pct", score, colours) if score else None
    return _columns(table, colours)


def meaning_of(label: str) -> Meaning:
    """The lab's colour for a published method."""
    name = label.removeprefix("+ ").casefold()
    if name.startswith("pamer+"):
        return "pamer+"
    if name.startswith("pamer"):
        return "pamer"
    if name.startswith("sliding"):
        return "sliding"
    if name.startswith("periodic"):
        return "periodic"
    return "base" if name.startswith(("base", "deepseek")) else "ablation"


def _scatter(table: PublishedTable, x: str, y: str, colours: dict[Meaning, str]) -> Any:
    import plotly.graph_objects as go

    rows = [row for row in table.rows if row.get(x) is not None and row.get(y) is not None]
    figure = go.Figure(layout=layout(height=440, hovermode="closest"))
    families = list(dict.fromkeys(row.get("backbone", "") for row in rows))
    texts = [_label(row) for row in rows]
    pairs = [pair for family in families for pair in _pairs([row for row in rows if row.get("backbone", "") == family])]
    arrows = [(start[x] + part * (end[x] - start[x]), start[y] + part * (end[y] - start[y])) for start, end in pairs for part in ALONG]
    places = label_positions([(row[x], row[y]) for row in rows], texts, marks=arrows)
    for row, text, place in zip(rows, texts, places, strict=True):
        label = f"{row['backbone']}: {row['label']}" if row.get("backbone") else row["label"]
        ours = meaning_of(row["label"])
        figure.add_scatter(
            x=[row[x]],
            y=[row[y]],
            text=[text],
            mode="markers+text",
            textposition=place,
            textfont={"size": 10},
            marker={"size": 11, "color": colours[ours], "symbol": MARKS[families.index(row.get("backbone", "")) % len(MARKS)]},
            hovertemplate=f"{label}<br>%{{x:,}} · %{{y}}<extra></extra>",
        )
    for start, end in pairs:
        figure.add_annotation(
            x=end[x], y=end[y], ax=start[x], ay=start[y], xref="x", yref="y", axref="x", ayref="y", showarrow=True, arrowhead=2,
            arrowwidth=1.2, arrowcolor=colours[meaning_of(end["label"])], standoff=6, startstandoff=6, text="", opacity=0.7,
        )  # fmt: skip
    titles = {column.key: heading(column) for column in table.columns}
    figure.update_xaxes(title={"text": titles[x]})
    if x == "tokens":
        ticks = round_ticks(max(row[x] for row in rows))
        figure.update_xaxes(tickvals=ticks, ticktext=[short(tick).replace(".0", "") for tick in ticks])
    figure.update_yaxes(title={"text": titles[y]})
    return figure


def _label(row: dict[str, Any]) -> str:
    """A backbone is named once, at its base agent; colours and arrows identify its other points."""
    if not row.get("backbone"):
        return str(row["label"])
    return str(row["backbone"]) if meaning_of(row["label"]) == "base" else ""


def _pairs(rows: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The base agent with PaMER, and with PaMER+, of one backbone."""
    found = {meaning_of(row["label"]): row for row in reversed(rows)}
    ends: tuple[Meaning, ...] = ("pamer", "pamer+")
    return [(found["base"], found[end]) for end in ends if "base" in found and end in found]


def _columns(table: PublishedTable, colours: dict[Meaning, str]) -> Any | None:
    """Numeric columns with the same unit over the rows, with their deviations."""
    import plotly.graph_objects as go

    drawn = _drawable(table)
    if not drawn:
        return None
    figure = go.Figure(
        layout=layout(height=400, showlegend=True, barmode="group", legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"})
    )
    names = [_row_name(row) for row in table.rows]
    for number, column in enumerate(drawn):
        spread = [row.get(f"{column.key}_sd") for row in table.rows]
        figure.add_scatter(
            x=names,
            y=[row.get(column.key) for row in table.rows],
            error_y={"type": "data", "array": [value or 0 for value in spread], "thickness": 1} if any(spread) else None,
            name=column.title,
            mode="markers",
            marker={"size": 9, "color": colours[CYCLE[number % len(CYCLE)]], "symbol": MARKS[number % len(MARKS)]},
        )
    figure.update_yaxes(title={"text": drawn[0].unit or drawn[0].title})
    return figure


def _drawable(table: PublishedTable) -> list[Column]:
    """The first numeric column and the others with its unit."""
    numeric = [
        column for column in table.columns if column.better and any(isinstance(row.get(column.key), int | float) for row in table.rows)
    ]
    return [column for column in numeric if column.unit == numeric[0].unit] if numeric else []


def _row_name(row: dict[str, Any]) -> str:
    parts = [str(row[key]) for key in ("group", "backbone", "label", "pooling") if row.get(key)]
    return ", ".join(parts)
