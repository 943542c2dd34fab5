"""A compact-context study as text for a terminal: the expanded table, retrieval controls, evidence budget, pairs and orderings."""

from collections.abc import Iterator
from typing import Any

from pamer_lab.analysis.compact import Line, budget_table, expanded_table, over_the_limit, paired_table, retrieval_table
from pamer_lab.analysis.orderings import orderings
from pamer_lab.studies.study import Study

CELL = 15


def tables(study: Study) -> Iterator[str]:
    """Line by line."""
    facts = study.corpus
    yield f"{study.study_id}   {facts['decision_points']} decisions, {facts['questions']} questions, read at {study.notes['layer']}"
    yield f"recall is labelled at {facts['asked']['recall']} of them; values are mean ± sd over {len(study.rows[0]['seeds'])} seeds"
    if "history" in study.notes:
        yield str(study.notes["history"])
    yield from _expanded(study)
    yield from _retrieval(study)
    yield from _budget(study)
    yield f"\n{'paired differences':<70}{'target':<12}{'metric':<7}{'mean':>8}{'p':>9}"
    for row in paired_table(study):
        yield f"{row['comparison']:<70}{row['target']:<12}{row['metric']:<7}{row['mean']:>+8.4f}{row['p']:>9.4f}"
    yield from _orderings(study)
    yield "\n" + ", ".join(f"{key.replace('_', ' ')} {value:,}" for key, value in study.notes["cost"].items())
    yield "seconds: " + ", ".join(f"{stage} {taken:,}" for stage, taken in study.notes["seconds"].items())


def _expanded(study: Study) -> Iterator[str]:
    titles = [f"{short} {metric}" for short in ("C", "R") for metric in ("AUROC", "F1", "agreement")]
    yield f"\n{'':<30}{'tokens %':>9}" + "".join(f"{title:>{CELL}}" for title in titles)
    group = ""
    for line in expanded_table(study):
        if line["group"] != group:
            group = line["group"]
            yield f"-- {group}"
        cells = [_value(line, f"{target}_{metric}") for target in ("compression", "recall") for metric in ("auroc", "f1", "agreement")]
        yield f"{line['label']:<30}{line['tokens_pct']:>9.1f}" + "".join(f"{text:>{CELL}}" for text in cells)
    if sentence := over_the_limit(study):
        yield sentence


def _retrieval(study: Study) -> Iterator[str]:
    lines = retrieval_table(study)
    if lines:
        titles = [f"{short} {metric}" for metric in ("AUROC", "agreement") for short in ("C", "R")]
        yield (
            f"\n{'retrieval controls':<30}{'tokens %':>9}"
            + "".join(f"{title:>{CELL}}" for title in titles)
            + f"{'not the newest':>{CELL + 3}}"
        )
    for line in lines:
        cells = [_value(line, f"{target}_{metric}") for metric in ("auroc", "agreement") for target in ("compression", "recall")]
        yield (
            f"{line['label']:<30}{line['tokens_pct']:>9.1f}"
            + "".join(f"{text:>{CELL}}" for text in cells)
            + _at(line, "points_unlike_recency")
        )


def _budget(study: Study) -> Iterator[str]:
    lines = budget_table(study)
    if lines:
        titles = "".join(f"{title:>{CELL}}" for title in ("C agreement", "R agreement"))
        yield f"\n{'evidence budget':<30}{'mean':>9}{'P95':>9}{'max':>9}{titles}{'cap binds':>{CELL + 3}}"
    for line in lines:
        sizes: dict[str, Any] = line["evidence_tokens"]
        cells = "".join(f"{_value(line, f'{target}_agreement'):>{CELL}}" for target in ("compression", "recall"))
        yield f"{line['label']:<30}{sizes['mean']:>9,.0f}{sizes['p95']:>9,.0f}{sizes['max']:>9,}{cells}{_at(line, 'points_cap_changed')}"


def _orderings(study: Study) -> Iterator[str]:
    yield "\nthe paper's orderings (not tested: both conditions of a pair read the same blocks)"
    for row in orderings(study):
        yield f"{row['state']:<14} {row['claim']} ({row['metric'].replace('_', ' ')}; {row['kept']} of {row['of']} pairs)"


def _value(line: Line, key: str) -> str:
    return "·" if line[key] is None else f"{line[key]:.3f} ± {line[f'{key}_sd']:.3f}"


def _at(line: Line, key: str) -> str:
    """At how many of the points that have an older block."""
    text = "·" if line[key] is None else f"at {line[key]:,} of {line['evidence_tokens']['n']:,}"
    return f"{text:>{CELL + 3}}"
