"""Transcript: one trace block by block, with an outline, token charts and search."""

from typing import Any

import polars as pl
import streamlit as st

from pamer_lab import figures
from pamer_lab.figures.text import counted
from pamer_lab.figures.theme import Meaning
from pamer_lab.report.config import ReplaySection
from pamer_lab.runs.recorded import compactions, recorded_context
from pamer_lab.spreadsheet import csv_text
from pamer_lab.ui.shared.charts import drawing, show_chart
from pamer_lab.ui.shared.loaders import rows_or_demo, stored_trace, table_version
from pamer_lab.ui.shared.page import part, run
from pamer_lab.ui.shared.picker import leave_removed, pick_trace
from pamer_lab.ui.shared.share import share
from pamer_lab.ui.shared.state import out_of_range
from pamer_lab.ui.shared.text import DEMO, counted_with, said_by_source
from pamer_lab.ui.shared.transcript import Transcript
from pamer_lab.ui.shared.words import HINTS
from pamer_lab.ui.transcript.facts import details, facts
from pamer_lab.ui.transcript.navigation import navigation, outline
from pamer_lab.ui.transcript.reader import reader
from pamer_lab.workspace import TRACES, StoredTrace


def start_over() -> None:
    """Another trace was chosen: the old block number means nothing in it."""
    st.session_state["block"] = 0
    st.query_params.pop("hit", None)


def context_before(transcript: Transcript, colours: dict[Meaning, str]) -> Any:
    recorded = recorded_context(transcript.trace)
    signs = [transcript.marks(block, edits=not any(recorded)) for block in range(len(transcript.before))]
    marked = {sign: [block for block, found in enumerate(signs) if sign in found] for sign in "▼▲"}
    return figures.history(
        transcript.before,
        colours,
        compressions=marked["▼"],
        recalls=marked["▲"],
        recorded=recorded,
        edits=compactions(transcript.trace),
    )


def block_sizes(transcript: Transcript, colours: dict[Meaning, str]) -> Any:
    return figures.blocks(transcript.sizes, colours, names=[f"{row['what']} {row['marks']}".rstrip() for row in transcript.outline])


def charts(stored: StoredTrace, transcript: Transcript) -> None:
    row, before = stored.row, transcript.before
    kind, demo = counted_with(row["tokens_kind"], row["tokenizer"]), DEMO if row["demo"] else ""
    counting = {name: row[name] for name in ("demo", "tokenizer", "tokens_kind")}
    of = (row["trace_id"], table_version(TRACES))
    left, right = st.columns(2, gap="medium")
    with left:
        ends = f"{before[0]:,} tokens before the first turn, {before[-1]:,} before the last"
        answer = f"{ends}; {kind}, n = {counted(len(before), 'turn')}.{said_by_source(stored.trace, before[0])}{demo}"
        show_chart(
            "Context size before each turn",
            drawing("growth", of, lambda colours: context_before(transcript, colours)),
            answer,
            key="growth",
            hint=HINTS["context"],
            csv=lambda: csv_text(
                pl.DataFrame(
                    {"turn": range(len(before)), "tokens_before": before, "recorded_by_source": recorded_context(stored.trace)} | counting
                )
            ),
        )
    with right:
        largest = max(range(len(transcript.sizes)), key=transcript.sizes.__getitem__)
        answer = f"Largest: block {largest} with {transcript.sizes[largest]:,} tokens; {kind}, n = {counted(len(before), 'block')}.{demo}"
        show_chart(
            "Tokens per block (click to open)",
            drawing("blocks", of, lambda colours: block_sizes(transcript, colours)),
            answer,
            key="strip",
            hint=HINTS["block"],
            csv=lambda: csv_text(pl.DataFrame({"block": range(len(before)), "tokens": transcript.sizes} | counting)),
        )


@part
def reading(stored: StoredTrace, transcript: Transcript) -> None:
    """Everything that depends on the block: its mark in the charts, search, outline and text."""
    leave_removed()
    charts(stored, transcript)
    block, hit = navigation(transcript)
    left, right = st.columns([2, 5], gap="medium")
    with left:
        outline(transcript, block)
    with right:
        reader(transcript, block, hit)


def main() -> None:
    rows, _ = rows_or_demo()
    head, picker, link = st.columns([2, 6, 1.2], vertical_alignment="bottom")
    head.title("Transcript")
    with picker:
        trace_id = pick_trace(rows, on_change=start_over)
    if trace_id is None:
        return
    stored, transcript = stored_trace(trace_id)
    asked = out_of_range("block", len(transcript.sizes))
    if asked is not None:
        st.warning(
            f"Block {asked:,} in this link does not exist: the trace has {len(transcript.sizes):,} blocks, counted from 0. Block 0 is open."
        )
    facts(stored, transcript)
    details(stored)
    reading(stored, transcript)
    with link:
        share(lambda: [ReplaySection(trace_id=trace_id, turn=st.session_state["block"], focus="transcript")])


run(main)
