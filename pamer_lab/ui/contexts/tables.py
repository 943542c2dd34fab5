"""The tables of the Compact contexts page (conditions, pairs, retrieval controls, budgets, orderings) and the answer below its chart."""

import polars as pl
import streamlit as st

from pamer_lab.analysis.compact import CELLS, Line, State, best_line, budget_table, expanded_table, orderings, paired_table, retrieval_table
from pamer_lab.counts import counted
from pamer_lab.figures.text import layer_words
from pamer_lab.spreadsheet import csv_text
from pamer_lab.studies.compact.values import FULL
from pamer_lab.studies.decisions import TARGETS
from pamer_lab.studies.study import Study
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.widgets import table, table_height
from pamer_lab.ui.shared.words import HINTS

BEST = "★"
MARKS: dict[State, str] = {"holds": "✓ holds", "does not hold": "✕ does not hold", "not tested": "– not tested"}
TITLES = {"auroc": "AUROC", "f1": "F1", "agreement": "agreement"}


def tradeoff_answer(study: Study, *, published: bool) -> str:
    """The best compact condition of each target with its tokens; n; tokenizer."""
    lines = expanded_table(study)
    full = next((line for line in lines if line["condition"] == "full"), None)
    sentences = []
    for target in TARGETS:
        key = f"{target}_auroc"
        best = best_line(lines, key)
        if best is None:
            continue
        line = lines[best]
        against = f"; {FULL.heading} has {cell_text(full, key)}" if full and full[key] is not None else ""
        asked = study.corpus["asked"][target]
        sentences.append(
            f"{target.capitalize()} (n = {asked:,}): best is {line['label']} with {cell_text(line, key)} at {line['tokens_pct']:.1f} % "
            f"of the tokens{against}."
        )
    counted_by = study.settings.get("tokenizer", study.model)
    sentences.append(
        f"Measured with {in_code(study.model, 40)} at {layer_words(str(study.notes.get('layer', 'one layer')))}, "
        f"tokens counted with {in_code(str(counted_by), 40)}; "
        "the token share counts text, not stored states."
    )
    if published:
        sentences.append("Open marks are the paper's results for its own model and traces.")
    return " ".join(sentences)


def conditions_table(study: Study, *, published: bool) -> None:
    """Every condition in the paper's groups; a click on a heading sorts; the best compact one of each column has a star."""
    import pandas as pd

    lines = expanded_table(study)
    columns = {"Group": "group", "Condition": "label", "Tokens, %": "tokens_pct"}
    columns |= {f"{target[0].upper()} {TITLES[metric]}": f"{target}_{metric}" for target, metric in CELLS}
    rows = [{title: line[key] for title, key in columns.items()} for line in lines]
    if published:
        for row, line in zip(rows, lines, strict=True):
            row |= {f"{title}, published": (line["published"] or {}).get(key) for title, key in list(columns.items())[2:]}
    frame = pd.DataFrame(rows)
    frame = frame.dropna(axis="columns", how="all")
    shown = frame.style.format(precision=3, na_rep="")
    for title, key in columns.items():
        if key in ("group", "label") or title not in frame:
            continue
        best = best_line(lines, key)
        for number, line in enumerate(lines):
            text = cell_text(line, key) + (f" {BEST}" if number == best else "")
            shown = shown.format(lambda value, text=text: text, subset=pd.IndexSlice[[number], [title]])
        if best is not None:
            shown = shown.set_properties(subset=pd.IndexSlice[[best], [title]], **{"font-weight": "bold"})
    st.dataframe(
        shown,
        hide_index=True,
        key="conditions",
        placeholder="",
        height=table_height(len(rows), most=640),
        column_config={
            **{title: st.column_config.NumberColumn(width=125) for title in columns if title not in ("Group", "Condition")},
            "Group": st.column_config.TextColumn(width=200),
            "Condition": st.column_config.TextColumn(width=190, pinned=True),
            "Tokens, %": st.column_config.NumberColumn(width=90, help=HINTS["share"]),
            "C AUROC": st.column_config.NumberColumn(width=125, help=f"Compression. {HINTS['auroc']}"),
            "R AUROC": st.column_config.NumberColumn(width=125, help=f"Recall. {HINTS['auroc']}"),
            "C agreement": st.column_config.NumberColumn(width=125, help=HINTS["agreement"]),
            "R agreement": st.column_config.NumberColumn(width=125, help=HINTS["agreement"]),
        },
    )


def cell_text(line: Line, key: str) -> str:
    value = line[key]
    if value is None:
        return ""
    if key == "tokens_pct":
        return f"{value:.1f}"
    return f"{value:.3f} ± {line[f'{key}_sd']:.3f}" if line.get(f"{key}_sd") is not None else f"{value:.3f}"


def conditions_csv(study: Study, *, demo: bool) -> str:
    """The table with deviations, n and the published values, each row with the model and tokenizer it was measured with."""
    source = {"kind": "measured", "model": study.model, "tokenizer": str(study.settings.get("tokenizer", study.model)), "demo": demo}
    flat = []
    for line in expanded_table(study):
        known = {key: value for key, value in line.items() if not isinstance(value, dict)}
        evidence = {f"evidence_tokens_{key}": value for key, value in (line["evidence_tokens"] or {}).items()}
        printed = {f"published_{key}": value for key, value in (line["published"] or {}).items() if isinstance(value, int | float)}
        flat.append(known | evidence | printed | source)
    return csv_text(pl.DataFrame(flat, infer_schema_length=None))


def pairs(study: Study) -> None:
    """Paired differences over seeds with their exact sign-flip p, next to the paper's."""
    lines = paired_table(study)
    if not lines:
        st.caption("This study has no pair of conditions to compare.")
        return
    seeds = len(lines[0]["seeds"])
    table(
        [
            {
                "First minus second": line["comparison"],
                "Target": line["target"],
                "Metric": TITLES.get(line["metric"], line["metric"]),
                "Mean difference": f"{line['mean']:+.4f}",
                "sd": f"{line['sd']:.4f}",
                "Sign-flip p": f"{line['p']:.4f}",
                "Published difference": f"{line['published']['difference']:+.4f}" if line["published"] else "",
                "Published p": f"{line['published']['p']:.4f}" if line["published"] else "",
            }
            for line in lines
        ],
        key="pairs",
        height=table_height(len(lines), most=460),
    )
    st.caption(f"Measured over {counted(seeds, 'seed')}; with {seeds}, p cannot be below {2 / 2**seeds:.4f}.", help=HINTS["signflip"])


def retrievers(study: Study) -> None:
    """Random, recency, lexical and embedding retrieval."""
    lines = retrieval_table(study)
    if not lines:
        st.caption("This study retrieved no evidence. Add the conditions `controls`, `raw` or `embedding`.")
        return
    columns = {f"{target[0].upper()} {TITLES[metric]}": f"{target}_{metric}" for target, metric in CELLS if metric != "f1"}
    rows = []
    for line in lines:
        printed = line["published"] or {}
        rows.append(
            {"Retriever": line["label"], "Tokens, %": round(line["tokens_pct"], 1)}
            | {title: cell_text(line, key) for title, key in columns.items()}
            | {"Differs from Recency": at_points(line, "points_unlike_recency")}
            | {f"Published {title}": printed.get(key) for title, key in {"tokens, %": "tokens_pct", **columns}.items()}
        )
    table(rows, key="retrievers")
    st.caption(
        "Differs from Recency: the number of decisions with an older block at which the retriever reads other blocks than Recency. "
        "If there are no more older blocks than it retrieves, all retrievers read the same text."
    )


def at_points(line: Line, key: str) -> str:
    """A count out of the decision points that have an older block; empty if the study has none."""
    return "" if line[key] is None else f"{line[key]:,} of {line['evidence_tokens']['n']:,}"


def budgets(study: Study) -> None:
    """Tokens of recalled evidence and agreement under each cap."""
    lines = budget_table(study)
    if not lines:
        st.caption("This study measured no evidence budget. Add the conditions `budget` and `embedding-top3`.")
        return
    rows = []
    for line in lines:
        sizes, printed = line["evidence_tokens"] or {}, line["published"] or {}
        rows.append(
            {
                "Top3 by embedding": line["label"],
                "Mean tokens": round(sizes["mean"]) if sizes else None,
                "P95": round(sizes["p95"]) if sizes else None,
                "Maximum": sizes.get("max"),
                "C agreement": cell_text(line, "compression_agreement"),
                "R agreement": cell_text(line, "recall_agreement"),
                "Cap binds at": at_points(line, "points_cap_changed"),
                "Published mean": printed.get("tokens_mean"),
                "Published P95": printed.get("tokens_p95"),
                "Published maximum": printed.get("tokens_max"),
                "Published C": printed.get("compression_agreement"),
                "Published R": printed.get("recall_agreement"),
            }
        )
    table(rows, key="budgets")
    count = next((line["evidence_tokens"]["n"] for line in lines if line["evidence_tokens"]), 0)
    st.caption(
        f"Tokens of recalled evidence only, in complete blocks; n = {counted(count, 'decision')} with an older block, measured with "
        f"{in_code(str(study.settings.get('tokenizer', study.model)), 40)}. A cap that never binds changes nothing.",
        help=HINTS["budget"],
    )


def orderings_shown(study: Study) -> None:
    """The paper's claims, and whether they hold in this study."""
    found = orderings(study)
    if not found:
        st.caption("This study contains none of the pairs that the paper compares.")
        return
    held, tested = (sum(row["state"] in states for row in found) for states in (("holds",), ("holds", "does not hold")))
    table(
        [
            {
                "Here": MARKS[row["state"]],
                "Claim": row["claim"],
                "Metric": row["metric"].replace("_", " "),
                "Pairs": f"{row['kept']} of {row['of']}",
            }
            for row in found
        ],
        key="orderings",
        height=table_height(len(found), most=460),
    )
    untested = f" {len(found) - tested} could not be tested: both conditions read the same blocks." if tested < len(found) else ""
    st.caption(
        f"{held} of {tested} orderings hold here.{untested} Only the sign of a difference counts; small differences are noise at this n."
    )
