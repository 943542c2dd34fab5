"""`pamer-lab layerwise TRACE...`: linear probes at every layer, with last-token and mean pooling."""

import argparse
from typing import Any

from pamer_lab.commands import studying
from pamer_lab.commands.engine import states_on_engine
from pamer_lab.commands.studying import show
from pamer_lab.studies.decisions import TARGETS
from pamer_lab.studies.layerwise import layerwise, preferred_layer
from pamer_lab.studies.study import Study

__all__ = ["run", "show"]


@states_on_engine
def run(args: argparse.Namespace) -> dict[str, Any]:
    setting = studying.read_setting(args)
    frozen, maker = setting.model(args.device)
    layers = "all" if args.layers == "all" else args.layers.split(",")
    bank = maker.get(args.context, args.hint, layers)
    rows = layerwise(setting.decisions, setting.splits, bank, device=frozen.device)
    chosen = {target: preferred_layer(rows, target) for target in TARGETS}
    settings = {"layers": args.layers, "context": args.context, "hint": args.hint, "seeds": args.seeds, "replicas": args.replicas}
    study = Study(
        kind="layerwise",
        name=args.name or f"Layers, {args.context}",
        command=studying.command_line(args, layers=args.layers, context=args.context, hint=args.hint),
        model=frozen.name,
        corpus=setting.decisions.facts(),
        settings=settings,
        rows=rows,
        notes={"splits": setting.checks, "preferred_layer": chosen, "features": maker.costs},
    )
    return studying.finish(args, setting, study)
