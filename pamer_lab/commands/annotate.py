"""`pamer-lab annotate TRACE...`: labels by a language model, one question per decision point."""

import argparse
from pathlib import Path
from typing import Any

from pamer_lab.cli import say
from pamer_lab.commands import history
from pamer_lab.counts import counted
from pamer_lab.errors import InputError
from pamer_lab.factory import Factory
from pamer_lab.models.chat import Chat
from pamer_lab.models.profiles import Profile, load_profile
from pamer_lab.storage.files import write_whole
from pamer_lab.studies.annotate import Annotation, Ask, Reply, annotate, labelled, origin_of
from pamer_lab.studies.questions import HISTORY_CHARACTERS, history_limit
from pamer_lab.trajectory import read_all
from pamer_lab.trajectory.formats.native import to_native
from pamer_lab.trajectory.recorded import count_recorded
from pamer_lab.trajectory.values import Trace
from pamer_lab.workspace import Workspace

ANSWER_TOKENS = 400
"""Maximum tokens of one answer."""


def run(args: argparse.Namespace) -> dict[str, Any]:
    reading = read_all(args.traces)
    if reading.rejected:
        first = reading.rejected[0]
        raise InputError(first.reason, path=first.path, where=first.where)
    chat, characters = _chat(load_profile(args.profile, Workspace().path), args.device)
    say(history.sentence(args.history, count_recorded(reading.traces), len(reading.traces)))
    result = annotate(
        reading.traces,
        _ask(chat),
        chat.name,
        Workspace(),
        say=say,
        limit=args.limit,
        history=characters,
        future=args.future,
        state=args.history,
    )
    if args.out is not None:
        _write(args.out, list(labelled(reading.traces, result, chat.name)))
    return _report(result, chat.name, args.out) | {
        "future": args.future,
        "history": args.history,
        "origin": origin_of(chat.name, args.future),
    }


def show(result: dict[str, Any]) -> None:
    usage = result["usage"]
    print(
        f"{counted(len(result['labels']), 'label')} by {result['origin']}; "
        f"{len(result['refused'])} rejected, {len(result['failed'])} failed"
    )
    print(
        f"{counted(usage['asked'], 'question')} asked, {counted(usage['kept'], 'answer')} cached; "
        f"{usage['input_tokens']:,} tokens in, {usage['output_tokens']:,} out"
    )


def _chat(profile: Profile, device: str) -> tuple[Chat, int]:
    """The model, and how many characters of history it is shown; a server does not report its window."""
    factory = Factory(profile, Workspace(), device)
    chat, frozen = factory.chat, factory.model if profile.chat.kind == "local" else None
    if chat is None:
        raise InputError(f'profile {profile.name!r} names no chat model; use --profile paper, or a TOML file with [chat] kind = "openai"')
    return chat, HISTORY_CHARACTERS if frozen is None else history_limit(frozen.window, ANSWER_TOKENS)


def _ask(chat: Chat) -> Ask:
    """Ask without a schema, so that a malformed answer is seen and kept verbatim."""

    def ask(system: str, user: str) -> Reply:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        answer = chat.complete(messages, max_tokens=ANSWER_TOKENS)
        return Reply(answer.raw, answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.kind)

    return ask


def _write(path: Path, traces: list[Trace]) -> None:
    write_whole(path, b"".join(to_native(trace) + b"\n" for trace in traces))


def _report(result: Annotation, model: str, out: Path | None) -> dict[str, Any]:
    rows = [
        {"trace_id": trace_id, "t": label.t, "target": label.target, "value": label.value, "steps": list(label.steps)}
        for trace_id, labels in result.labels.items()
        for label in labels
    ]
    usage = {
        "asked": result.asked,
        "kept": result.kept,
        "input_tokens": result.input_tokens,
        "output_tokens": result.output_tokens,
        "kind": result.usage_kind,
    }
    missing = {"refused": result.refused, "failed": result.failed}
    return {"model": model, "labels": rows, **missing, "usage": usage, "out": str(out) if out else None}
