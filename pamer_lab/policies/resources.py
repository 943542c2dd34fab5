"""The models and the memory of a profile, loaded on first use and shared by all runs of this process.

What always holds: asking for the identity loads nothing, and parts that are given instead (other heads, an embedder without
weights) are named in it, so that runs with different parts are different runs.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from pamer_lab.audit import AuditStore
from pamer_lab.blocks import MessageTokens
from pamer_lab.controller.build import load_detail_writer, load_summariser
from pamer_lab.controller.heads_probe import HeadsProbe
from pamer_lab.controller.probe import Probe
from pamer_lab.controller.selection_record import SelectionRecord
from pamer_lab.controller.settings import ControllerSettings
from pamer_lab.features.store import FeatureStore
from pamer_lab.memory import DetailWriter, HeldMemories, MemoryStore, Summariser
from pamer_lab.models.chat import Chat, load_chat
from pamer_lab.models.embedded import SMOLLM2
from pamer_lab.models.embedder import Embedder, load_embedder
from pamer_lab.models.frozen import FrozenModel, load_frozen
from pamer_lab.models.profiles import EMBEDDED, Profile
from pamer_lab.models.tokenizer import TokenizerCounter, embedded_counter
from pamer_lab.policies.remembered import RememberedSummaries, RememberedVectors
from pamer_lab.probes.artefact import FACTS, load_shipped, shipped_folder
from pamer_lab.storage import Database
from pamer_lab.workspace import Workspace


@dataclass(frozen=True)
class Parts:
    """Parts to use instead of the profile's; None takes the profile's."""

    summariser: Summariser | None = None
    embedder: Embedder | None = None
    probe: Probe | None = None


class HeldSelections:
    """Keeps the records of PaMER+'s selections until they are stored together: a commit for each would take most of a replay's time."""

    def __init__(self) -> None:
        self._records: list[SelectionRecord] = []

    def record(self, record: SelectionRecord) -> None:
        self._records.append(record)

    def take(self) -> list[SelectionRecord]:
        """The records since the last taking."""
        taken, self._records = self._records, []
        return taken


@dataclass
class LocalResources:
    """What one run uses."""

    workspace: Workspace
    tokens: MessageTokens
    profile: Profile
    device: str = "auto"
    session_id: str = ""
    parts: Parts = field(default_factory=Parts)
    trace_id: str = ""
    recorder: HeldSelections = field(default_factory=HeldSelections)

    @property
    def summariser(self) -> Summariser:
        return self.parts.summariser or _summariser(self.tokens, self.profile.model_dump_json(), self.device)

    @property
    def chat(self) -> Chat | None:
        return _chat(self.profile.model_dump_json(), self.device)

    def detail_writer(self, settings: ControllerSettings) -> DetailWriter | None:
        return load_detail_writer(self.chat, settings)

    @property
    def embedder(self) -> Embedder:
        return self.parts.embedder or _embedder(self.profile.model_dump_json(), self.device)

    @property
    def probe(self) -> Probe:
        return self.parts.probe or _probe(self.profile.model_dump_json(), self.device, self.workspace.database.uri)

    @cached_property
    def memory(self) -> HeldMemories:
        return HeldMemories(_memory(self.profile.memory_uri or self.workspace.database.uri))

    def save(self) -> None:
        """Store the memories and selections that are held back; called before the turns that tell of them are stored."""
        self.memory.flush()
        self._audit.record_all([replace(record, table_version=self.memory.version) for record in self.recorder.take()])

    def forget_from(self, turn: int) -> None:
        """Forget stored selections of turns that are not stored."""
        self._audit.forget_from(turn)

    @property
    def _audit(self) -> AuditStore:
        return AuditStore(self.memory.store.database, run_id=self.session_id, trace_id=self.trace_id)

    def identity(self) -> dict[str, Any]:
        given = {name: part.name for name in ("summariser", "embedder", "probe") if (part := getattr(self.parts, name)) is not None}
        return {"models": self.profile.model_dump(exclude={"name", "memory_uri"}), "heads": heads_identity(self.profile), "parts": given}


def message_tokens(profile: Profile) -> MessageTokens:
    """The token counter of a profile, with its counts remembered for the life of the process.

    A frozen model in a local folder counts with its own tokenizer; otherwise SmolLM2's counts, and every count says which.
    """
    folder = Path(profile.frozen_model.model)
    counter = TokenizerCounter(folder, folder.name) if (folder / "tokenizer.json").is_file() else embedded_counter()
    return _COUNTERS.setdefault(counter.name, MessageTokens(counter))


_COUNTERS: dict[str, MessageTokens] = {}


@lru_cache(maxsize=2)
def _summariser(tokens: MessageTokens, profile: str, device: str) -> Summariser:
    settings = ControllerSettings.of_profile(Profile.model_validate_json(profile))
    return RememberedSummaries(load_summariser(_chat(profile, device), tokens.counter, settings))


@lru_cache(maxsize=2)
def _embedder(profile: str, device: str) -> Embedder:
    return RememberedVectors(load_embedder(Profile.model_validate_json(profile), device))


@lru_cache(maxsize=8)
def _memory(uri: str) -> MemoryStore:
    return MemoryStore(Database(uri))


@lru_cache(maxsize=2)
def _model(profile: str, device: str) -> FrozenModel:
    return load_frozen(Profile.model_validate_json(profile), device)


@lru_cache(maxsize=2)
def _chat(profile: str, device: str) -> Chat | None:
    named = Profile.model_validate_json(profile)
    return load_chat(named, _model(profile, device) if named.chat.kind == "local" else None)


@lru_cache(maxsize=2)
def _probe(profile: str, device: str, database: str) -> Probe:
    model = _model(profile, device)
    return HeadsProbe(model, load_shipped(model.name), FeatureStore(Database(database), model))


def heads_identity(profile: Profile) -> dict[str, str]:
    """The heads' hash and the hint they read; nothing where none are installed for the profile's model."""
    model = profile.frozen_model.model
    facts = shipped_folder(SMOLLM2.name if model == EMBEDDED else Path(model).name) / FACTS
    if not facts.exists():
        return {}
    body = facts.read_bytes()
    return {"sha256": sha256(body).hexdigest(), "hint": str(orjson.loads(body).get("hint", ""))}
