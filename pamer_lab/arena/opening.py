"""Turns an episode into a trace and a run of the workspace, so that the Replay page can show them.

The trace is rebuilt from the episode, and replaying it under its policy gives the run, memories included. Invariant: the run has the
episode's totals; otherwise the episode is not opened.
"""

from typing import Any

from pamer_lab.arena.episode import trace_of
from pamer_lab.arena.store import ArenaStore
from pamer_lab.errors import InputError, LabError
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.policies.registry import parse_policy
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.storage import equals
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.store import TOTALS


def open_episode(workspace: Workspace, arena_id: str, task: int, policy: str, *, device: str = "auto") -> dict[str, Any]:
    """Store an episode's trace and run, or find existing ones."""
    store = ArenaStore(workspace)
    info = store.info(arena_id)
    name = parse_policy(policy).name
    episode = next((entry for entry in store.episodes(arena_id) if (entry.task, entry.policy) == (task, name)), None)
    if episode is None:
        raise InputError(f"arena {arena_id} has no episode of task {task} under {name}")
    if info.agent.startswith("command:"):
        if not episode.stored:
            raise InputError(f"task {task} under {name} has no model call ({episode.ended}); there is nothing to replay")
        return {"trace_id": episode.stored[0], "run_id": episode.stored[1], "policy": name, "turns": episode.turns}
    trace = trace_of(
        info.task(task),
        info.agent,
        parse_policy(policy),
        episode.answers,
        episode.memory_answers,
        reward=episode.reward,
        ended=episode.ended,
    )
    if not trace.turns:
        raise InputError(f"task {task} under {name} ended before the agent's first step ({episode.ended}); there is nothing to replay")
    tokens = profile_tokens(load_profile(info.profile, workspace.path))
    known = workspace.trace_rows(equals("trace_id", trace.trace_id))
    if known and workspace.trace(trace.trace_id).trace.messages != trace.messages:
        workspace.remove_trace(trace.trace_id)
        known = []
    if not known:
        workspace.add_traces([trace], tokens)
    run = replay(trace.trace_id, name, workspace, ReplayOptions(profile=info.profile, device=device, heads=info.heads))
    if any(run.totals[key] != episode.totals[key] for key in TOTALS):
        raise LabError(f"the run of task {task} under {name} does not repeat its episode; play it again (--fresh)")
    return {"trace_id": trace.trace_id, "run_id": run.run_id, "policy": name, "turns": trace.turns}
