"""How much of a trace a policy's models read and embed, and how much of that earlier runs have already stored."""

from collections.abc import Callable, Sequence

from pamer_lab.blocks.render import task_text
from pamer_lab.errors import LabError
from pamer_lab.factory import Factory
from pamer_lab.policies.interface import Embeds, Policy
from pamer_lab.policies.registry import parse_policy
from pamer_lab.policies.resources import factory_of
from pamer_lab.runs.samples import is_sample
from pamer_lab.runs.values import RunInfo
from pamer_lab.workspace import TraceSize

LETTERS = 3
"""Characters of a token, about. Blocks are measured by their tokens, because text with more of them takes longer to embed."""


class Inputs:
    """What policies read and embed with one profile in one workspace. `runs_of`: returns the runs of a trace."""

    def __init__(self, factory: Factory, runs_of: Callable[[str], Sequence[RunInfo]]) -> None:
        self._factory, self._runs_of = factory, runs_of
        self._sizes: dict[str, tuple[float, float]] = {}

    def reads(self, policy: Policy) -> bool:
        """Whether the frozen model reads states for a policy; not if a given probe votes without it."""
        return policy.needs_models and self._factory.parts.probe is None

    def tokens(self, policy: Policy, size: TraceSize, turns: int) -> int:
        """Tokens to read for `turns` turns: the prefix once, and every block as often as it is among the newest."""
        if not self.reads(policy) or not size.turns:
            return 0
        read = size.head_tokens + retained(policy) * size.later_tokens * turns // size.turns
        limit = self._factory.profile.probe_limit
        return min(read, turns * limit) if limit else read

    def turns_read(self, policy: Policy, trace_id: str) -> int:
        """How many first turns of a trace have stored states, according to runs with the same heads, including stopped ones."""
        if not self.reads(policy):
            return 0
        try:
            heads = factory_of(policy, self._factory).heads_identity().get("sha256")
        except LabError:
            return 0
        runs = (
            run
            for run in self._earlier(trace_id)
            if run.heads.get("sha256") == heads is not None
            and run.settings.get("controller", {}).get("retained_blocks") == retained(policy)
        )
        return max((run.turns if run.status == "done" else run.read for run in runs), default=0)

    def embeds(self, policy: Policy, trace_id: str, size: TraceSize) -> dict[str, float]:
        """Texts that a turn embeds: name -> mean number of characters."""
        if not isinstance(policy, Embeds):
            return {}
        if trace_id not in self._sizes:
            self._sizes[trace_id] = self._task_and_block(trace_id, size)
        return policy.embeds(*self._sizes[trace_id])

    def embedded(self, trace_id: str) -> set[str]:
        """Names of the texts that finished runs of this profile have embedded."""
        own = self._factory.profile.name
        runs = [run for run in self._earlier(trace_id) if run.status == "done" and run.profile == own]
        return {name for run in runs for name in _texts_of(run.policy)}

    def _earlier(self, trace_id: str) -> list[RunInfo]:
        return [run for run in self._runs_of(trace_id) if not is_sample(run)]

    def _task_and_block(self, trace_id: str, size: TraceSize) -> tuple[float, float]:
        """Characters of the task, and mean characters of a block."""
        block = LETTERS * size.later_tokens / max(size.turns, 1)
        try:
            found = self._factory.workspace.trace(trace_id)
        except LabError:
            return 0.0, block
        return len(task_text(found.trace.messages[: int(found.row["prefix_messages"])])), block


def texts(policy: Policy) -> set[str]:
    """Names of the texts that a policy embeds."""
    return set(policy.embeds(1.0, 1.0)) if isinstance(policy, Embeds) else set()


def _texts_of(name: str) -> set[str]:
    """The same for a stored run's policy; none if the policy comes from another version of the program."""
    try:
        return texts(parse_policy(name))
    except LabError:
        return set()


def retained(policy: Policy) -> int:
    """Newest blocks that a policy's heads read; 0 for a policy without heads."""
    return int(getattr(policy, "retained", 0)) if policy.needs_models else 0
