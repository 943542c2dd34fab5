"""Creates a report: replays missing runs if the configuration asks for them, then writes the page and the zip.

Each file is written completely or not at all, and the page never exceeds the configured size.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pamer_lab.errors import InputError
from pamer_lab.report.bundle import bundle
from pamer_lab.report.config import GrowthSection, ReplaySection, ReportConfig, RunChoice
from pamer_lab.report.document import Document, build
from pamer_lab.report.page import page
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.store import RunStore
from pamer_lab.storage.files import write_whole
from pamer_lab.workspace import Workspace


@dataclass(frozen=True)
class Report:
    """A finished report in memory."""

    document: Document
    html: bytes
    archive: bytes


def make(config: ReportConfig, workspace: Workspace, *, command: str = "") -> Report:
    """The page and the zip; the configuration's runs must be stored."""
    document = build(config, workspace, command=command)
    text = page(document).encode()
    limit = config.max_mb * 1_000_000
    if len(text) > limit:
        raise InputError(
            f"the report would be {len(text) / 1e6:.1f} MB, over the limit of {config.max_mb:g}: choose fewer runs, omit text (--no-text), "
            "or raise the limit (--max-mb)"
        )
    return Report(document, text, bundle(document))


def make_files(folder: str, config: str, command: str, out: str) -> dict[str, Any]:
    """Write `share.html` and `share.zip` to a folder and return what the reader sees before the download; for a separate process."""
    report = make(ReportConfig.model_validate_json(config), Workspace(folder), command=command)
    write(report, Path(out) / "share.html")
    return {"findings": report.document.findings, "text": report.document.about["text"]}


def with_runs(
    config: ReportConfig, workspace: Workspace, *, device: str = "auto", say: Callable[[str], None] = lambda text: None
) -> ReportConfig:
    """The configuration with every run present: missing and unfinished runs are replayed now."""
    found: dict[RunChoice, RunChoice] = {}

    def present(choice: RunChoice) -> RunChoice:
        if choice not in found:
            found[choice] = _present(choice, workspace, device, say)
        return found[choice]

    sections: list[Any] = []
    for section in config.sections:
        if isinstance(section, ReplaySection | GrowthSection):
            section = section.model_copy(update={"runs": tuple(present(choice) for choice in section.runs)})
        sections.append(section)
    return config.model_copy(update={"sections": tuple(sections)})


def _present(choice: RunChoice, workspace: Workspace, device: str, say: Callable[[str], None]) -> RunChoice:
    known = RunStore(workspace).head(choice.run_id) if choice.run_id else None
    if known is not None and known.status == "done":
        return choice
    say(f"replaying {choice.trace_id} through {choice.policy}")
    run = replay(choice.trace_id, choice.policy, workspace, ReplayOptions(choice.profile, device, choice.turn_limit, heads=choice.heads))
    if choice.run_id and run.run_id != choice.run_id:
        raise InputError(
            f"{choice.policy} produced run {run.run_id} instead of {choice.run_id}: models, heads, tokenizer or program differ. "
            "Remove `run_id` from the configuration to accept the new run"
        )
    return choice.model_copy(update={"run_id": run.run_id})


def write(report: Report, path: Path) -> Path:
    """Write the page at `path` and the zip next to it; returns the zip's path."""
    beside = path.with_suffix(".zip")
    write_whole(beside, report.archive, parents=True)
    write_whole(path, report.html)
    return beside
