"""A configuration -> the document of a report: its sections, its texts, and its provenance.

Gathers the parts (`replay_part`, and here growth, studies and published tables), scans and redacts secrets in all of them, shortens texts
to the budget, and names them. The page verifies stored means and sds: it derives them again from turns and seeds.
Invariant: all content of the page and the tables comes through here, so that redacted text is redacted in both.
"""

import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pamer_lab
from pamer_lab.analysis.frontier import frontier, without_times
from pamer_lab.analysis.growth import REFERENCE_LINE, mean_context, policy_table, run_table, turn_table
from pamer_lab.analysis.outcomes import outcome
from pamer_lab.analysis.published import sample_study, table
from pamer_lab.arena.store import ArenaStore
from pamer_lab.arena.summary import summary
from pamer_lab.errors import InputError
from pamer_lab.policies.registry import POLICIES
from pamer_lab.prices import PriceTable, find_prices
from pamer_lab.redaction import Finding, own_scan, statement
from pamer_lab.report.config import ArenaSection, GrowthSection, PublishedSection, ReplaySection, ReportConfig, StudySection
from pamer_lab.report.replay_part import replay_part, run_counter, run_timeline
from pamer_lab.report.texts import Fitted, Ref, Texts, fit, json_text, named
from pamer_lab.runs.cost import run_cost
from pamer_lab.runs.evidence import fates, survival_rates
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.values import FIXED_ACTIONS
from pamer_lab.studies.study import load_study
from pamer_lab.workspace import Workspace


def growth_part(section: GrowthSection, workspace: Workspace, prices: PriceTable) -> dict[str, Any]:
    """The section's data."""
    runs = run_table(workspace, [choice.run_id for choice in section.runs])
    if runs.is_empty():
        raise InputError("none of the runs for context growth is finished; replay them first")
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
        "frontier": frontier_part(runs["run_id"].to_list(), workspace, prices),
    }


def frontier_part(run_ids: list[str], workspace: Workspace, prices: PriceTable) -> dict[str, Any]:
    """Cost against evidence, with the name, date and source of the price table."""
    store, outcomes = RunStore(workspace), []
    for head in store.heads(run_ids=run_ids):
        run = store.run(head.run_id)
        timeline = run_timeline(workspace.trace(head.trace_id), [run], workspace)
        facts = {"policy": head.policy, "trace_id": head.trace_id, "question_id": head.question_id}
        rates = survival_rates(fates(timeline, run.turns))
        outcomes.append(outcome(facts, run.totals, run_cost(run, prices, timeline, run_counter(run, workspace)).as_json(), rates))
    found = frontier(outcomes)
    return found | {"untimed": without_times(found), "prices": {"name": prices.name, "date": prices.date, "source": prices.source}}


LEFT_OUT = frozenset({"margins"})
"""Fields that only the dashboard uses: packed scores of every test decision."""


def study_part(section: StudySection, workspace: Workspace) -> dict[str, Any]:
    """The section's data; results of single decision points stay in the workspace."""
    study = sample_study(section.sample) if section.sample else load_study(workspace, section.study_id)
    value = study.to_json()
    value["rows"] = [{key: item for key, item in row.items() if key not in LEFT_OUT} for row in study.rows]
    return {
        "kind": "study",
        "study": {key: value[key] for key in ("study_id", "kind", "name", "command", "model", "corpus", "settings", "rows", "comparisons")},
        "notes": {key: item for key, item in study.notes.items() if isinstance(item, str | int | float | dict)},
        "demo": bool(section.sample),
    }


def published_part(section: PublishedSection) -> dict[str, Any]:
    """A table as the paper prints it."""
    shown = table(section.table)
    return {
        "kind": "published",
        "name": shown.name,
        "title": shown.title,
        "caption": shown.caption,
        "place": shown.place,
        "note": shown.note,
        "columns": [
            {"key": column.key, "title": column.title, "unit": column.unit, "digits": column.digits, "better": column.better}
            for column in shown.columns
        ],
        "rows": list(shown.rows),
    }


def arena_part(section: ArenaSection, workspace: Workspace, prices: PriceTable) -> dict[str, Any]:
    """An arena's results; its means and differences can be derived again from its tasks."""
    found = summary(ArenaStore(workspace), section.arena_id, prices.name, against=section.against)
    if not found["results"]:
        raise InputError(f"arena {section.arena_id} has no finished episode; run `pamer-lab arena` to play it")
    return {"kind": "arena"} | found


PACKAGES = ("lancedb", "numpy", "polars", "sentence-transformers", "tokenizers", "torch", "transformers")
"""Packages that numbers in a report can depend on."""


@dataclass(frozen=True)
class Document:
    """Everything a report says, ready to be written as a page or as tables."""

    config: ReportConfig
    about: dict[str, Any]
    sections: list[dict[str, Any]]
    texts: dict[str, str]
    findings: list[Finding]


def build(config: ReportConfig, workspace: Workspace, *, command: str = "", now: datetime | None = None) -> Document:
    """The document that a configuration names; its runs must be in the workspace."""
    texts, prices = Texts(), find_prices(config.prices, workspace.path)
    scan = own_scan(config.redact)
    parts = [_part(section, workspace, texts, prices) for section in config.sections]
    scan.learn(parts, texts.words)
    sections = [scan.walk(part, f"section {number}") for number, part in enumerate(parts, 1)]
    words = [scan.clean(text, place) for text, place in zip(texts.words, texts.places, strict=True)]
    fitted = fit(words, int(config.max_mb * 1_000_000 * 0.97) - _size(sections) - PAGE_BYTES) if config.text else None
    about = scan.walk(_about(config, command, now or datetime.now(UTC)), "about")
    about |= {"redaction": statement(scan), "text": _text_facts(config, fitted, len(texts.words))}
    names = fitted.names if fitted else None
    return Document(config, about, [named(section, names) for section in sections], fitted.words if fitted else {}, scan.findings)


PAGE_BYTES = 150_000
"""Room for the page's own script, style and facts."""


def _part(
    section: ReplaySection | GrowthSection | StudySection | PublishedSection | ArenaSection,
    workspace: Workspace,
    texts: Texts,
    prices: PriceTable,
) -> dict[str, Any]:
    match section:
        case ReplaySection():
            return replay_part(section, workspace, texts, prices)
        case GrowthSection():
            return growth_part(section, workspace, prices)
        case StudySection():
            return study_part(section, workspace)
        case PublishedSection():
            return published_part(section)
        case ArenaSection():
            return arena_part(section, workspace, prices)


def _size(sections: list[dict[str, Any]]) -> int:
    """Approximate bytes of everything but the texts."""
    return sum(len(json_text(named(section, None)).encode()) for section in sections) + 40 * sum(_refs(section) for section in sections)


def _refs(value: Any) -> int:
    match value:
        case Ref():
            return 1
        case dict():
            return sum(map(_refs, value.values()))
        case list() | tuple():
            return sum(map(_refs, value))
        case _:
            return 0


def _about(config: ReportConfig, command: str, now: datetime) -> dict[str, Any]:
    return {
        "format": config.format,
        "title": config.title,
        "made": now.isoformat(timespec="seconds"),
        "command": command,
        "config": config.model_dump(mode="json"),
        "versions": {"pamer-lab": pamer_lab.__version__, "python": platform.python_version(), "system": platform.system()}
        | {name: found for name in PACKAGES if (found := _version(name))},
        "fixed_actions": FIXED_ACTIONS,
        "colours": {name: kind.look.colour for name, kind in POLICIES.items()},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _text_facts(config: ReportConfig, fitted: Fitted | None, count: int) -> dict[str, Any]:
    return {"included": config.text, "texts": count, "cut": fitted.cut if fitted else 0, "limit": fitted.limit if fitted else 0}
