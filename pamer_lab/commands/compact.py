"""`pamer-lab compact TRACE...`: every compact-context condition of the paper on the same decisions and splits, and its tables as text."""

import argparse
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from pamer_lab.analysis.compact import Line, budget_table, expanded_table, orderings, over_the_limit, paired_table, retrieval_table
from pamer_lab.blocks import MessageTokens
from pamer_lab.cli import say
from pamer_lab.commands import studying
from pamer_lab.commands.engine import states_on_engine
from pamer_lab.commands.study_options import CAPS
from pamer_lab.counts import counted
from pamer_lab.features.store import FeatureStore
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.models.kept_embeddings import KeptEmbeddings
from pamer_lab.models.tokenizer import LoadedCounter
from pamer_lab.studies.compact.fitting import Fitter
from pamer_lab.studies.compact.points import Counts
from pamer_lab.studies.compact.registry import choose, parse_caps
from pamer_lab.studies.compact.states import Readings, States
from pamer_lab.studies.compact.study import PREFERRED, Bench, differences, evaluated
from pamer_lab.studies.compact.values import Condition, Resources
from pamer_lab.studies.decisions import make_splits, sample
from pamer_lab.studies.distill import Lab
from pamer_lab.studies.study import Study

CELL = 15


def tables(study: Study) -> Iterator[str]:
    """The tables of a study as text, line by line."""
    facts = study.corpus
    corpus = f"{counted(facts['decision_points'], 'decision')}, {counted(facts['questions'], 'question')}"
    seeds = counted(len(study.rows[0]["seeds"]), "seed")
    yield f"{study.study_id}   {corpus}, read at {study.notes['layer']}"
    yield f"recall is labelled at {facts['asked']['recall']} of them; values are mean ± sd over {seeds}"
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
    """At how many of the points with an older block it happened."""
    text = "·" if line[key] is None else f"at {line[key]:,} of {line['evidence_tokens']['n']:,}"
    return f"{text:>{CELL + 3}}"


FINAL = "final"


@states_on_engine
def run(args: argparse.Namespace) -> dict[str, Any]:
    conditions = choose(args.conditions, parse_caps(args.caps))
    setting = _sampled(args, studying.read_setting(args))
    args.layer = args.layer or (FINAL if setting.profile.training.layer == FINAL else PREFERRED)
    bench = _bench(args, setting, conditions)
    if args.estimate:
        return _estimate(bench)
    rows, compared, notes = bench.run()
    study = Study(
        kind="compact",
        name=args.name or "Compact contexts",
        command=_command(args),
        model=bench.model.name,
        corpus=setting.decisions.facts(),
        settings={
            "conditions": [one.name for one in conditions],
            "sample": args.sample,
            "sample_seed": args.sample_seed,
            "layer": args.layer,
            "seeds": args.seeds,
            "replicas": args.replicas,
            "tokenizer": bench.states.counts.tokenizer,
            "embedder": bench.embeddings.name if bench.embeddings else "",
            "input_limit": bench.model.limit,
        },
        rows=rows,
        comparisons=compared,
        notes={"splits": setting.checks, **notes, "rows_that_differ_from_recent2": differences(conditions, bench.states.readings)},
        decisions=evaluated(bench),
    )
    return studying.finish(args, setting, replace(study, notes=study.notes | {"orderings": orderings(study)}))


def show(result: dict[str, Any]) -> None:
    if "estimate" in result:
        print(result["estimate"])
        return
    own = {field.name for field in fields(Study)}  # the result also says where it was computed
    print("\n".join(tables(Study.from_json({name: value for name, value in result.items() if name in own}))))


def _estimate(bench: Bench) -> dict[str, Any]:
    """The cost of what is not stored yet. Nothing is embedded for it: while embeddings are missing, words select evidence."""
    missing = bench.missing_embeddings()
    if missing:
        bench.states.readings.resources.embed = HashingEmbedder().embed
    expected = bench.forecast()
    words = f"; {missing:,} texts must be embedded first, and until then the estimate selects evidence by words" if missing else ""
    return {"estimate": expected.sentence + words, "embeddings_missing": missing, "cost": expected.check(0, 0)}


def _sampled(args: argparse.Namespace, setting: studying.Setting) -> studying.Setting:
    """The same setting on a sample of its decision points; splits are by question, so they stay the same."""
    decisions = sample(setting.decisions, args.sample, args.sample_seed)
    if decisions is setting.decisions:
        return setting
    say(f"sample of {len(decisions)} of {len(setting.decisions)} decision points")
    splits, _ = make_splits(decisions, [split.seed for split in setting.splits])
    return replace(setting, decisions=decisions, splits=splits)


def _bench(args: argparse.Namespace, setting: studying.Setting, conditions: tuple[Condition, ...]) -> Bench:
    factory = setting.factory(args.device)
    model = factory.model
    layer = args.layer if args.layer == PREFERRED else studying.layer_name(model, args.layer)
    database = setting.workspace.database
    embeddings = None
    if any("embedder" in condition.needs for condition in conditions):
        embeddings = KeptEmbeddings.over(factory.embedder, database)
    resources = Resources(Counts(MessageTokens(LoadedCounter(model.tokenizer, model.name))), embeddings)
    states = States(
        Readings(setting.traces, setting.decisions, resources),
        model,
        FeatureStore(database, model),
        probe_prompt=setting.probe_prompt,
        memory=setting.memory,
    )
    fitter = Fitter(Lab(setting.decisions, setting.splits, model.device), database)
    return Bench(states, fitter, model, conditions, layer, embeddings, say)


def _command(args: argparse.Namespace) -> str:
    options = {
        "conditions": args.conditions if args.conditions != "all" else "",
        "sample": str(args.sample or ""),
        "sample-seed": str(args.sample_seed or ""),
        "layer": args.layer if args.layer != PREFERRED else "",
        "caps": args.caps if args.caps != CAPS else "",
    }
    return studying.command_line(args, **options)
