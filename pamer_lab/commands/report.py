"""`pamer-lab report RUN... --out FILE.html`: the standalone share page, and a zip with its numbers."""

import argparse
import shlex
from pathlib import Path
from typing import Any

from pamer_lab.analysis.published import sample_names
from pamer_lab.cli import say
from pamer_lab.commands.option_groups import MAX_MB, without_folder
from pamer_lab.commands.scanning import show_findings
from pamer_lab.errors import InputError
from pamer_lab.policies.registry import parse_policy
from pamer_lab.redaction import summary
from pamer_lab.report.config import (
    ArenaSection,
    GrowthSection,
    PublishedSection,
    ReplaySection,
    ReportConfig,
    RunChoice,
    StudySection,
    read_config,
)
from pamer_lab.report.making import make, with_runs, write
from pamer_lab.report.replay_part import choice_of
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.values import RunInfo
from pamer_lab.workspace import Workspace


def run(args: argparse.Namespace) -> dict[str, Any]:
    workspace = Workspace()
    config = _config(args, workspace)
    if Path(args.out).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--out must be an .html file, not {args.out!r}")
    report = make(with_runs(config, workspace, device=args.device, say=say), workspace, command=_command(args))
    findings = report.document.findings
    facts: dict[str, Any] = {
        "findings": [vars(finding) for finding in findings],
        "found": summary(findings),
        "redact": config.redact,
        "sections": [section.kind for section in config.sections],
        "texts_cut": report.document.about["text"]["cut"],
    }
    if args.scan:
        return {"path": "", "bytes": 0} | facts
    zipped = write(report, Path(args.out))
    return {"path": args.out, "bytes": len(report.html), "zip": str(zipped), "zip_bytes": len(report.archive)} | facts


def _config(args: argparse.Namespace, workspace: Workspace) -> ReportConfig:
    if args.config:
        if args.runs:
            raise InputError("--config already names the runs; do not pass others")
        return read_config(args.config)
    heads = [head for name in args.runs for head in _heads(name, workspace)]
    if not heads and not args.study and not args.published and not args.arena:
        raise InputError("name at least one run or trace; `pamer-lab replay` prints run ids")
    runs = tuple(dict.fromkeys(choice_of(head) for head in heads))
    sections: list[Any] = [
        ReplaySection(trace_id=trace_id, runs=tuple(choice for choice in runs if choice.trace_id == trace_id))
        for trace_id in dict.fromkeys(choice.trace_id for choice in runs)
    ]
    if args.growth:
        sections.append(GrowthSection(runs=runs, baseline=_baseline(runs)))
    sections += [StudySection(sample=name) if name in sample_names() else StudySection(study_id=name) for name in args.study]
    sections += [PublishedSection(table=name) for name in args.published]
    sections += [ArenaSection(arena_id=name, against=parse_policy(args.against).name) for name in args.arena]
    return ReportConfig(
        title=args.title, sections=tuple(sections), text=not args.no_text, redact=args.redact, max_mb=args.max_mb, prices=args.prices
    )


def _heads(name: str, workspace: Workspace) -> list[RunInfo]:
    """One run, or the newest finished run of each policy of a trace."""
    store = RunStore(workspace)
    head = store.head(name)
    if head is not None:
        return [head]
    newest = {head.policy: head for head in store.heads(trace_id=name) if head.status == "done"}
    if not newest:
        raise InputError(f"{name!r} is neither a run of this workspace nor a trace with finished runs; `pamer-lab replay` creates runs")
    return list(newest.values())


def _baseline(runs: tuple[RunChoice, ...]) -> str:
    return next((choice.policy for choice in runs if choice.policy == "base"), runs[0].policy if runs else "")


def _command(args: argparse.Namespace) -> str:
    """The command that makes this report again; of files it has the names only, so that no path of this machine is in the page."""
    words = ["pamer-lab", "report", *args.runs]
    words += ["--growth"] if args.growth else []
    words += [word for name in args.study for word in ("--study", name)] + [
        word for name in args.published for word in ("--published", name)
    ]
    words += [word for name in args.arena for word in ("--arena", name)]
    words += ["--against", args.against] if args.arena and args.against != "base" else []
    words += ["--no-text"] if args.no_text else []
    words += ["--title", args.title] if args.title else []
    words += ["--prices", without_folder(args.prices)] if args.prices else []
    words += ["--max-mb", f"{args.max_mb:g}"] if args.max_mb != MAX_MB else []
    words += ["--config", Path(args.config).name] if args.config else ["--redact", args.redact]
    return shlex.join([*words, "--out", Path(args.out).name])


def show(result: dict[str, Any]) -> None:
    show_findings(result)
    if result["path"]:
        print(f"{result['path']}: {result['bytes']:,} bytes; {result['zip']}: {result['zip_bytes']:,} bytes")
