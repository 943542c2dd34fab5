"""The workspace folder: one place for traces, features, memories, runs, studies and reviews."""

from pamer_lab.workspace.store import RUNS, TRACES, StoredTrace, TraceSize, Workspace, trace_row

__all__ = ["RUNS", "TRACES", "StoredTrace", "TraceSize", "Workspace", "trace_row"]
