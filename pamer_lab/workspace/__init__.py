"""The workspace folder: one place for traces, features, memories, runs, studies and reviews."""

from pamer_lab.workspace.store import StoredTrace, TraceSize, Workspace, trace_row
from pamer_lab.workspace.tables import RUNS, TRACES

__all__ = ["RUNS", "TRACES", "StoredTrace", "TraceSize", "Workspace", "trace_row"]
