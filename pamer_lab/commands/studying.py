"""What the study commands share: reading labelled traces, the model, and printing a table."""

import argparse
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pamer_lab.cli import say
from pamer_lab.commands import history
from pamer_lab.commands.option_groups import HISTORY
from pamer_lab.commands.study_options import SEEDS
from pamer_lab.counts import counted
from pamer_lab.errors import InputError, UnknownNameError
from pamer_lab.factory import Factory
from pamer_lab.features.store import layer_names
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.models.profiles import Profile, load_profile
from pamer_lab.opening import read_text
from pamer_lab.probes.metrics import MOST_DIFFERENCES
from pamer_lab.probes.split import Split
from pamer_lab.studies.bank import STATES_MEMORY, BankMaker
from pamer_lab.studies.decisions import Decisions, decisions_of, make_splits, with_origin
from pamer_lab.studies.sources import sources_of
from pamer_lab.studies.study import ALL, Study, save_study, write_study
from pamer_lab.trajectory import read_all
from pamer_lab.trajectory.values import Trace
from pamer_lab.workspace import Workspace

SEED_END = 2**32
"""Seeds must be below this; every random generator accepts them."""


@dataclass(frozen=True)
class Setting:
    """Everything a study needs, read once."""

    profile: Profile
    traces: dict[str, Trace]
    decisions: Decisions
    splits: tuple[Split, ...]
    checks: list[str]
    """The leak check of each split, in words."""
    history: str
    """Which history the decision states come from, in words."""
    workspace: Workspace
    probe_prompt: str = ""
    """Prepended to each trace's own system text in every input."""
    memory: int = STATES_MEMORY
    """Maximum bytes of hidden states in memory."""

    @property
    def origins(self) -> list[str]:
        """Where the labels come from; `+action` after a model's name: it saw the next action."""
        return sorted({label.origin for trace in self.traces.values() for label in trace.labels})

    def factory(self, device: str) -> Factory:
        return Factory(self.profile, self.workspace, device)

    def model(self, device: str) -> tuple[FrozenModel, BankMaker]:
        frozen = self.factory(device).model
        return frozen, BankMaker(self.traces, self.decisions, frozen, self.workspace, say, self.probe_prompt, self.memory)


def read_setting(args: argparse.Namespace) -> Setting:
    """Traces, decisions and checked splits; a file that cannot be read stops the study."""
    seeds = parse_seeds(args.seeds)
    if args.replicas < 0:
        raise InputError(f"--replicas must be a number of traces per question (0 for all), not {args.replicas}")
    kept = first_replicas(find_traces(args.traces, Workspace()), args.replicas)
    kept = with_origin(kept, args.labels) if args.labels else kept
    sources = sources_of(kept, args.sources) if args.split_by == "source" or args.sources else None
    decisions = decisions_of(kept, args.history, sources, by_source=args.split_by == "source")
    said = history.sentence(args.history, decisions.recorded_traces, len({trace_id for trace_id, _ in decisions.keys}))
    splits, checks = make_splits(decisions, seeds)
    say(said)
    for split, check in zip(splits, checks, strict=True):
        say(f"seed {split.seed}: {check.sentence}")
    sentences = [f"seed {split.seed}: {check.sentence}" for split, check in zip(splits, checks, strict=True)]
    traces = {trace.trace_id: trace for trace in kept}
    profile = load_profile(args.profile, Workspace().path)
    memory = int(args.states_memory * 1e6) if "states_memory" in args else STATES_MEMORY
    return Setting(profile, traces, decisions, splits, sentences, said, Workspace(), probe_prompt(args.probe_prompt, profile), memory)


def probe_prompt(text: str | None, profile: Profile) -> str:
    """The probe system prompt: `text`, or the contents of a file if it begins with @; None uses the profile's."""
    if text is None:
        return profile.probe_system_prompt
    if not text.startswith("@"):
        return text
    try:
        return read_text(text[1:]).strip()
    except (OSError, ValueError) as error:
        raise InputError(f"the probe prompt cannot be read ({error})", path=text[1:]) from error


def find_traces(names: Sequence[str], workspace: Workspace) -> list[Trace]:
    """Traces from files and folders, or by workspace id; `@workspace` adds all labelled ones of the workspace."""
    files = [name for name in names if name != ALL and (Path(name).exists() or not name.startswith("t-"))]
    ids = [name for name in names if name != ALL and name not in files]
    if ALL in names:
        ids += [row["trace_id"] for row in workspace.trace_rows("labels > 0") if row["trace_id"] not in ids]
        if not ids:
            raise InputError(f"the workspace {workspace.path} has no labelled traces; import some: pamer-lab import TRACE...")
    reading = read_all(files)
    if reading.rejected:
        first = reading.rejected[0]
        raise InputError(first.reason, path=first.path, where=first.where)
    return each_once([*reading.traces, *(workspace.trace(trace_id).trace for trace_id in dict.fromkeys(ids))])


def each_once(traces: Iterable[Trace]) -> list[Trace]:
    """The first trace of each id, in order; an id with two different contents is refused, because either could be meant."""
    kept: dict[str, Trace] = {}
    repeated = 0
    for trace in traces:
        first = kept.setdefault(trace.trace_id, trace)
        repeated += first is not trace
        if _studied(first) != _studied(trace):
            places = " and ".join(one.source.path if one.source else "the workspace" for one in (first, trace))
            raise InputError(
                f"trace {trace.trace_id} is given twice with different messages, labels or memory operations ({places}); pass just one"
            )
    if repeated:
        say(f"skipped {repeated} duplicate traces")
    return list(kept.values())


def _studied(trace: Trace) -> tuple[Any, ...]:
    """What a study reads of a trace."""
    return trace.question_id, trace.messages, trace.tools, trace.labels, tuple(event for event in trace.events if event.replaced)


def first_replicas(traces: Sequence[Trace], count: int) -> list[Trace]:
    """The first `count` traces of each question, in order; zero keeps all."""
    seen: Counter[str] = Counter()
    kept: list[Trace] = []
    for trace in traces:
        seen[trace.question_id] += 1
        if not count or seen[trace.question_id] <= count:
            kept.append(trace)
    return kept


def parse_seeds(text: str) -> list[int]:
    """The numbers of `--seeds`: each drives one split and one initialisation, so they must be distinct."""
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--seeds takes comma-separated numbers, such as 0,1,2, not {text!r}") from None
    if wrong := [seed for seed in seeds if not 0 <= seed < SEED_END]:
        raise InputError(f"--seeds takes numbers from 0 to {SEED_END - 1}, not {wrong[0]}")
    if wrong := [seed for seed, times in Counter(seeds).items() if times > 1]:
        raise InputError(f"--seeds names {wrong[0]} twice; one split would be counted twice")
    if len(seeds) > MOST_DIFFERENCES:
        raise InputError(f"--seeds takes at most {MOST_DIFFERENCES} numbers (the exact paired test tries every sign), not {len(seeds)}")
    return seeds


def layer_name(frozen: FrozenModel, text: str) -> str:
    """The name of one of the model's layers (`block:4` also means `block_4`); the error for an unknown name lists the known ones."""
    name, known = text.replace(":", "_"), layer_names(frozen)
    if name not in known:
        raise UnknownNameError("layer", text, list(known))
    return name


def command_line(args: argparse.Namespace, **options: str) -> str:
    """The command that reproduces the study, without options that concern only this machine."""
    words = ["pamer-lab", args.command, *args.traces]
    if args.replicas:
        options["replicas"] = str(args.replicas)
    if args.history != HISTORY:
        options["history"] = args.history
    if args.seeds != SEEDS:
        options["seeds"] = args.seeds
    if args.profile != "embedded":
        options["profile"] = args.profile
    if args.labels:
        options["labels"] = args.labels
    if args.split_by != "question":
        options["split-by"] = args.split_by
    if args.sources:
        options["sources"] = str(args.sources)
    if args.probe_prompt is not None:
        options["probe-prompt"] = args.probe_prompt
    for name, value in options.items():
        words += [f"--{name}", value] if value else []
    return shlex.join(words)


def finish(args: argparse.Namespace, setting: Setting, study: Study) -> dict[str, Any]:
    """Store the study with the history it used, and return what the command prints as JSON."""
    rebuilt = {"history": "recorded"} if setting.decisions.history == "recorded" else {}
    rebuilt |= {"split_by": args.split_by} if args.split_by != "question" else {}
    study = replace(study, settings=study.settings | rebuilt, notes=study.notes | {"history": setting.history, "labels": setting.origins})
    save_study(setting.workspace, study)
    if args.out is not None:
        write_study(study, args.out)
    return study.to_json()


def show(result: dict[str, Any]) -> None:
    """A table for people: AUROC with sd and interval, AUPRC, F1 and gap."""
    print(
        f"{result['study_id']}   {counted(result['corpus']['decision_points'], 'decision')}, "
        f"{counted(result['corpus']['questions'], 'question')}"
    )
    for target in dict.fromkeys(row["target"] for row in result["rows"]):
        print(f"\n{target:<46}{'AUROC':>7} {'sd':>6} {'95% interval':>15}{'AUPRC':>8}{'F1':>7}{'gap':>7}")
        for row in (row for row in result["rows"] if row["target"] == target):
            print(_line(row))
    for row in result["comparisons"]:
        print(f"{row['comparison']:<70} {row['target']:<12}{row['metric']:<7}{row['mean']:+.4f}  p {row['p']:.4f}")
    for key, value in result["notes"].items():
        print(f"{key}: {'; '.join(str(item) for item in value) if _listed(value) else value}")


def _listed(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _line(row: dict[str, Any]) -> str:
    interval = "[{:.3f}, {:.3f}]".format(*row["interval"]) if row["interval"] else ""
    others = "".join(f"{row['metrics'][name]['mean']:>{width}.3f}" for name, width in (("auprc", 8), ("f1", 7), ("logit_gap", 7)))
    return f"{row['name']:<46}{row['mean']:>7.3f} {row['sd']:>6.3f} {interval:>15}{others}"
