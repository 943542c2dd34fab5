"""A trace in one line, and its details on demand."""

from collections import Counter

import streamlit as st

from pamer_lab.blocks.calls import tool_tokens
from pamer_lab.figures.text import counted, short
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.trajectory.labels import by_hindsight
from pamer_lab.ui.shared.text import counted_with, in_code
from pamer_lab.ui.shared.transcript import Transcript
from pamer_lab.ui.shared.widgets import table
from pamer_lab.ui.shared.words import HINTS
from pamer_lab.workspace import StoredTrace

MOST_TOOLS = 6
"""Tools named in the line below the facts."""


def facts(stored: StoredTrace, transcript: Transcript) -> None:
    """The trace in one line."""
    row, trace = stored.row, stored.trace
    parts = [
        f"**{counted(row['turns'], 'turn')}**",
        f"**{short(row['tokens'])}** tokens ({counted_with(row['tokens_kind'], row['tokenizer'])})",
    ]
    if transcript.prefix_tokens:
        parts.append(f"{short(transcript.prefix_tokens)} in the prefix")
    if transcript.tools_tokens:
        parts.append(f"{short(transcript.tools_tokens)} in tool descriptions")
    if row["tool_calls"]:
        parts.append(counted(row["tool_calls"], "tool call"))
    if trace.reward is not None:
        parts.append(f"reward {trace.reward:g}")
    if row["labels"]:
        found = Counter(map(by_hindsight, trace.labels))
        parts += [counted(found[True], "hindsight label")] if found[True] else []
        parts += [counted(found[False], "label")] if found[False] else []
    if row["events"]:
        parts.append(counted(row["events"], "recorded event"))
    if row["demo"]:
        parts.append(":gray-badge[demo]")
    st.markdown(" · ".join(parts), help=f"{HINTS['tokens']} {HINTS['prefix']}")
    tools = tool_tokens(trace, transcript.message_tokens)
    if tools:
        named = " · ".join(f"{in_code(row['tool'], 40)} {row['share_pct']:.1f} %" for row in tools[:MOST_TOOLS])
        more = f" · {len(tools) - MOST_TOOLS:,} more" if len(tools) > MOST_TOOLS else ""
        st.caption(f"Tool results as a share of all tokens: {named}{more}", help="Details lists every tool with its calls.")


def _file(stored: StoredTrace) -> str:
    """The path of the file; reviewers see only its name."""
    path = stored.trace.source.path if stored.trace.source else ""
    return str(stored.row["name"]) if reviewer_mode() else path


def details(stored: StoredTrace) -> None:
    """Where the trace came from, its tools and its warnings, on demand."""
    row, trace = stored.row, stored.trace
    count = len(trace.warnings)
    title = f"Details and {counted(count, 'warning')}" if count else "Details"
    panel = st.expander(title, key="details", on_change="rerun", icon=":material/warning:" if count else None)
    if not panel.open:
        return
    with panel:
        if trace.warnings:
            st.markdown("**Warnings**", help=HINTS["warnings"])
            table([{"Where": item.where, "What": item.text} for item in trace.warnings])
        known = {
            "Trace id": trace.trace_id,
            "Question": trace.question_id,
            "Task": trace.task_id,
            "Format": trace.format,
            "Model": trace.model,
            "File": _file(stored),
            "Number in the file": str(row["index"]),
            "SHA-256 of the file": trace.source.sha256 if trace.source else "",
            "Messages": f"{row['messages']:,}, of which {row['prefix_messages']:,} in the prefix and {row['tool_results']:,} tool results",
        }
        known |= {key: str(value) for key, value in trace.meta.items()}
        if trace.usage:
            usage = trace.usage
            known["Recorded usage"] = (
                f"{usage.input_tokens:,} input ({usage.cached_tokens:,} cached) and {usage.output_tokens:,} output tokens"
            )
        table([{"What": key, "Value": value} for key, value in known.items() if value])
        used = tool_tokens(trace, stored.message_tokens)
        if used:
            st.markdown("**Tokens by tool**")
            titles = {"tool": "Tool", "calls": "Calls", "result_tokens": "Tokens of results", "share_pct": "Share of all tokens, %"}
            table(
                [{title: row[key] for key, title in titles.items()} for row in used],
                column_config={
                    titles["result_tokens"]: st.column_config.NumberColumn(format="localized"),
                    titles["share_pct"]: st.column_config.NumberColumn(format="%.1f"),
                },
            )
        if trace.tools:
            st.markdown(f"**{counted(len(trace.tools), 'tool')}**")
            table([{"Tool": tool.name, "Description": tool.description} for tool in trace.tools])
