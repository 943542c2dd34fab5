"""Data checks: what can be recomputed from the published tables is recomputed; every rounding that does not come out even is listed.

The committed results of the sample study: a part of them is computed again.
"""

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from pamer_lab import read_traces
from pamer_lab.analysis.published import PublishedTable, names, sample_names, sample_study, table
from pamer_lab.blocks import MessageTokens
from pamer_lab.commands.studying import first_replicas
from pamer_lab.errors import UnknownNameError
from pamer_lab.models.tokenizer import embedded_counter
from pamer_lab.probes.artefact import HeadSet
from pamer_lab.probes.registry import PACKAGED
from pamer_lab.probes.split import CLEAN
from pamer_lab.studies.controls import fit_columns, rule_rows
from pamer_lab.studies.decisions import decisions_of, make_splits
from pamer_lab.studies.observables import observe, one_hot
from pamer_lab.studies.tables import make_row
from pamer_lab.trajectory.values import Trace

DOMAINS = ("code", "office", "security", "web")
TASKS = {"code": 80, "office": 50, "security": 60, "web": 70}


def _off(shown: float, recomputed: float, slack: float) -> bool:
    return abs(shown - recomputed) > slack + 1e-9


def _deviations(found: PublishedTable, base_of: dict[int, int], weights: dict[str, int]) -> dict[str, float]:
    """Places where a printed average or change differs from one recomputed out of rounded cells by more than rounding can."""
    odd: dict[str, float] = {}
    for number, row in enumerate(found.rows):
        name = f"{row.get('backbone', '')} {row['label']}".strip()
        average = sum(row[domain] * weights[domain] for domain in DOMAINS) / sum(weights.values())
        if _off(row["average"], average, 0.1):
            odd[f"{name} average"] = round(average, 2)
        base = found.rows[base_of[number]]
        for key in (*DOMAINS, "average"):
            if f"{key}_change" in row and _off(row[f"{key}_change"], row[key] - base[key], 0.1):
                odd[f"{name} {key} change"] = round(row[key] - base[key], 2)
        if "tokens_change_pct" in row:
            # Tokens are printed with two or three digits: let each end move by half a unit of its last digit.
            unit = 5_000 if row["tokens"] >= 200_000 and row["tokens"] % 10_000 == 0 and base["tokens"] % 10_000 == 0 else 500
            low = 100 * ((row["tokens"] - unit) / (base["tokens"] + unit) - 1)
            high = 100 * ((row["tokens"] + unit) / (base["tokens"] - unit) - 1)
            if not low - 0.05 <= row["tokens_change_pct"] <= high + 0.05:
                odd[f"{name} tokens"] = round(100 * (row["tokens"] / base["tokens"] - 1), 1)
    return odd


def test_every_table_is_complete() -> None:
    assert len(names()) == 20
    for name in names():
        found = table(name)
        keys = {column.key for column in found.columns}
        allowed = keys | {"group"} | {f"{key}_{tail}" for key in keys for tail in ("sd", "change", "change_pct")}
        assert found.rows and found.caption and found.place
        assert all(set(row) <= allowed and row["label"] for row in found.rows)
        assert not any("\\" in str(value) or "$" in str(value) for row in found.rows for value in row.values())


def test_full_benchmark_averages_and_changes_follow_the_task_weights() -> None:
    found = table("full_benchmark")
    assert _deviations(found, {0: 0, 1: 0, 2: 0}, TASKS) == {}
    assert round(698_167_232 / 260 / 1e6, 2) == found.rows[0]["tokens"] / 1e6


def test_pilot40_averages_and_changes_are_equal_weight() -> None:
    found = table("method_comparison")
    odd = _deviations(found, dict.fromkeys(range(len(found.rows)), 0), dict.fromkeys(DOMAINS, 1))
    assert odd == {}


def test_cross_model_tables_agree_with_each_other_and_with_themselves() -> None:
    found = table("cross_model")
    bases = {number: number - number % 3 for number in range(len(found.rows))}
    assert _deviations(found, bases, dict.fromkeys(DOMAINS, 1)) == {}
    for row, score, tokens in zip(found.rows, table("cross_model_scores").rows, table("cross_model_tokens").rows, strict=True):
        assert row["backbone"] == score["backbone"] == tokens["backbone"] and row["label"] == score["label"] == tokens["label"]
        assert [row[domain] for domain in DOMAINS] == [score[domain] for domain in DOMAINS]
        assert row.get("average_change", 0.0) == score["change"]
        assert row["tokens"] == tokens["tokens_thousands"] * 1000 and row.get("tokens_change_pct", 0.0) == tokens["change_pct"]


def test_main_tables_repeat_the_appendix() -> None:
    compact, layerwise, capacity = table("compact"), table("layerwise"), table("capacity_hint")
    for main, appendix in {
        "Full Context": "Full Context",
        "Recent2": "Recent2",
        "+ Decision KD": "Recent2 + decision KD",
        "Hidden Bank": "Hidden Bank Recent5",
        "Selective Raw": "Selective Raw Top5",
    }.items():
        short, long = table("compact_main").row(main), compact.row(appendix)
        assert (short["tokens_pct"], short["compression"], short["recall"]) == (
            long["tokens_pct"],
            long["compression_auroc"],
            long["recall_auroc"],
        )
    final = next(row for row in layerwise.rows if row["label"] == "Final RMSNorm" and "group" not in row and row["pooling"] == "Last")
    hidden = table("signals").row("Hidden (Linear)")
    assert (hidden["compression"], hidden["recall"]) == (final["compression_auroc"], final["recall_auroc"])
    linear = [row for row in capacity.rows if row["label"] == "No hint, linear"]
    assert [row["auroc"] for row in linear] == [final["compression_auroc"], final["recall_auroc"]]
    # The paper itself notes that these two come from different exports: 0.585 against 0.584.
    assert linear[1]["auprc"] - final["recall_auprc"] == pytest.approx(0.001)


def test_paired_differences_agree_with_the_compact_table_up_to_rounding() -> None:
    compact = table("compact")
    pairs = {
        "Recent2 KD - Recent2": ("Recent2 + decision KD", "Recent2"),
        "Raw Top5 - Hidden Bank Recent5": ("Selective Raw Top5", "Hidden Bank Recent5"),
    }
    for row in table("paired").rows:
        first, second = (compact.row(name) for name in pairs[row["label"]])
        target, metric = row["metric"].split(" / ")
        key = {"C": "compression", "R": "recall"}[target] + "_" + metric.lower()
        assert row["difference"] == pytest.approx(first[key] - second[key], abs=0.00101)
        assert row["p"] * 32 == pytest.approx(round(row["p"] * 32)) and row["p"] >= 0.0625


def test_last_token_is_above_mean_pooling_at_every_published_depth() -> None:
    rows = [row for row in table("layerwise").rows if "group" not in row]
    for last, mean in zip(rows[::2], rows[1::2], strict=True):
        assert (last["pooling"], mean["pooling"]) == ("Last", "Mean") and last["label"] == mean["label"]
        assert last["compression_auroc"] > mean["compression_auroc"] and last["recall_auroc"] > mean["recall_auroc"]


def test_pilot40_has_ten_tasks_in_each_domain() -> None:
    rows = table("pilot40").rows
    assert [row["index"] for row in rows] == list(range(1, 41)) and len({row["label"] for row in rows}) == 40
    assert all(sum(row["domain"] == domain for row in rows) == 10 for domain in ("Code", "Office", "Security", "Web"))


def test_an_unknown_table_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="layerwise"):
        table("nonsense")


CORPUS = Path(__file__).resolve().parents[2] / "sample_traces" / "study"
FEW = 2
"""Traces whose hidden states are computed again."""


@lru_cache(maxsize=2)
def corpus_of(name: str) -> dict[str, Trace]:
    """The traces a sample study was computed on: all runs, or the first ones of each question."""
    replicas = sample_study(name).settings["replicas"]
    traces = read_traces(CORPUS)
    return {trace.trace_id: trace for trace in (first_replicas(traces, replicas) if replicas else traces)}


def test_every_sample_result_names_its_command_corpus_and_leak_check() -> None:
    assert {"controls", "layerwise", "train"} <= set(sample_names())
    for name in sample_names():
        study = sample_study(name)
        assert study.command.startswith(f"pamer-lab {name} sample_traces/study")
        assert all(check.endswith(CLEAN) for check in study.notes["splits"])
        assert all(len(row["seeds"]) == 5 and row["n"] for row in study.rows)
    for name in ("controls", "layerwise", "train"):
        assert sample_study(name).corpus == decisions_of(corpus_of(name).values()).facts()
    with pytest.raises(UnknownNameError, match="layerwise"):
        sample_study("nothing")


def test_controls_without_a_model_come_out_the_same() -> None:
    traces = corpus_of("controls")
    decisions = decisions_of(traces.values())
    splits, _ = make_splits(decisions)
    stored = {(row["target"], row["name"]): row for row in sample_study("controls").rows}
    seen = observe(traces, decisions, MessageTokens(embedded_counter()))
    columns = {"Length + turn": np.stack([seen.length, seen.turn], 1), "Last tool type": one_hot(seen.tools)}
    rows = rule_rows(traces, decisions, splits)
    for name, values in columns.items():
        logits = fit_columns(decisions, splits, values)
        rows += [make_row(decisions, splits, target, logits[target], {"name": name}) for target in range(2)]
    for row in rows:
        expected = stored[row["target"], row["name"]]
        assert row["test_n"] == expected["test_n"]
        assert row["seeds"] == pytest.approx(expected["seeds"], abs=2e-3)
        assert row["interval"] == pytest.approx(expected["interval"], abs=5e-3)


@pytest.mark.parametrize("target", ["compression", "recall"])
def test_the_sample_study_shows_what_the_corpus_was_made_for(target: str) -> None:
    """Data check of the committed results: what is hidden is read, what is on the surface is not, and nothing is too easy."""
    rows = {row["name"]: row["mean"] for row in sample_study("controls").rows if row["target"] == target}
    hidden, final = rows["Hidden state, preferred layer (linear)"], rows["Hidden state, final (linear)"]
    surface = (
        "Length + turn",
        "Last tool type",
        "Last action type",
        "Length + turn + tool type",
        "Recent2 TF-IDF",
        "Recent2 text embedding",
    )
    assert hidden >= max(rows[name] for name in surface) + 0.05
    assert final > rows["Length + turn"]
    assert 0.55 <= rows["Length + turn"] <= 0.80
    assert abs(rows["Shuffled labels"] - 0.5) <= 0.06
    layers = [row for row in sample_study("layerwise").rows if row["target"] == target and row.get("kind") != "shuffled"]
    by_place = {(row["layer"], row["pooling"]): row["mean"] for row in layers}
    names = {row["layer"] for row in layers}
    assert sum(by_place[name, "last"] > by_place[name, "mean"] for name in names) > len(names) * 0.6
    assert by_place["final", "last"] > by_place["final", "mean"]
    assert max(by_place.values()) <= 0.97


@pytest.mark.weights
def test_the_shipped_heads_say_again_what_the_sample_study_recorded() -> None:
    from pamer_lab.features.extract import extract
    from pamer_lab.features.values import Request
    from pamer_lab.models.frozen import load_frozen
    from pamer_lab.models.profiles import PROFILES

    model = load_frozen(PROFILES["embedded"], "cpu")
    heads = HeadSet.load(PACKAGED / "smollm2-generated").require(model.name, model.width)
    recorded = sample_study("train").decisions
    shortest = sorted(corpus_of("train").values(), key=lambda trace: sum(len(message.content) for message in trace.messages))[:FEW]
    for trace in shortest:
        own = [row for row in recorded if row["trace_id"] == trace.trace_id]
        request = Request(trace.messages, trace.tools, [row["t"] for row in own], heads.context, heads.hint, trace.trace_id)  # type: ignore[arg-type]
        states = extract([request], model, layers=[heads.layer], poolings=[heads.pooling]).vectors[:, 0, 0]
        for state, row in zip(states, own, strict=True):
            logits = heads.logits(state)
            assert logits == pytest.approx(row["logits"], abs=0.02)
            assert sum(heads.votes(logits)) == row["yes"] or row["vote_margin"] < 0.02


def test_the_shipped_heads_name_their_model_corpus_command_and_metrics() -> None:
    heads = HeadSet.load(PACKAGED / "smollm2-generated")
    trained = sample_study("train")
    assert heads.seeds == (0, 1, 2, 3, 4)
    assert heads.stack.capacity == "mlp"
    assert (heads.context, heads.pooling, heads.target) == ("recent2", "last", "compression")
    assert heads.facts["command"] == trained.command
    assert heads.facts["corpus"] == trained.corpus
    student = next(row for row in trained.rows if row["target"] == "compression" and row["name"] == "Recent2 + decision KD")
    assert heads.facts["metrics"]["auroc"]["seeds"] == pytest.approx(student["seeds"], abs=1e-5)
    assert np.log(np.array(heads.thresholds) / (1 - np.array(heads.thresholds))) == pytest.approx(student["thresholds"], abs=1e-4)
