"""The resources of one replayed run: the factory's parts, its own memory, and its audit records.

Invariant: asking for the identity loads nothing, and runs with different parts are different runs.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pamer_lab.audit import AuditStore
from pamer_lab.blocks import MessageTokens
from pamer_lab.controller.probe import Probe
from pamer_lab.controller.recall import Recaller
from pamer_lab.controller.recall_gate import RecallGate
from pamer_lab.controller.router import SelectionRecord
from pamer_lab.controller.router_index import RouterKind
from pamer_lab.controller.settings import ControllerSettings
from pamer_lab.errors import InputError
from pamer_lab.factory import NO_CHAT, Factory
from pamer_lab.memory import BufferedMemories, DetailWriter, Summariser
from pamer_lab.models.chat import Chat
from pamer_lab.models.embedder import Embedder
from pamer_lab.models.profiles import Profile
from pamer_lab.policies.interface import Policy
from pamer_lab.probes.draft_probe import DraftProbe


def factory_of(policy: Policy, factory: Factory) -> Factory:
    """The factory with the heads that a policy names; unchanged if it names none."""
    named = getattr(policy, "heads", "")
    return replace(factory, heads_text=named) if named else factory


class BufferedSelections:
    """Buffers the records of PaMER+'s selections to store them together: a commit for each would take most of a replay's time."""

    def __init__(self) -> None:
        self._records: list[SelectionRecord] = []

    def record(self, record: SelectionRecord) -> None:
        self._records.append(record)

    def take(self) -> list[SelectionRecord]:
        """The records since the last call."""
        taken, self._records = self._records, []
        return taken


@dataclass
class RunResources:
    """What one run uses."""

    factory: Factory
    session_id: str = ""
    trace_id: str = ""
    recorder: BufferedSelections = field(default_factory=BufferedSelections)

    @property
    def profile(self) -> Profile:
        return self.factory.profile

    @property
    def tokens(self) -> MessageTokens:
        return self.factory.tokens

    @property
    def summariser(self) -> Summariser:
        return self.factory.summariser

    @property
    def embedder(self) -> Embedder:
        return self.factory.embedder

    @property
    def chat(self) -> Chat:
        if self.factory.chat is None:
            raise InputError(NO_CHAT.format(profile=self.profile.name))
        return self.factory.chat

    @property
    def probe(self) -> Probe:
        return self.factory.probe

    @property
    def settings(self) -> ControllerSettings:
        return self.factory.settings

    @cached_property
    def memory(self) -> BufferedMemories:
        return BufferedMemories(self.factory.memory)

    def detail_writer(self, settings: ControllerSettings) -> DetailWriter | None:
        return self.factory.detail_writer(settings)

    def step_recaller(self, settings: ControllerSettings, router: RouterKind) -> Recaller:
        return self.factory.recaller(settings, self.memory, self.recorder, router)

    @property
    def draft_probe(self) -> DraftProbe:
        return self.factory.draft_probe

    def draft_gate(self) -> RecallGate:
        return self.factory.draft_gate()

    def save(self) -> None:
        """Store the buffered memories and selections; called before the turns that refer to them are stored."""
        self.memory.flush()
        self._audit.record_all([replace(record, table_version=self.memory.version) for record in self.recorder.take()])

    def forget_from(self, turn: int) -> None:
        """Delete the stored selections from this turn on, whose turns are not stored."""
        self._audit.forget_from(turn)

    @property
    def _audit(self) -> AuditStore:
        return AuditStore(self.memory.store.database, run_id=self.session_id, trace_id=self.trace_id)

    def identity(self) -> dict[str, Any]:
        return self.factory.identity()

    def heads_identity(self) -> dict[str, str]:
        return self.factory.heads_identity()
