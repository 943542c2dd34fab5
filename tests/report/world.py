"""A small workspace to report on: a trace with hostile words, several policies, selections and a review."""

from pathlib import Path

from pamer_lab.audit import AuditStore, ReviewStore
from pamer_lab.factory import Parts
from pamer_lab.report.config import GrowthSection, PublishedSection, ReplaySection, ReportConfig, StudySection
from pamer_lab.report.replay_part import choice_of
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.values import RunInfo
from pamer_lab.trajectory.values import Trace
from pamer_lab.workspace import Workspace
from tests.runs.making import PARTS, SMALL, call, estimated, make_trace

HOSTILE = [
    "</script><script>window.pwned = 1</script>",
    "<!--<script>window.pwned = 2",
    '<img src="http://127.0.0.1:9/x" onerror="window.pwned = 3">',
    "![x](http://127.0.0.1:9/y) [z](javascript:window.pwned=4)",
    "line\u2028separator\u2029 and \u202eright to left\u202c and a null \x00 and \x1b[31mred",
    "{{constructor.constructor('window.pwned=5')()}} ${window.pwned=6} &lt;b&gt; &amp;",
    '<svg onload="window.pwned=7"><style>*{display:none}</style>',
    "]]></textarea></pre></main><base href='http://127.0.0.1:9/'><meta http-equiv=refresh content='0;url=http://127.0.0.1:9'>",
]
POLICIES = ["base", "sliding-window:3", "periodic-summary:3", f"pamer{SMALL}", f"pamer+{SMALL}"]


def hostile_trace(turns: int = 16, words: int = 30, trace_id: str = "t-hostile") -> Trace:
    blocks = [
        call(
            n,
            f"clue {n} {HOSTILE[n % 8][:30]}",
            f"Document D{n:04d}: {HOSTILE[n % 8]} " + " ".join(f"word{n * 7 + k}" for k in range(words)),
        )
        for n in range(turns)
    ]
    return make_trace(blocks, trace_id=trace_id, task=f"Who founded the museum? {HOSTILE[0]}")


def filled(
    folder: Path, trace: Trace | None = None, policies: list[str] | None = None, parts: Parts = PARTS
) -> tuple[Workspace, list[RunInfo]]:
    """A workspace with the trace's runs, and a review of the first selection."""
    workspace = Workspace(folder)
    given = trace or hostile_trace()
    workspace.add_traces([given], estimated(), demo=True)
    heads = [replay(given.trace_id, policy, workspace, ReplayOptions(parts=parts)).head for policy in policies or POLICIES]
    rows = AuditStore(workspace.database).rows()
    if rows:
        ReviewStore(workspace.database).save(rows[0]["audit_id"], "Ada <b>", "wrong step", (1,), f"Look again {HOSTILE[0]}")
    return workspace, heads


def everything(heads: list[RunInfo], **more: object) -> ReportConfig:
    """A report with every kind of section."""
    runs = tuple(choice_of(head) for head in heads)
    sections = (
        ReplaySection(trace_id=heads[0].trace_id, runs=runs),
        GrowthSection(runs=runs, baseline="base"),
        StudySection(sample="controls"),
        StudySection(sample="layerwise"),
        PublishedSection(table="full_benchmark"),
        ReplaySection(trace_id=heads[0].trace_id),
    )
    return ReportConfig.model_validate({"sections": sections} | more)
