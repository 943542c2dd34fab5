"""`command:…`: any agent program as a player. It runs behind a live proxy with the policy, in a separate folder, with its task in a file.

The program gets `PAMER_TASK_FILE`, `PAMER_TASK_ID`, `PAMER_WORK_DIR` and, for the arena's own worlds, `PAMER_TOOLS`; `{task}` and `{work}`
in its command are replaced too. Invariant: whatever the program, its server or its grader does, the episode ends with a reason.
"""

import shlex
import shutil
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from pamer_lab.arena.agents import AgentError
from pamer_lab.arena.episode import Episode
from pamer_lab.arena.programs import run_limited
from pamer_lab.arena.suite import AnyTask
from pamer_lab.errors import InputError, LabError
from pamer_lab.live.child import child_environment, upstreams
from pamer_lab.live.desk import OUTSIDE
from pamer_lab.live.policy import LiveOptions
from pamer_lab.live.record import Record
from pamer_lab.live.serve import Live, build, running
from pamer_lab.live.summary import sent_turns, summary
from pamer_lab.policies.interface import Policy
from pamer_lab.prices import PriceTable
from pamer_lab.redaction import without_secrets
from pamer_lab.runs.store import RunStore
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.store import TOTALS

TIME_LIMIT = 600.0
STDERR_SHOWN = 200


@dataclass(frozen=True)
class CommandAgent:
    """A program with its arguments."""

    words: tuple[str, ...]
    time_limit: float = TIME_LIMIT
    simulated: bool = False

    @property
    def name(self) -> str:
        return without_secrets(f"command:{shlex.join(self.words)}")

    @classmethod
    def parse(cls, text: str, time_limit: float = TIME_LIMIT) -> "CommandAgent":
        """`PROGRAM ARGUMENT…`; `InputError` if there is no such program."""
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise InputError(f"the agent's command cannot be read ({error}): {text[:60]!r}") from error
        if not words or shutil.which(words[0]) is None:
            raise InputError(f"agent command:{text[:60]} names no program that can be run here")
        if not time_limit > 0:
            raise InputError("a time limit is a number of seconds above 0")
        return cls(words, time_limit)

    def run(self, task: AnyTask, work: Path, url: str) -> str:
        """Run the program on a task; returns what it printed. `AgentError` gives the reason if it failed."""
        try:
            path = task.prepare(work)
        except OSError as error:  # a broken link, a pipe, a full disk
            raise AgentError(f"the task's files cannot be copied ({without_secrets(str(error))[:STDERR_SHOWN]})") from error
        given = {"PAMER_TASK_FILE": str(path), "PAMER_TASK_ID": task.task_id, "PAMER_WORK_DIR": str(work), **task.variables()}
        words = [word.replace("{task}", str(path)).replace("{work}", str(work)) for word in self.words]
        code, said, complaint = run_limited(words, child_environment(url) | given, work, self.time_limit)
        if code is None:
            raise AgentError(f"the agent did not finish within {self.time_limit:g} seconds, or printed too much")
        if code:
            last = complaint.strip().splitlines()[-1:] or [""]
            raise AgentError(without_secrets(f"the agent ended with exit code {code}: {last[0][:STDERR_SHOWN]}".rstrip(": ")))
        return said


def play_command(
    task: AnyTask, agent: CommandAgent, policy: Policy, workspace: Workspace, place: Path, options: LiveOptions, prices: PriceTable
) -> Episode:
    """Play one task under one policy. Its sessions are published as traces and runs of the workspace when it ends."""
    began = time.perf_counter()
    folder = place / f"{task.number}-{sha256(policy.name.encode()).hexdigest()[:12]}"
    shutil.rmtree(folder, ignore_errors=True)
    (work := folder / "work").mkdir(parents=True)
    openai, anthropic = upstreams()
    live = build(workspace, openai, options, anthropic=anthropic, logs=folder)
    live.desk.workshop.warm()
    ended, share = "answered", 0.0
    with running(workspace, live) as proxy:
        try:
            share = task.reward(agent.run(task, work, proxy.url), work)
        except LabError as error:
            ended = str(error)
    return _episode(task, policy, live, prices, ended, share, RunStore(workspace), time.perf_counter() - began)


def _episode(
    task: AnyTask, policy: Policy, live: Live, prices: PriceTable, ended: str, share: float, store: RunStore, seconds: float
) -> Episode:
    records = [thread.record for thread in live.desk.threads.all() if thread.record.session != OUTSIDE and sent_turns(thread.record)]
    main = max(records, key=lambda record: len(record.turns), default=None)
    heads = [head for record in records if (head := store.head(record.run_id)) is not None]
    totals: dict[str, Any] = {name: sum(head.totals[name] for head in heads) for name in TOTALS if name != "peak_active"}
    totals["peak_active"] = max((head.totals["peak_active"] for head in heads), default=0)
    totals["actions"] = {name: sum(head.totals["actions"][name] for head in heads) for name in ("pass", "compress", "recall", "fallback")}
    answers = _answers(main) if main else ()
    calls = [(call.name, call.arguments) for said in answers for call in said.tool_calls]
    return Episode(
        task=task.number,
        policy=policy.name,
        ended=ended,
        reward=task.counted(share),
        share=share,
        turns=sum(len(sent_turns(record)) for record in records),
        repeats=len(calls) - len(set(calls)),
        totals=totals,
        answers=answers,
        cost={prices.name: sum(summary(record, prices)["cost"].get("simulated") or 0.0 for record in records)},
        seconds=round(seconds, 3),
        stored=(main.trace_id, main.run_id) if main else (),
    )


def _answers(record: Record) -> tuple[Any, ...]:
    return tuple(message for message in record.trace.messages if message.role == "assistant") if record.trace else ()
