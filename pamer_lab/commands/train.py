"""`pamer-lab train TRACE...`: capacity x hint, the Full Context reference, distilled students, and heads on request."""

import argparse
from pathlib import Path
from typing import Any

from pamer_lab.commands import studying
from pamer_lab.commands.engine import states_on_engine
from pamer_lab.commands.studying import show
from pamer_lab.errors import InputError
from pamer_lab.features.contexts import check_context
from pamer_lab.probes.artefact import HeadSet
from pamer_lab.probes.registry import check_name, is_name, register
from pamer_lab.studies.bank import Bank
from pamer_lab.studies.distill import Fitted, Lab, capacity_rows, make_heads, stability_of, student_rows
from pamer_lab.studies.study import Study

__all__ = ["run", "show"]


@states_on_engine
def run(args: argparse.Namespace) -> dict[str, Any]:
    contexts = [check_context(name) for name in args.contexts.split(",") if name]
    if not contexts:
        raise InputError("--contexts needs at least one compact context, such as recent2")
    name = heads_name(args.heads)
    setting = studying.read_setting(args)
    frozen, maker = setting.model(args.device)
    usual = setting.profile.training
    asked, hint = args.layer or usual.layer, args.hint or usual.hint
    if asked not in ("preferred", "teacher"):
        asked = studying.layer_name(frozen, asked)
    lab = Lab(setting.decisions, setting.splits, frozen.device)
    choice: str | list[str] = "all" if args.layers == "all" else args.layers.split(",")
    rows: list[dict[str, Any]] = []
    teacher: Fitted | None = None
    layers: dict[str, str] = {}
    if args.teacher == "full":
        none, faithful = maker.get_all([("full", "none"), ("full", "faithful")])
        rows, teacher, layers = _reference(lab, {"none": none, "faithful": faithful}, "final" if asked == "final" else "preferred")
    elif asked == "teacher":
        raise InputError("--layer teacher needs a teacher; name a layer, or use --layer preferred")
    named = layers["full"] if asked == "teacher" else asked
    compact = maker.get_all([(context, hint) for context in contexts], choice if named == "preferred" else [named])
    compared: list[dict[str, Any]] = []
    students = {}
    for context, bank in zip(contexts, compact, strict=True):
        layer = lab.preferred(bank) if named == "preferred" else named
        layers[context] = layer
        own, pairs, student = student_rows(lab, bank, layer, teacher, context.capitalize())
        rows, compared = [*rows, *own], [*compared, *pairs]
        students[context] = (student, bank, own)
    apart = {name: value for name, value, usual in (("layers", args.layers, "all"), ("teacher", args.teacher, "full")) if value != usual}
    command = studying.command_line(args, contexts=args.contexts, layer=args.layer, hint=args.hint, heads=args.heads, **apart)
    student, bank, own = students[contexts[0]]
    heads = make_heads(lab, student, bank, frozen, setting.probe_prompt, _facts(setting, command, own, teacher))
    decisions, stability = stability_of(lab, heads, student.features)
    kept = _keep(heads, args.heads, name, setting)
    study = Study(
        kind="train",
        name=args.name or "Capacity, hint and distillation",
        command=command,
        model=frozen.name,
        corpus=setting.decisions.facts(),
        settings={"contexts": args.contexts, "layer": asked, "hint": hint, "seeds": args.seeds, "replicas": args.replicas}
        | apart
        | ({"probe_prompt": setting.probe_prompt} if setting.probe_prompt else {}),
        rows=rows,
        comparisons=compared,
        notes={"splits": setting.checks, "layers": layers, "features": maker.costs, "heads": args.heads, "stability": stability},
        decisions=decisions,
    )
    return studying.finish(args, setting, study) | kept


def heads_name(text: str) -> str:
    """The name under which `--heads` registers: the given name, or that of the folder; a bad one is refused before training."""
    if not text:
        return ""
    name = text if is_name(text) else Path(text).expanduser().resolve().name
    check_name(name)
    return name


def _keep(heads: HeadSet, text: str, name: str, setting: studying.Setting) -> dict[str, Any]:
    """Register the heads, and write them to a folder if one was given."""
    if not text:
        return {}
    kept = register(heads, name, setting.workspace.path)
    folder = kept.heads.folder if is_name(text) else str(heads.save(text))
    return {"heads": {"name": name, "sha256": kept.heads.sha256, "folder": folder}}


def _reference(lab: Lab, banks: dict[str, Bank], place: str) -> tuple[list[dict[str, Any]], Fitted, dict[str, str]]:
    """Capacity x hint at the final state and at the preferred layer; the teacher reads at `place`, one of the two."""
    places = {"final": "final", "preferred": lab.preferred(banks["faithful"])}
    rows, fits = capacity_rows(lab, banks, places)
    return rows, fits[place, "faithful"], {"full": places[place]}


def _facts(setting: studying.Setting, command: str, rows: list[dict[str, Any]], teacher: Fitted | None) -> dict[str, Any]:
    """How the heads were made, for the artefact; without a teacher, the students are those trained on labels alone."""
    own = next(row for row in rows if row["target"] == "compression" and ("KD" in row["name"]) == (teacher is not None))
    metrics = {name: {key: found[key] for key in ("mean", "sd", "seeds")} for name, found in own["metrics"].items()}
    return {
        "command": command,
        "corpus": setting.decisions.facts(),
        "labels": setting.origins,
        "teacher": {"context": "full", "hint": "faithful", "capacity": "mlp", "layer": teacher.layer} if teacher else None,
        "metrics": metrics | ({"agreement": own["agreement"]} if teacher else {}),
        "splits": setting.checks,
    }
