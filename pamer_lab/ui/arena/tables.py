"""Tables of the Arena page: results by policy, paired differences, and outcomes by task, with a button that opens an episode in Replay."""

from typing import Any

import streamlit as st

from pamer_lab.arena.opening import open_episode
from pamer_lab.figures.text import short
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.ui.shared.loaders import workspace
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.widgets import table, table_height

BADGE = ":orange-badge[Simulated agent]"
MEASURES = {"reward": "Score", "total": "Tokens", "cost": "Cost", "turns": "Turns"}


def result_rows(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The paper's columns, one row per policy, the bounds last."""
    return [
        {
            "Policy": row["policy"] + (" (bound)" if row["bound"] else ""),
            "Score": f"{row['success_rate']:.2f}",
            "95 % interval": f"{row['ci'][0]:.2f} to {row['ci'][1]:.2f}",
            "Tokens per task": short(row["total"]),
            "Change": f"{row['vs_base_pct']:+.1f} %" if row["vs_base_pct"] is not None and row["policy"] != "base" else "",
            "Peak": short(row["peak_active"]),
            "Turns": f"{row['turns']:.1f}",
            "Repeats": f"{row['repeats']:.1f}",
            "Cost": f"{row['cost']:.4f}",
            "Tasks": row["n"],
        }
        for row in [*result["results"], *result["bounds"].values()]
    ]


def pair_rows(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Differences from base on the same tasks."""
    return [
        {
            "Policy": row["policy"],
            "Measure": MEASURES[row["measure"]],
            "Difference from base": _signed(row["difference"], row["measure"]),
            "95 % interval": f"{_signed(row['ci'][0], row['measure'])} to {_signed(row['ci'][1], row['measure'])}",
            "p (exact sign flip)": f"{row['p']:.4f}" if row["p"] >= 0.0001 else "< 0.0001",
            "Tasks": row["n"],
        }
        for row in result["pairs"]
        if row["measure"] in MEASURES
    ]


def _signed(value: float, measure: str) -> str:
    return f"{value:+,.0f}" if measure == "total" else f"{value:+.4f}" if measure == "cost" else f"{value:+.2f}"


def outcome_rows(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Tasks as rows, policies as columns: right, or why not, and the lost fact that made it diverge from base."""
    rows: dict[int, dict[str, Any]] = {}
    for entry in result["tasks"]:
        rows.setdefault(entry["task"], {"Task": entry["task"]})[entry["policy"]] = _outcome(entry)
    return [rows[number] for number in sorted(rows)]


def _outcome(entry: dict[str, Any]) -> str:
    said = "correct" if entry["reward"] == 1 else f"{entry['share']:.0%} correct" if entry["ended"] == "answered" else entry["ended"]
    if entry["left_base_at"] is None:
        return f"{said}, {entry['turns']} turns"
    lost = f", lost: {entry['lost_fact']}" if entry["lost_fact"] else ""
    return f"{said}, {entry['turns']} turns; diverged from base at turn {entry['left_base_at']}{lost}"


def show_outcomes(result: dict[str, Any]) -> None:
    """The table of tasks, and one episode to open."""
    rows = outcome_rows(result)
    table(rows, height=table_height(len(rows), most=420))
    entries = {f"task {entry['task']} · {entry['policy']}": entry for entry in result["tasks"]}
    picker, action = st.columns([5, 2], vertical_alignment="bottom")
    picked = picker.selectbox("Episode", list(entries), key="arena-episode")
    entry = entries[picked]
    if entry["missing"]:
        st.caption("Missing from the answer: " + "; ".join(in_code(fact, 120) for fact in entry["missing"]))
    if action.button("Open in Replay", disabled=reviewer_mode(), key="arena-open"):
        opened = open_episode(workspace(), result["arena_id"], entry["task"], entry["policy"])
        chosen = list(dict.fromkeys(["base", opened["policy"]]))
        st.switch_page("pages/replay.py", query_params={"trace": opened["trace_id"], "policies": chosen})
