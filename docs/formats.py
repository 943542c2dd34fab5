"""Writes the table of formats in `docs/trace-format.md`: `python docs/formats.py`.

What a format is comes from its reader's docstring; what it keeps is measured by reading the sample files of the tests, so a row cannot
claim more than a file shows. A test compares the page with this.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from pamer_lab.trajectory import Trace, read_all  # noqa: E402
from pamer_lab.trajectory.formats import formats  # noqa: E402

PAGE = PROJECT / "docs" / "trace-format.md"
SAMPLES = (PROJECT / "tests" / "fixtures" / "traces", PROJECT / "sample_traces")
BEGIN, END = "<!-- formats: begin -->\n", "<!-- formats: end -->"
HEAD = "| format | what it is | kept of the samples |\n| --- | --- | --- |\n"
ORDER = (
    "system",
    "thinking",
    "calls",
    "results",
    "failed results",
    "images",
    "usage per turn",
    "usage of the run",
    "tools",
    "model",
    "reward",
    "labels",
    "compactions",
    "context edits",
    "memory operations",
    "side agents",
    "notes",
)
EVENTS = {
    "compaction": "compactions",
    "context_edit": "context edits",
    "memory_write": "memory operations",
    "memory_read": "memory operations",
    "subagent": "side agents",
    "note": "notes",
}


def table() -> str:
    """The table, one row per format in the order of their names."""
    kept: dict[str, set[str]] = defaultdict(set)
    for item in read_all(path for folder in SAMPLES for path in sorted(folder.iterdir()) if not path.name.startswith(".")).traces:
        kept[item.format] |= set(_kept(item))
    rows = [
        f"| `{reader.NAME}` | {_sentence(reader.__doc__ or '')} | {', '.join(word for word in ORDER if word in kept[reader.NAME]) or '-'} |"
        for reader in sorted(formats(), key=lambda reader: reader.NAME)
    ]
    return HEAD + "\n".join(rows) + "\n"


def _sentence(text: str) -> str:
    """The first paragraph of a docstring as one line."""
    return " ".join(text.strip().partition("\n\n")[0].split()).rstrip(".").replace("|", "\\|")


def _kept(trace: Trace) -> Iterator[str]:
    for message in trace.messages:
        yield from ("system",) if message.role == "system" else ()
        yield from ("results",) if message.role == "tool" else ()
        yield from ("failed results",) if message.error else ()
        yield from ("thinking",) if message.thinking else ()
        yield from ("calls",) if message.tool_calls else ()
        yield from ("images",) if message.images else ()
        yield from ("usage per turn",) if message.usage else ()
    facts = {"usage of the run": trace.usage, "tools": trace.tools, "model": trace.model, "labels": trace.labels}
    yield from (word for word, value in facts.items() if value)
    yield from ("reward",) if trace.reward is not None else ()
    yield from (EVENTS[event.kind] for event in trace.events)


def written() -> str:
    """The page with its table as it should be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
