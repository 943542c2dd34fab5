"""The committed compact-context study: what needs no model is computed again, and its tables agree with its rows."""

import argparse
import shlex
from pathlib import Path

import pytest

from pamer_lab import read_traces
from pamer_lab.analysis.compact import SAMPLE, expanded_table, orderings, tradeoff
from pamer_lab.analysis.published import sample_study, table
from pamer_lab.blocks import MessageTokens
from pamer_lab.commands.options import COMMANDS
from pamer_lab.commands.studying import first_replicas
from pamer_lab.models.tokenizer import embedded_counter
from pamer_lab.studies.compact.points import Counts
from pamer_lab.studies.compact.registry import all_conditions
from pamer_lab.studies.compact.states import Readings
from pamer_lab.studies.compact.study import evidence_tokens, overlap, paired, token_share
from pamer_lab.studies.compact.values import Resources
from pamer_lab.studies.decisions import decisions_of, sample

PROJECT = Path(__file__).resolve().parents[2]


def options(command: str) -> argparse.Namespace:
    """The recorded command, read as the program reads it."""
    parser = argparse.ArgumentParser()
    COMMANDS["compact"].configure(parser)
    return parser.parse_args(shlex.split(command)[2:])


def test_token_shares_and_recalled_tokens_come_out_the_same() -> None:
    study = sample_study(SAMPLE)
    args = options(study.command)
    traces = {trace.trace_id: trace for path in args.traces for trace in first_replicas(read_traces(PROJECT / path), args.replicas)}
    decisions = sample(decisions_of(traces.values()), args.sample, args.sample_seed)
    assert decisions.facts() == study.corpus
    tools = Resources(Counts(MessageTokens(embedded_counter())))
    readings = Readings(traces, decisions, tools)
    stored = {row["condition"]: row for row in study.rows}
    for one in all_conditions(()):
        if one.name in stored and "embedder" not in one.needs:
            own = readings.of(one)
            assert token_share(readings.points, own, tools.counts) == pytest.approx(stored[one.name]["tokens_pct"], abs=1e-5)
            if "evidence_tokens" in stored[one.name]:
                assert evidence_tokens(readings.points, own, tools.counts) == pytest.approx(stored[one.name]["evidence_tokens"], abs=1e-5)
            for key, value in overlap(one, readings).items():
                assert stored[one.name][key] == value, (one.name, key)


def test_pairs_and_orderings_follow_from_the_rows_and_no_cell_is_empty() -> None:
    study = sample_study(SAMPLE)
    for again, kept in zip(paired(study.rows), study.comparisons, strict=True):
        assert again["mean"] == pytest.approx(kept["mean"], abs=2e-6)
        assert again["p"] == kept["p"]
    assert [row["state"] for row in orderings(study)] == [row["state"] for row in study.notes["orderings"]]
    for line in expanded_table(study):
        for key, value in (line["published"] or {}).items():
            if key in line and value is not None:
                assert line[key] is not None, (line["label"], key)


def test_the_points_of_the_figure_are_the_rows_with_the_published_values_beside_them() -> None:
    study = sample_study(SAMPLE)
    rows = {(row["condition"], row["target"]): row for row in study.rows}
    points = {(point["condition"], point["target"]): point for point in tradeoff(study)}
    assert points.keys() == rows.keys()
    for key, point in points.items():
        assert (point["tokens_pct"], point["auroc"], point["sd"], point["n"]) == tuple(
            rows[key][cell] for cell in ("tokens_pct", "mean", "sd", "n")
        )
    panels = {name: points[name, "recall"]["panel"] for name in ("full", "recent2", "recent2-kd", "raw-top5", "bank-recent5")}
    assert panels == {"full": "both", "recent2": "recent", "recent2-kd": "recent", "raw-top5": "recovered", "bank-recent5": "recovered"}
    published = table("compact").row("Recent1")
    for target in ("compression", "recall"):
        point = points["recent1", target]
        assert (point["published_tokens_pct"], point["published_auroc"]) == (published["tokens_pct"], published[f"{target}_auroc"])
