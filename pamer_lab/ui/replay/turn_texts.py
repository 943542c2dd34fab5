"""The texts of one row of a turn: as the agent sent it, as the model would see it, and their word-by-word difference.

Everything a trace or a model wrote goes through `body` or a code block.
Invariant: `difference` is bounded, whatever the texts are, and every unseen character in it is made visible.
"""

from collections.abc import Sequence

import streamlit as st

from pamer_lab.blocks.differences import opcodes
from pamer_lab.blocks.render import render_message, render_tools
from pamer_lab.decisions import Span
from pamer_lab.figures.text import visible
from pamer_lab.runs.alignment import Row
from pamer_lab.runs.timeline import Timeline
from pamer_lab.runs.values import Run, Turn
from pamer_lab.ui.shared.runs import memories_of
from pamer_lab.ui.shared.widgets import body

LONG_DIFFERENCE = 1_500
"""Characters; a longer difference scrolls."""
DIFFERENCE_HEIGHT = 320
"""Height in pixels of a difference that scrolls."""
MOST_COVERED = 200
"""Maximum blocks that are shown next to the text that replaces them."""
MOST_WORDS = 4_000
"""Words of each text that are compared."""
MOST_LINES = 200
LONGEST = 40
"""Maximum words shown of one stretch; a longer one keeps its beginning and end."""


def row_texts(run: Run, row: Row, timeline: Timeline, turn: Turn, *, both: bool) -> None:
    if not both:
        body(_text(row, timeline, turn), key=f"item-{row.name}-{turn.t}")
        return
    sides = (_sent(row, timeline, turn), _seen(run, row, timeline, turn))
    for column, name, (words, text) in zip(st.columns(2), ("sent", "seen"), sides, strict=True):
        with column:
            st.caption(words)
            if text is not None:
                body(text, key=f"{name}-{row.name}-{turn.t}")
    (_, sent), (_, seen) = sides
    if sent and seen and sent != seen:
        st.caption("Word diff: − only on the left, + only on the right.")
        shown = difference(sent, seen)
        st.code(shown, language="diff", wrap_lines=True, height=DIFFERENCE_HEIGHT if len(shown) > LONG_DIFFERENCE else "content")


def _sent(row: Row, timeline: Timeline, turn: Turn) -> tuple[str, str | None]:
    """What the agent sent for a row: a caption and the text."""
    if row.state == "edited" and row.block is not None:
        return "Agent sent", _block_text(timeline, row.block)
    if row.sent is None and row.covers:
        covered = [block for first, last in row.covers for block in range(first, last)][:MOST_COVERED]
        text = "\n\n".join(_block_text(timeline, block) for block in covered)
        return f"Agent sent {block_words(row.covers)}, which this text replaces", text
    return "Agent sent", _text(row, timeline, turn) if row.sent is not None else ""


def _seen(run: Run, row: Row, timeline: Timeline, turn: Turn) -> tuple[str, str | None]:
    """What the model sees for a row, or in place of an omitted block: a caption and the text."""
    if row.seen is not None or row.block is None:
        return "Model sees: the same" if row.state == "same" else "Model sees", _text(row, timeline, turn)
    block = row.block
    item = next((entry for entry in turn.items if entry.text and any(first <= block < last for first, last in entry.spans)), None)
    if item is not None:
        return f"Model sees instead: the {item.kind} text for {block_words(item.spans)}", item.text
    memory = next((entry for entry in memories_of(run).values() if block in entry.steps), None)
    if memory is None:
        return "Model sees nothing", None
    return f"Not in the request. Summary in memory {memory.sequence}", memory.summary


def _text(row: Row, timeline: Timeline, turn: Turn) -> str:
    trace, pieces = timeline.trace, timeline.pieces
    if row.state == "edited" and row.item is not None:
        return turn.items[row.item].text
    if row.block is not None:
        return _block_text(timeline, row.block)
    if row.name == "tools":
        return render_tools(trace.tools)
    if row.name == "prefix":
        return "".join(render_message(message) for message in trace.messages[: pieces.prefix_end])
    return turn.items[row.item].text if row.item is not None else ""


def _block_text(timeline: Timeline, block: int) -> str:
    return "".join(render_message(message) for message in timeline.pieces.blocks[block].of(timeline.trace.messages))


def span_words(spans: Sequence[Span]) -> str:
    """The numbers of blocks: `4`, or `0-3, 7`."""
    return ", ".join(str(first) if last == first + 1 else f"{first}-{last - 1}" for first, last in spans)


def block_words(spans: Sequence[Span]) -> str:
    """Blocks by number: `block 4`, or `blocks 0-3, 7`."""
    return f"block{'' if sum(last - first for first, last in spans) == 1 else 's'} {span_words(spans)}"


def difference(first: str, second: str) -> str:
    """The texts as stretches, one per line; the last line says if anything was cut."""
    one, other = first.split(maxsplit=MOST_WORDS), second.split(maxsplit=MOST_WORDS)
    cut = len(one) > MOST_WORDS or len(other) > MOST_WORDS
    one, other = one[:MOST_WORDS], other[:MOST_WORDS]
    lines: list[str] = []
    for kind, a, b, c, d in opcodes(one, other, autojunk=True):
        if kind == "equal":
            lines.append("  " + _stretch(one[a:b]))
            continue
        lines += ["- " + _stretch(one[a:b])] * (b > a)
        lines += ["+ " + _stretch(other[c:d])] * (d > c)
    if cut or len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], "  … truncated; the texts are longer than this comparison"]
    return "\n".join(lines)


def _stretch(words: Sequence[str]) -> str:
    if len(words) > LONGEST:
        half = LONGEST // 2
        words = [*words[:half], f"… {len(words) - 2 * half:,} words …", *words[-half:]]
    return visible(" ".join(word if len(word) <= 200 else f"{word[:199]}…" for word in words))
