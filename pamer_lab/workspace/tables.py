"""The tables that are listed for the whole workspace: traces and runs. Knows columns, nothing of what fills them."""

import pyarrow as pa

from pamer_lab.storage import TableSpec

TRACES = TableSpec(
    name="traces",
    key=("trace_id",),
    schema=pa.schema(
        [
            ("trace_id", pa.string()),
            ("question_id", pa.string()),
            ("task_id", pa.string()),
            ("name", pa.string()),
            ("path", pa.string()),
            ("index", pa.int64()),
            ("format", pa.string()),
            ("model", pa.string()),
            ("messages", pa.int64()),
            ("turns", pa.int64()),
            ("blocks", pa.int64()),
            ("tool_calls", pa.int64()),
            ("tool_results", pa.int64()),
            ("prefix_messages", pa.int64()),
            ("tokens", pa.int64()),
            ("tokenizer", pa.string()),
            ("tokens_kind", pa.string()),
            ("message_tokens", pa.list_(pa.int32())),
            ("labels", pa.int64()),
            ("events", pa.int64()),
            ("warnings", pa.int64()),
            ("reward", pa.float64()),
            ("demo", pa.bool_()),
            ("body", pa.large_binary()),
        ]
    ),
)
SUMMARY_COLUMNS = [name for name in TRACES.schema.names if name not in ("body", "message_tokens")]
"""A trace without its text."""

TOTALS = (
    *("main_input", "main_output", "aux_input", "aux_output", "total", "base_total", "peak_active"),
    *("cached_input", "uncached_input"),
)
"""Totals that have a column of their own, so that tables across runs need no JSON."""
RUNS = TableSpec(
    name="replay_runs",
    key=("run_id",),
    schema=pa.schema(
        [
            *((name, pa.string()) for name in ("run_id", "trace_id", "question_id", "task_id", "policy", "profile", "status")),
            *((name, pa.int64()) for name in ("turns", *TOTALS)),
            ("reduction_pct", pa.float64()),
            ("started", pa.string()),
            ("demo", pa.bool_()),
            ("head", pa.large_binary()),
        ]
    ),
)
RUN_COLUMNS = [name for name in RUNS.schema.names if name != "head"]
"""A run without its settings and turns."""
