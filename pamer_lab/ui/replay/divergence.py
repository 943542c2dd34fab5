"""Where another policy first shows the model a different context: the turn, a way to open it, and what only one side has there."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import streamlit as st

from pamer_lab.replay.divergence import Divergence, first_divergence
from pamer_lab.replay.values import Run
from pamer_lab.ui.replay.turn_steps import open_turn
from pamer_lab.ui.shared.widgets import table, table_height


def divergences(run: Run, others: Sequence[Run]) -> None:
    """The open run against each of the others."""
    if not others:
        st.caption("Choose a second policy above to see where it first shows the model another context.")
    for other in others:
        found = first_divergence(run, other)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{found.sentence}.**", width="content")
            for policy in (found.first, found.second):
                if found.t is not None:
                    words, key = f"Open turn {found.t} of {policy}", f"open-{found.second}-{policy}"
                    st.button(words, key=key, type="tertiary", icon=":material/arrow_upward:", on_click=open_turn, args=(found.t, policy))
        if found.t is not None:
            rows = one_sided(found, run.head.block_tokens)
            table(
                rows, height=table_height(len(rows), most=240), column_config={"Tokens": st.column_config.NumberColumn(format="localized")}
            )


def one_sided(found: Divergence, block_tokens: Sequence[int]) -> list[dict[str, Any]]:
    """What only one of the contexts has, in order; neighbouring blocks are one row."""
    sides = ((found.first, found.only_first), (found.second, found.only_second))
    return [{"Only in": policy} | row for policy, items in sides for row in _rows(items, block_tokens)]


def _rows(items: Iterable[dict[str, Any]], block_tokens: Sequence[int]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    # The numbers of neighbouring blocks grow as their places do, so their difference stays the same.
    for _, run in groupby(enumerate(items), key=lambda entry: ("block" in entry[1], entry[1].get("block", 0) - entry[0])):
        part = [item for _, item in run]
        if "block" not in part[0]:
            rows.append({"Item": part[0]["kind"], "Tokens": part[0]["tokens"], "Text": part[0]["text"]})
            continue
        first, last = part[0]["block"], part[-1]["block"]
        name = f"block {first}" if first == last else f"blocks {first} to {last}"
        rows.append({"Item": name, "Tokens": sum(block_tokens[first : last + 1]), "Text": "word for word, as the trace has it"})
    return rows
