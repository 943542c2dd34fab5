"""`pamer-lab policies`: every policy with its description, parameters, needs, sources and deviations."""

import argparse
import json
from pathlib import Path
from typing import Any

from pamer_lab.cli import say
from pamer_lab.counts import counted
from pamer_lab.errors import InputError
from pamer_lab.factory import Factory
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies import lre
from pamer_lab.policies.availability import runnable
from pamer_lab.policies.registry import describe_policies, describe_presets
from pamer_lab.probes.draft_probe import FOLDER
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode
from pamer_lab.studies.drafts import fit_draft_probe
from pamer_lab.trajectory import read_traces
from pamer_lab.workspace import Workspace

SAID_EVERY = 10
"""Drafts between two lines of progress."""


def run(args: argparse.Namespace) -> dict[str, Any]:
    if getattr(args, "fit_lre", None):
        return _fit(args.fit_lre, args.out)
    workspace = Workspace()
    if getattr(args, "fit_probing_rag", None):
        return _fit_drafts(args.fit_probing_rag, args.out, Factory(load_profile(args.profile, workspace.path), workspace, args.device))
    _, missing = runnable(Factory(load_profile(args.profile, workspace.path), workspace, args.device))
    return {
        "policies": [entry | {"runs_here": entry["name"] not in _named(missing)} for entry in describe_policies()],
        "presets": describe_presets(),
        "missing": missing,
    }


def _named(missing: dict[str, str]) -> set[str]:
    return {name.partition(":")[0] for name in missing}


def _fit(paths: list[str], out: str | None) -> dict[str, Any]:
    """Fit the regression of `lre` and write it to a file, with what it was fitted on."""
    if not out:
        raise InputError("--fit-lre needs --out FILE to write the weights to")
    traces = [trace for path in paths for trace in read_traces(path)]
    fitted = lre.fit(traces, ", ".join(Path(path).name for path in paths))
    Path(out).write_text(json.dumps(fitted, indent=1) + "\n", encoding="utf-8")
    return {"lre": fitted, "path": out}


def _fit_drafts(paths: list[str], out: str | None, factory: Factory) -> dict[str, Any]:
    """Fit the probe of `recall=probing-rag` and write it to a file, with what it was fitted on."""
    traces = [trace for path in paths for trace in read_traces(path)]
    path = Path(out) if out else factory.workspace.path / FOLDER / f"{factory.model_name}.json"
    refuse_in_reviewer_mode("Fitting a probe")
    source = ", ".join(Path(given).name for given in paths)
    probe = fit_draft_probe(traces, factory.model, source, _said)
    probe.write(path)
    return {"probing_rag": {"model": probe.model, "layers": probe.layers, "sha256": probe.sha256, **probe.facts}, "path": str(path)}


def _said(done: int, count: int) -> None:
    if done == count or done % SAID_EVERY == 0:
        say(f"drafted {done:,} of {counted(count, 'action')}")


def show(result: dict[str, Any]) -> None:
    if "probing_rag" in result:
        fitted = result["probing_rag"]
        found = "" if fitted["auroc"] is None else f", AUROC {fitted['auroc']:.2f} on held-out questions"
        points = counted(fitted["points"], "labelled point")
        print(f"fitted on {points} of {fitted['questions']:,} questions ({fitted['positives']:,} positive){found}: {result['path']}")
        return
    if "lre" in result:
        fitted = result["lre"]
        print(
            f"fitted on {counted(fitted['steps'], 'step')} of {counted(fitted['traces'], 'trace')} "
            f"({fitted['positives']:,} positive): {result['path']}"
        )
        return
    for entry in result["policies"]:
        parameters = "".join(f":{name}={value}" for name, value in entry["parameters"].items())
        print(f"{entry['name']}{parameters}  ({entry['family']})\n    {entry['description']}")
        print("".join(f"    {name}: {text}\n" for name, text in entry["takes"].items()), end="")
        print("".join(f"    source: {text}\n" for text in entry["sources"]), end="")
        print("".join(f"    based on ({fact['basis']}): {fact['text']}\n" for fact in entry["facts"]), end="")
        print("".join(f"    differs: {text}\n" for text in entry["deviations"]), end="")
        if entry["needs"]:
            print(f"    needs: {', '.join(entry['needs'])}")
        print(f"    acts on a running agent: {'yes' if entry['acts_live'] else 'no'}")
    for entry in result["presets"]:
        print(f"{entry['name']} = {entry['policy']}  ({entry['basis']}: {entry['source']})")
    for name, reason in result["missing"].items():
        print(f"cannot run here: {name}: {reason}")
