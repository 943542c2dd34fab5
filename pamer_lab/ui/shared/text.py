"""Untrusted text in Markdown and in search results, and the limits of text on a page.

Trace text reaches the browser only through `st.code`, `st.text` and table cells; where a label must be Markdown it is quoted by `in_code`,
and in a figure by `figures.text.in_figure`.
"""

import re
from typing import get_args

from pamer_lab.blocks.tokens import CountKind
from pamer_lab.figures.text import one_line, visible
from pamer_lab.runs.recorded import not_in_file, recorded_context
from pamer_lab.trajectory import Trace

CAP = 2_000
"""Characters of a body that are shown before "show all"."""
DEMO = " Demo data."
"""Ends the caption of charts with demo data; a saved picture includes it."""
PIECE = 100_000
"""Characters of a body that "show all" puts on the page at a time."""


def in_code(text: str, limit: int = 200) -> str:
    """The text as a markdown code span, in which links, images, directives and emphasis have no effect."""
    shown = one_line(text, limit)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {shown} {fence}" if shown else "` `"


def counted_with(kind: str, tokenizer: str) -> str:
    """`measured with SmolLM2`: how tokens were counted. Quoted, since an imported run may name anything."""
    return f"{kind if kind in get_args(CountKind) else 'counted'} with {in_code(tokenizer, 60)}"


def excerpt(text: str, start: int, end: int, around: int = 120) -> str:
    """A search hit on one line, between double square brackets, with its surroundings."""
    before, hit, after = text[max(0, start - around) : start], text[start:end], text[end : end + around]
    head = "…" if start > around else ""
    tail = "…" if end + around < len(text) else ""
    return head + _flat(before) + "⟦" + _flat(hit) + "⟧" + _flat(after) + tail


def _flat(text: str) -> str:
    return visible(text).replace("\n", "⏎").replace("\t", " ")


def said_by_source(trace: Trace, counted_first: int) -> str:
    """What the source recorded about its own context and what its file lacks, as sentences after a space; empty if neither is known."""
    sizes, missing = [size for size in recorded_context(trace) if size], not_in_file(trace)
    said = ""
    if sizes:
        said = f" The source recorded {sizes[0]:,} tokens for the first request and {sizes[-1]:,} for the last, with its own tokenizer."
    if missing:
        said += f" The {counted_first:,} tokens counted before turn 0 leave out the {' and the '.join(missing)}: the file has none."
    return said
