"""Many runs as plain data: what each comes to, its context turn by turn, and the means that the page derives again."""

from typing import Any

from pamer_lab.analysis.growth import REFERENCE_LINE, mean_context, policy_table, run_table, turn_table
from pamer_lab.errors import InputError
from pamer_lab.report.config import GrowthSection
from pamer_lab.workspace import Workspace


def growth_part(section: GrowthSection, workspace: Workspace) -> dict[str, Any]:
    """The section's data."""
    runs = run_table(workspace, [choice.run_id for choice in section.runs])
    if runs.is_empty():
        raise InputError("none of the runs named for context growth is done; replay them first")
    turns = turn_table(workspace, runs)
    series: dict[str, dict[str, list[int]]] = {
        part["run_id"][0]: {"active": part["active_tokens"].to_list(), "raw": part["raw_tokens"].to_list()}
        for part in turns.sort("run_id", "t").partition_by("run_id")
    }
    traces = {row["trace_id"]: row for row in workspace.trace_rows()}
    facts = [
        {key: traces[name][key] for key in ("trace_id", "name", "index", "question_id", "turns", "tokenizer", "tokens_kind", "demo")}
        for name in runs["trace_id"].unique(maintain_order=True).to_list()
        if name in traces
    ]
    return {
        "kind": "growth",
        "baseline": section.baseline or str(runs["policy"][0]),
        "reference": REFERENCE_LINE,
        "traces": sorted(facts, key=lambda row: (row["name"], row["index"], row["trace_id"])),
        "runs": [row | series.get(row["run_id"], {"active": [], "raw": []}) for row in runs.to_dicts()],
        "means": mean_context(turns).to_dicts(),
        "policies": policy_table(runs).to_dicts(),
    }
