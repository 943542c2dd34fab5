"""Runs policies on live sessions: which one, with which parts, resumed from a session's record.

A live policy edits only if that pays (`gate=priced`) and appends recalled text, so that a prompt cache keeps what precedes it
(`inject=append`), unless the user says otherwise. Knows nothing about HTTP.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from pamer_lab.blocks import MessageTokens
from pamer_lab.errors import InputError
from pamer_lab.factory import Factory, Parts
from pamer_lab.live.record import Record
from pamer_lab.models.profiles import load_profile, remember_profile
from pamer_lab.models.trust import require_confirmed
from pamer_lab.policies.availability import why_not
from pamer_lab.policies.bounds import BOUNDS
from pamer_lab.policies.growing import GrowingHistory
from pamer_lab.policies.interface import Policy
from pamer_lab.policies.registry import live_policies, parse_policy
from pamer_lab.policies.resources import RunResources, factory_of
from pamer_lab.runs.acting import Acting
from pamer_lab.runs.values import Turn
from pamer_lab.trajectory.values import Message
from pamer_lab.workspace import Workspace

BASE = "base"


@dataclass(frozen=True)
class LiveOptions:
    """The options of a proxy."""

    policy: str = BASE
    profile: str = "embedded"
    device: str = "auto"
    heads: str = ""
    prices: str = ""
    """The price table of the gate and of all costs; empty: the default one."""
    window: int = 0
    """The model's context window in tokens; 0 means that no limit is known."""
    deadline: float = 5.0
    """Seconds that a request waits for its decision; later ones serve the next turn."""
    gate: bool = True
    """Whether the policy edits only if that pays."""
    parts: Parts = field(default_factory=Parts)


def live_policy(text: str, options: LiveOptions) -> Policy:
    """The policy as it runs live: priced and appending, unless the text says otherwise."""
    policy = parse_policy(text)
    bound = policy.name.partition(":")[0] in BOUNDS
    if bound or not policy.acts_live:
        why = "is one of the arena's bounds, not a method," if bound else "needs more than the past"
        raise InputError(f"policy {text!r} {why} and cannot run live; these can: {', '.join(live_policies())}")
    if policy.name == BASE:
        return policy
    own = {entry.name for entry in fields(policy)} if hasattr(policy, "__dataclass_fields__") else set()  # type: ignore[arg-type]
    more: dict[str, Any] = {}
    if "inject" in own and "inject=" not in text:
        more["inject"] = "append"
    if options.gate and "gate" in own and "gate=" not in text:
        more["gate"] = "priced"
    if options.window and "window" in own and "window=" not in text:
        more["window"] = options.window
    if options.prices and "prices" in own and "prices=" not in text and not options.prices.endswith(".toml"):
        more["prices"] = options.prices
    policy = replace(policy, **more)  # type: ignore[type-var]
    if options.gate and "gate" not in own and "gate=" not in text:
        window = f":window={options.window}" if options.window else ""
        prices = f":prices={options.prices}" if options.prices and not options.prices.endswith(".toml") else ""
        policy = parse_policy(f"{policy.name}:gate=priced{window}{prices}")
    return policy


class LiveActing(Acting):
    """A running policy with its resources."""

    resources: RunResources


class Workshop:
    """Makes policies for sessions; one per proxy."""

    def __init__(self, workspace: Workspace, options: LiveOptions) -> None:
        self.workspace, self.options = workspace, options
        profile = load_profile(options.profile, workspace.path)
        require_confirmed(profile)
        self._factory = Factory(profile, workspace, options.device, options.heads, options.parts)
        self.profile = profile.name
        self.policy = self.parse(options.policy)
        remember_profile(profile, workspace.path)

    def parse(self, text: str) -> Policy:
        """A policy that can run live on this computer; `InputError` gives the reason if it cannot."""
        policy = live_policy(text, self.options)
        if reason := why_not(policy, self._factory):
            raise InputError(f"policy {text!r} cannot run here: {reason}")
        return policy

    def is_base(self, name: str) -> bool:
        return name == BASE

    @cached_property
    def tokens(self) -> MessageTokens:
        return self._factory.tokens

    def warm(self) -> None:
        """Load what the policy needs, so that the first request does not wait for it."""
        resources = RunResources(factory_of(self.policy, self._factory))
        resources.tokens.total([Message("user", "a")])
        if self.policy.needs_models:
            _ = resources.probe, resources.embedder, resources.summariser

    def facts(self, policy: Policy) -> tuple[dict[str, Any], dict[str, str]]:
        """Settings and heads of a policy, in the form in which its run stores them."""
        resources = RunResources(factory_of(policy, self._factory))
        return policy.settings(resources), resources.heads_identity() if policy.needs_models else {}

    def acting(self, record: Record) -> LiveActing:
        """A session's policy in its state after the last decision."""
        policy = parse_policy(record.policy)
        resources = RunResources(factory_of(policy, self._factory), record.run_id, record.trace_id)
        if policy.needs_models:
            resources.forget_from(len(record.turns))
        acting = LiveActing(policy, resources, record.opened.tools, record.history, record.turns)
        acting.resources = resources
        return acting

    def history(self, record: Record, messages: Sequence[Message]) -> GrowingHistory:
        return GrowingHistory(self.tokens, record.opened.tools, messages)

    def store(self, acting: LiveActing, turns: Sequence[Turn]) -> None:
        """Store the memories that decisions rely on and read them back; `StorageError` if one is missing."""
        if not any(turn.memory_ids or turn.stored for turn in turns):
            return
        resources = acting.resources
        resources.save()
        store = self._factory.memory
        written = [name for turn in turns if turn.action == "compress" for name in turn.memory_ids]
        if written:
            known = store.load(resources.session_id).by_id
            store.raw_blocks([block.raw_hash for name in written for block in known[name].blocks])
