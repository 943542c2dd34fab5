"""The context that the source recorded, in our charts: a line over its requests, and its compactions with their sizes.

The source counted with its own tokenizer, so the line is never joined with ours.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pamer_lab.figures.text import short
from pamer_lab.figures.theme import Meaning

NAME = "recorded by the source"
OURS = "counted here"
"""Name of the line with our counts of the same history."""
MOST_LABELS = 6
"""Up to this many compactions are labelled with their sizes; with more, only the hover text shows them."""


def add_recorded(
    figure: Any, sizes: Sequence[int | None], compactions: Sequence[Mapping[str, Any]], colours: dict[Meaning, str], turns: int
) -> float:
    """Draw what the source recorded of the first `turns` turns; returns the largest value drawn."""
    shown = list(sizes[:turns])
    known = [size for size in shown if size is not None]
    if known:
        figure.add_scatter(
            x=list(range(len(shown))),
            y=shown,
            name=NAME,
            mode="lines" if len(known) > 1 else "markers",
            connectgaps=True,
            line={"color": colours["active"], "dash": "longdashdot", "width": 1.5},
            marker={"color": colours["active"], "size": 6},
            hovertemplate="recorded by the source, turn %{x}: %{y:,} tokens<extra></extra>",
        )
    edits = [edit for edit in compactions if edit["t"] < turns]
    if edits:
        figure.add_scatter(
            x=[edit["t"] for edit in edits],
            y=[(edit["tokens_before"] or 0) if known else 0 for edit in edits],
            name="compaction by the source",
            mode="markers",
            marker={"symbol": "diamond", "size": 9, "color": colours["compression"]},
            hovertext=[words(edit) for edit in edits],
            hovertemplate="before turn %{x}: %{hovertext}<extra></extra>",
        )
    labelled = [edit for edit in edits if known and edit["tokens_before"] and edit["tokens_after"]]
    for edit in labelled if len(labelled) <= MOST_LABELS else ():
        left = edit["t"] < turns / 2
        figure.add_annotation(
            x=edit["t"],
            y=edit["tokens_before"],
            text=words(edit),
            showarrow=False,
            xanchor="left" if left else "right",
            xshift=8 if left else -8,
            yshift=10,
            font={"size": 11, "color": colours["active"]},
        )
    # Room for a label above the highest point.
    return (1.08 if labelled else 1.0) * float(max([*known, *(edit["tokens_before"] or 0 for edit in edits if known)], default=0))


def words(edit: Mapping[str, Any]) -> str:
    """`compaction 158.2K → 55.0K`; without sizes, only the kind."""
    kind = str(edit["kind"]).replace("_", " ")
    if edit["tokens_before"] is None or edit["tokens_after"] is None:
        return kind
    return f"{kind} {short(edit['tokens_before'])} → {short(edit['tokens_after'])}"
