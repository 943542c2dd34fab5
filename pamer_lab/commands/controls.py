"""`pamer-lab controls TRACE...`: the hidden state against length, tools, text, rules and shuffled labels."""

import argparse
from typing import Any

from pamer_lab.blocks import MessageTokens
from pamer_lab.commands import studying
from pamer_lab.commands.engine import states_on_engine
from pamer_lab.commands.studying import show
from pamer_lab.models.tokenizer import LoadedCounter
from pamer_lab.studies.controls import hidden_rows, observable_rows, rule_rows
from pamer_lab.studies.decisions import TARGETS
from pamer_lab.studies.study import Study
from pamer_lab.studies.tables import compare

__all__ = ["run", "show"]


@states_on_engine
def run(args: argparse.Namespace) -> dict[str, Any]:
    setting = studying.read_setting(args)
    options = {name: value for name, value, usual in (("layers", args.layers, "all"), ("context", args.context, "full")) if value != usual}
    frozen, maker = setting.model(args.device)
    counter = LoadedCounter(frozen.tokenizer, frozen.name)
    bank = maker.get(args.context, layers="all" if args.layers == "all" else args.layers.split(","))
    hidden, chosen = hidden_rows(setting.decisions, setting.splits, bank, device=frozen.device)
    embedder = setting.factory(args.device).embedder
    seen = observable_rows(setting.traces, setting.decisions, setting.splits, MessageTokens(counter), embedder)
    rows = [*seen, *rule_rows(setting.traces, setting.decisions, setting.splits), *hidden]
    compared = []
    for target in TARGETS:
        own = [row for row in rows if row["target"] == target]
        best = next(row for row in own if row["name"].startswith("Hidden state, preferred"))
        compared += [compare(best, row) for row in own if row["kind"] == "control"]
    study = Study(
        kind="controls",
        name=args.name or "Hidden state against controls",
        command=studying.command_line(args, **options),
        model=frozen.name,
        corpus=setting.decisions.facts(),
        settings=options | {"seeds": args.seeds, "replicas": args.replicas, "tokenizer": counter.name, "embedder": embedder.name},
        rows=rows,
        comparisons=compared,
        notes={"splits": setting.checks, "preferred_layer": chosen, "features": maker.costs},
    )
    return studying.finish(args, setting, study)
