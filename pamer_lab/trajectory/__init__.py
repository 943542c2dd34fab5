"""A file -> `Trace`: values, format detection, one module per format, labels."""

from pamer_lab.trajectory.reading import Reading, Rejection, iter_traces, read_all, read_bytes, read_files, read_traces
from pamer_lab.trajectory.values import Event, Image, Label, Message, Source, Tool, ToolCall, Trace, Usage, Warning

__all__ = [
    "Event",
    "Image",
    "Label",
    "Message",
    "Reading",
    "Rejection",
    "Source",
    "Tool",
    "ToolCall",
    "Trace",
    "Usage",
    "Warning",
    "iter_traces",
    "read_all",
    "read_bytes",
    "read_files",
    "read_traces",
]
