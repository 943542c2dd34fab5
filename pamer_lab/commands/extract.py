"""`pamer-lab extract TRACE...`: compute the hidden states of all decision points and store them in the workspace."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pamer_lab.cli import say
from pamer_lab.commands import history
from pamer_lab.commands.engine import states_on_engine
from pamer_lab.commands.studying import probe_prompt
from pamer_lab.counts import counted
from pamer_lab.errors import InputError, UnknownNameError
from pamer_lab.features.contexts import check_context
from pamer_lab.features.values import FeatureSet
from pamer_lab.jobs import Progress
from pamer_lab.models.profiles import load_profile
from pamer_lab.trajectory import Trace, read_traces
from pamer_lab.trajectory.recorded import count_recorded
from pamer_lab.workspace import Workspace

SAY_EVERY_SECONDS = 2.0


@states_on_engine
def run(args: argparse.Namespace) -> dict[str, Any]:
    profile = load_profile(args.profile, Workspace().path)
    contexts = [check_context(name) for name in _names(args.contexts)]
    poolings = _names(args.poolings)
    if wrong := [name for name in poolings if name not in ("last", "mean")]:
        raise UnknownNameError("pooling", wrong[0], ["last", "mean"])
    workspace = Workspace()
    traces = find_traces(args.traces, workspace)
    from pamer_lab.factory import Factory
    from pamer_lab.features.extract import extract_traces

    model = Factory(profile, workspace, args.device).model
    found = extract_traces(
        traces,
        model,
        contexts,
        args.hint,
        layers="all" if args.layers == "all" else _names(args.layers),
        poolings=poolings,
        workspace=workspace,
        history=args.history,
        progress=Speaker(),
        probe_prompt=probe_prompt(args.probe_prompt, profile),
    )
    rebuilt = count_recorded(traces)
    say(history.sentence(args.history, rebuilt, len(traces)))
    used = {"history": "recorded" if rebuilt and args.history == "recorded" else "full", "recorded_traces": rebuilt}
    return summary(found) | used | {"model": model.name, "device": model.device, "dtype": model.dtype, "traces": len(traces)}


def summary(found: FeatureSet) -> dict[str, Any]:
    return {
        "decision_points": len(found.points),
        "tokens_computed": found.tokens_computed,
        "tokens_naive": found.tokens_naive,
        "seconds": round(found.seconds, 3),
        "cache_hits": found.cache_hits,
        "layers": len(found.layers),
        "poolings": list(found.poolings),
    }


def find_traces(names: Sequence[str], workspace: Workspace) -> list[Trace]:
    """Traces from files and folders, or by workspace id."""
    found: list[Trace] = []
    for name in names:
        if Path(name).exists():
            found += read_traces(name)
        elif name.startswith("t-") and workspace.path.exists():
            found.append(workspace.trace(name).trace)
        else:
            raise InputError("is neither a file nor the id of an imported trace", path=name)
    return found


class Speaker:
    """Progress on stderr, at most every two seconds."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, progress: Progress) -> None:
        if progress.seconds - self._last >= SAY_EVERY_SECONDS:
            self._last = progress.seconds
            say(progress)


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError(f"{text!r} contains no name")
    return names


def show(result: dict[str, Any]) -> None:
    print(
        f"{counted(result['decision_points'], 'decision point')}, {result['tokens_computed']:,} tokens computed "
        f"({result['tokens_naive']:,} one by one), {result['cache_hits']} from the cache, {result['seconds']:.1f} s on {result['device']}"
    )
