"""Says which history the decision points were read from."""

from pamer_lab.counts import counted
from pamer_lab.trajectory.recorded import History


def sentence(history: History, recorded: int, traces: int) -> str:
    """Which history was used, and in how many traces it differs from the full one."""
    if history == "full":
        return "full history, including what agents compressed away"
    return f"recorded history: {recorded:,} of {counted(traces, 'trace')} record memory operations; the others are read in full"
