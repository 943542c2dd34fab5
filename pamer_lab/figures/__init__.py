"""Charts as plain Plotly figures, without Streamlit, for notebooks and pages alike.

Each function takes runs, studies or frames and the colours of a theme (`LIGHT` or `DARK`), and returns a figure. Plotly is imported when
the first one is built.
"""

from pamer_lab.figures.compact import tradeoff
from pamer_lab.figures.cost import cost_per_turn, frontier
from pamer_lab.figures.growth import mean_context
from pamer_lab.figures.layerwise import Shown, layers, scores
from pamer_lab.figures.ledger import ledger
from pamer_lab.figures.published import published_table
from pamer_lab.figures.runs import context, events
from pamer_lab.figures.theme import DARK, LIGHT
from pamer_lab.figures.transcript import blocks, history

__all__ = [
    "DARK",
    "LIGHT",
    "Shown",
    "blocks",
    "context",
    "cost_per_turn",
    "events",
    "frontier",
    "history",
    "layers",
    "ledger",
    "mean_context",
    "published_table",
    "scores",
    "tradeoff",
]
