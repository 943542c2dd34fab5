"""A compact-context study -> the paper's tables and figure, measured and published side by side, and the paper's claims as orderings.

Reads studies, computes nothing new. A measured cell has its sd over seeds and its n; a cell that the study did not measure is None.
Published numbers come from another corpus and model: compare the order, not the values. A claim is a list of pairs, the first above the
second in one metric. Invariant: every claim is true of the published numbers (a test checks it), so a "no" is about the study.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from pamer_lab.analysis.published import sample_names, sample_study, table
from pamer_lab.errors import InputError
from pamer_lab.studies.compact.registry import CAPS, groups
from pamer_lab.studies.compact.values import FULL
from pamer_lab.studies.decisions import TARGETS
from pamer_lab.studies.study import Study, list_studies, load_study
from pamer_lab.workspace import Workspace

SAMPLE = "compact"
"""Name of the sample result."""
CELLS = tuple((target, metric) for target in TARGETS for metric in ("auroc", "f1", "agreement"))
RETRIEVERS = (
    *"random-top3 recency-top3 raw-top1 raw-top3 raw-top5".split(),
    *"embedding-top1 embedding-top3 embedding-top5".split(),
)
UNCAPPED = "embedding-top3"
ABOUT_TEXT = ("evidence_tokens", "reads", "inputs_over_the_limit", "points_unlike_recency", "points_cap_changed")
"""Facts of a row about the text it read (`studies.compact.study.overlap`); None if they do not apply."""

Line = dict[str, Any]
"""One line of a table: `condition`, `label`, `group`, `tokens_pct`, cells `<target>_<metric>` with `_sd`, and `published`."""


def compact_studies(workspace: Workspace) -> list[dict[str, Any]]:
    """The compact studies of a workspace without their rows, newest first."""
    return [row for row in list_studies(workspace) if row["kind"] == "compact"]


def open_compact(workspace: Workspace | None = None, study_id: str = "") -> Study:
    """One study of the workspace; without an id, the sample study that comes with the package."""
    if study_id and workspace is not None:
        return load_study(workspace, study_id)
    if SAMPLE not in sample_names():
        raise InputError("there is no compact-context study; create one: pamer-lab compact TRACE...")
    return sample_study(SAMPLE)


def expanded_table(study: Study) -> list[Line]:
    """Every condition of the study, in the order of the registry (Appendix B.1 and B.4)."""
    of: dict[str, dict[str, dict[str, Any]]] = {}
    for row in study.rows:
        of.setdefault(row["condition"], {})[row["target"]] = row
    return [_line(rows) for rows in of.values()]


def retrieval_table(study: Study) -> list[Line]:
    """Random, recency, lexical and embedding retrieval, in the paper's order (Appendix B.4)."""
    lines = {line["condition"]: line for line in expanded_table(study)}
    return [lines[name] for name in RETRIEVERS if name in lines]


def budget_table(study: Study) -> list[Line]:
    """Top3 by embedding under each cap and without one: recalled tokens and agreement (Appendix B.4)."""
    lines = [line for line in expanded_table(study) if line["condition"].startswith(UNCAPPED)]
    capped = sorted((line for line in lines if line["condition"] != UNCAPPED), key=lambda line: int(line["condition"].partition("-cap")[2]))
    return [*capped, *(line for line in lines if line["condition"] == UNCAPPED)]


def over_the_limit(study: Study) -> str:
    """A sentence that names the conditions whose inputs exceed what the model reads; empty if there are none."""
    over = [line for line in expanded_table(study) if line["inputs_over_the_limit"]]
    if not over:
        return ""
    named = ", ".join(f"{line['label']} at {line['inputs_over_the_limit']:,} of {line['points']:,} points" for line in over)
    return (
        f"Inputs over the model's limit of {study.settings['input_limit']:,} tokens are read without their middle, but counted in full: "
        f"{named}."
    )


def paired_table(study: Study) -> list[Line]:
    """Paired differences with their sign-flip p; `published` where the paper tests the same pair."""
    names = {
        "Recent2 + decision KD - Recent2": "Recent2 KD - Recent2",
        "Selective Raw Top5 - Hidden Bank Recent5": "Raw Top5 - Hidden Bank Recent5",
    }
    known = {(row["label"], row["metric"]): row for row in table("paired").rows}
    short = {"auroc": "AUROC", "f1": "F1"}
    return [
        row | {"published": known.get((names.get(row["comparison"], ""), f"{row['target'][0].upper()} / {short[row['metric']]}"))}
        for row in study.comparisons
    ]


def tradeoff(study: Study) -> list[Line]:
    """The figure's points: token share against AUROC, recent context on the left, recovered history on the right."""
    panels = {group.heading: group.panel for group in groups().values()}
    return [
        {
            "panel": panels.get(line["group"], "recovered"),
            "condition": line["condition"],
            "label": line["label"],
            "group": line["group"],
            "target": target,
            "tokens_pct": line["tokens_pct"],
            "auroc": line[f"{target}_auroc"],
            "sd": line[f"{target}_auroc_sd"],
            "n": line[f"{target}_n"],
            "published_tokens_pct": (line["published"] or {}).get("tokens_pct"),
            "published_auroc": (line["published"] or {}).get(f"{target}_auroc"),
        }
        for line in expanded_table(study)
        for target in TARGETS
    ]


def published_label(condition: str, label: str) -> str:
    """What the paper calls a condition."""
    if condition.startswith("embedding-top"):
        return f"Qwen {label.removeprefix('Embedding ')}"
    return label


def published_row(condition: str, label: str) -> dict[str, Any] | None:
    """The paper's row for a condition, from its compact table, else from its retrieval or budget table."""
    if condition.partition("-cap")[2]:
        return _find("evidence_caps", label.replace("Embedding ", "").replace(", cap", " cap"))
    found = _find("compact", label) or _find("retrieval", published_label(condition, label))
    if condition == UNCAPPED:
        return (found or {}) | (_find("evidence_caps", "Top3 uncapped") or {})
    return found


def _find(name: str, label: str) -> dict[str, Any] | None:
    return next((row for row in table(name).rows if row["label"] == label), None)


def _line(rows: dict[str, dict[str, Any]]) -> Line:
    first = next(iter(rows.values()))
    line: Line = {
        "condition": first["condition"],
        "label": first["name"],
        "group": first["group"],
        "tokens_pct": first["tokens_pct"],
        "points": first["points"],
        **{key: first.get(key) for key in ABOUT_TEXT},
        "published": published_row(first["condition"], first["name"]),
    }
    for target, metric in CELLS:
        row = rows.get(target)
        cell = None if row is None else row["agreement"] if metric == "agreement" else row["metrics"][metric]
        line[f"{target}_{metric}"] = cell and cell["mean"]
        line[f"{target}_{metric}_sd"] = cell and cell["sd"]
        line[f"{target}_n"] = row and row["n"]
    return line


def cell(lines: Sequence[Line], condition: str, key: str) -> Any:
    """One value of a table; None if the study has no such condition."""
    return next((line[key] for line in lines if line["condition"] == condition), None)


def best_line(lines: Sequence[Line], key: str) -> int | None:
    """Index of the best compact condition of a column; the full context is the reference and is excluded."""
    known = [(line[key], number) for number, line in enumerate(lines) if line[key] is not None and line["group"] != FULL.heading]
    if len(known) < 2:
        return None
    return (min if key == "tokens_pct" else max)(known, key=lambda pair: pair[0])[1]


def caps_of(study: Study | None) -> tuple[int, ...]:
    """The evidence caps that a study measured, or else the paper's."""
    names = study.settings.get("conditions", []) if study is not None else []
    return tuple(int(cap) for name in names if (cap := name.partition("-cap")[2])) or CAPS


BANKS = ("bank-recent5", "bank-uniform5", "bank-similarity1", "bank-similarity3", "bank-similarity5", "bank-similarity8")
RECURRENT = ("gru512", "gru512-similarity5")


State = Literal["holds", "does not hold", "not tested"]
"""`holds`: every pair is in the claimed order. `does not hold`: some tested pair is not. `not tested`: no tested pair fails, but in some
pair both conditions read the same blocks at every point, so that the corpus cannot tell them apart."""


@dataclass(frozen=True)
class Claim:
    """One ordering."""

    words: str
    metric: str
    """A cell of the expanded table, such as `compression_auroc`."""
    pairs: tuple[tuple[str, str], ...]
    """(above, below)"""


def _both(words: str, pairs: tuple[tuple[str, str], ...]) -> list[Claim]:
    return [Claim(words, f"{target}_auroc", pairs) for target in ("compression", "recall")]


def _rising(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((later, earlier) for earlier, later in pairwise(names))


CLAIMS: tuple[Claim, ...] = (
    *_both("Full Context is above Recent2", (("full", "recent2"),)),
    Claim("More recent blocks help compression", "compression_auroc", _rising("current", "recent1", "recent2", "recent4")),
    Claim("Recall gains up to Recent2", "recall_auroc", _rising("current", "recent1", "recent2")),
    Claim("Recall gains nothing from Recent4", "recall_auroc", (("recent2", "recent4"),)),
    Claim("Distillation raises Recent2's compression AUROC", "compression_auroc", (("recent2-kd", "recent2"),)),
    Claim("Distillation raises Recent2's compression F1", "compression_f1", (("recent2-kd", "recent2"),)),
    Claim("Distillation lowers Recent2's recall AUROC", "recall_auroc", (("recent2", "recent2-kd"),)),
    Claim("A scalar state adds no compression AUROC", "compression_auroc", (("recent2", "recent2-scalar"), ("recent4", "recent4-scalar"))),
    *_both("More blocks by words help", _rising("raw-top1", "raw-top3", "raw-top5")),
    *_both("More blocks by embedding help", _rising("embedding-top1", "embedding-top3", "embedding-top5")),
    Claim("Raw Top5 reaches Full Context for compression", "compression_auroc", (("raw-top5", "full"),)),
    *_both(
        "Chosen evidence is above chance and recency",
        tuple((one, other) for one in ("raw-top3", "embedding-top3") for other in ("random-top3", "recency-top3")),
    ),
    *_both("Raw Top5 is above Hidden Bank Recent5", (("raw-top5", "bank-recent5"),)),
    *_both("No hidden or recurrent memory reaches Recent2", tuple(("recent2", one) for one in (*BANKS, *RECURRENT))),
    Claim("Recent5 is the best hidden bank for compression", "compression_auroc", tuple((BANKS[0], one) for one in BANKS[1:])),
    Claim("A cap of 8K lowers agreement", "compression_agreement", (("embedding-top3", "embedding-top3-cap8192"),)),
)
"""In the order of the paper."""


def orderings(study: Study) -> list[dict[str, Any]]:
    """Each claim with the differences measured and published, and its `state` here."""
    lines = {line["condition"]: line for line in expanded_table(study)}
    return [found for claim in CLAIMS if (found := _checked(claim, lines))]


def _checked(claim: Claim, lines: dict[str, Line]) -> dict[str, Any] | None:
    """None if the study did not measure every condition of the claim."""
    pairs = []
    for above, below in claim.pairs:
        if above not in lines or below not in lines:
            return None
        first, second = lines[above], lines[below]
        printed: list[Any] = [(line["published"] or {}).get(claim.metric) for line in (first, second)]
        measured = first[claim.metric] - second[claim.metric]
        published = None if None in printed else round(printed[0] - printed[1], 6)
        tested = not first["reads"] or first["reads"] != second["reads"]
        pairs.append({"above": above, "below": below, "measured": measured, "published": published, "tested": tested})
    asked = [pair for pair in pairs if pair["tested"]]
    kept = sum(pair["measured"] > 0 for pair in asked)
    state: State = "does not hold" if kept < len(asked) else "holds" if len(asked) == len(pairs) else "not tested"
    return {"claim": claim.words, "metric": claim.metric, "state": state, "kept": kept, "of": len(pairs), "pairs": pairs}
