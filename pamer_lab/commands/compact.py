"""`pamer-lab compact TRACE...`: every compact-context condition of the paper on the same decisions and splits."""

import argparse
from dataclasses import replace
from typing import Any

from pamer_lab.analysis.orderings import orderings
from pamer_lab.blocks import MessageTokens
from pamer_lab.cli import say
from pamer_lab.commands import studying
from pamer_lab.commands.compact_text import tables
from pamer_lab.features.store import FeatureStore
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.models.tokenizer import LoadedCounter
from pamer_lab.studies.compact.fitting import Fitter
from pamer_lab.studies.compact.points import Counts
from pamer_lab.studies.compact.registry import CAPS, choose, parse_caps
from pamer_lab.studies.compact.retrieved import cap_words
from pamer_lab.studies.compact.states import KeptEmbeddings, Readings, States
from pamer_lab.studies.compact.study import PREFERRED, Bench, differences, evaluated
from pamer_lab.studies.compact.values import Condition, Resources
from pamer_lab.studies.decisions import make_splits, sample
from pamer_lab.studies.distill import Lab
from pamer_lab.studies.study import Study

HELP = "token share, AUROC, F1 and agreement of every compact context, compared with the full one"
LAYER_HELP = "layer all conditions are read at; preferred: by validation on the Full Context (default: preferred; final for paper)"
FINAL = "final"
DEFAULT_CAPS = ",".join(cap_words(cap) for cap in CAPS)


def configure(parser: argparse.ArgumentParser) -> None:
    studying.configure(parser)
    parser.add_argument("--conditions", default="all", help="names or groups with commas, or all (default: %(default)s)")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="about N decision points, the same share of every question")
    parser.add_argument("--sample-seed", type=int, default=0, metavar="S", help="which sample (default: %(default)s)")
    parser.add_argument("--layer", default="", help=LAYER_HELP)
    parser.add_argument("--caps", default=DEFAULT_CAPS, help="evidence caps for Top3 by embedding, in tokens (default: %(default)s)")
    parser.add_argument("--estimate", action="store_true", help="print the estimated tokens and time, and stop")


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
    print(result["estimate"] if "estimate" in result else "\n".join(tables(Study.from_json(result))))


def _estimate(bench: Bench) -> dict[str, Any]:
    """What is missing; nothing is embedded for it, so that texts to be chosen by an embedding that is missing are chosen by words."""
    missing = bench.missing_embeddings()
    if missing:
        bench.states.readings.resources.embed = HashingEmbedder().embed
    expected = bench.forecast()
    words = f"; {missing:,} texts must be embedded first, and until then the estimate selects evidence by words" if missing else ""
    return {"estimate": expected.sentence + words, "embeddings_missing": missing, "cost": expected.check(0, 0)}


def _sampled(args: argparse.Namespace, setting: studying.Setting) -> studying.Setting:
    """The same setting on a sample of its decision points; splits are by question, so they stay what they were."""
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
        embeddings = KeptEmbeddings(factory.embedder, database)
    resources = Resources(Counts(MessageTokens(LoadedCounter(model.tokenizer, model.name))), embeddings)
    states = States(
        Readings(setting.traces, setting.decisions, resources), model, FeatureStore(database, model), probe_prompt=setting.probe_prompt
    )
    fitter = Fitter(Lab(setting.decisions, setting.splits, model.device), database)
    return Bench(states, fitter, model, conditions, layer, embeddings, say)


def _command(args: argparse.Namespace) -> str:
    options = {
        "conditions": args.conditions if args.conditions != "all" else "",
        "sample": str(args.sample or ""),
        "sample-seed": str(args.sample_seed or ""),
        "layer": args.layer if args.layer != PREFERRED else "",
        "caps": args.caps if args.caps != DEFAULT_CAPS else "",
    }
    return studying.command_line(args, **options)
