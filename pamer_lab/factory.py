"""A profile -> the parts that work for it: tokenizer, model, heads, probe, embedder, summariser, router, settings.

The one builder for replay, live use, studies and pages. Parts are made when first asked for and shared by everything in this
process that names the same profile, device and heads. Knows nothing of runs, pages or commands.
"""

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from pamer_lab.audit.store import LiveRecorder
from pamer_lab.blocks import MessageTokens
from pamer_lab.controller.heads_probe import HeadsProbe
from pamer_lab.controller.pamer import PamerController
from pamer_lab.controller.pamer_plus import StepRecaller, archived_messages
from pamer_lab.controller.probe import Probe
from pamer_lab.controller.recall import Recaller
from pamer_lab.controller.recall_agent import LlmRecallAgent, QuotingAgent, RecallAgent
from pamer_lab.controller.recall_gate import ProbingRagGate, RecallGate
from pamer_lab.controller.router import LlmRouter, Recorder, Router
from pamer_lab.controller.router_embedded import EmbeddedRouter
from pamer_lab.controller.router_index import ArchiveSource, RouterKind
from pamer_lab.controller.settings import ControllerSettings
from pamer_lab.errors import InputError
from pamer_lab.features.store import FeatureStore
from pamer_lab.memory import DetailWriter, Memories, MemoryStore, Summariser
from pamer_lab.memory.extractive import ExtractiveSummariser
from pamer_lab.memory.llm_summary import LlmDetailWriter, LlmSummariser
from pamer_lab.memory.summary import CachedSummariser
from pamer_lab.models.chat import Chat, load_chat
from pamer_lab.models.embedder import Embedder, load_embedder
from pamer_lab.models.frozen import FrozenModel, chosen_model, is_here, load_frozen, model_name, remedy
from pamer_lab.models.kept_embeddings import KeptEmbeddings
from pamer_lab.models.profiles import Profile, TrainingSettings, load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.models.trust import require_confirmed
from pamer_lab.probes.artefact import FACTS, HeadSet
from pamer_lab.probes.draft_probe import DraftProbe, find_probe
from pamer_lab.probes.registry import NamedHeads, heads_for
from pamer_lab.storage import Database
from pamer_lab.workspace import Workspace

Kind = Literal["pamer", "pamer+"]
"""`pamer`: recalls complete summaries. `pamer+`: restores only the steps that are needed."""


@dataclass(frozen=True)
class Parts:
    """Parts to use instead of the profile's; None takes the profile's."""

    summariser: Summariser | None = None
    embedder: Embedder | None = None
    probe: Probe | None = None
    tokens: MessageTokens | None = None
    """Not named in a run's identity: a run keeps its tokenizer's name anyway."""

    def names(self) -> dict[str, str]:
        given = {"summariser": self.summariser, "embedder": self.embedder, "probe": self.probe}
        return {key: part.name for key, part in given.items() if part is not None}


NO_CHAT = 'profile {profile!r} has no chat model; name one in a profile file ([chat] kind = "openai", see docs/gpu.md)'
"""Why a policy that asks a language model cannot run."""


@dataclass(frozen=True)
class Factory:
    """The parts of one profile in one workspace."""

    profile: Profile
    workspace: Workspace
    device: str = "auto"
    heads_text: str = ""
    """Name or folder of the heads that vote; empty: the profile's, else those that fit."""
    parts: Parts = field(default_factory=Parts)

    @property
    def model_name(self) -> str:
        """The frozen model's name; nothing is loaded."""
        return model_name(chosen_model(self.profile.frozen_model))

    @cached_property
    def _key(self) -> str:
        require_confirmed(self.profile)
        return parts_key(self.profile)

    @cached_property
    def tokens(self) -> MessageTokens:
        """Counts with the profile's own tokenizer."""
        return self.parts.tokens or profile_tokens(self.profile)

    @property
    def model(self) -> FrozenModel:
        return _model(self._key, self.device)

    @property
    def chat(self) -> Chat | None:
        return _chat(self._key, self.device)

    @property
    def embedder(self) -> Embedder:
        return self.parts.embedder or _kept_embedder(self._key, self.device, self.workspace.database.uri)

    @cached_property
    def heads(self) -> NamedHeads:
        """The heads that vote; an error if none fit the model."""
        return heads_for(self.model_name, self.heads_text or self.profile.heads, self.workspace.path)

    @property
    def probe(self) -> Probe:
        if self.parts.probe is not None:
            return self.parts.probe
        heads = self.heads.heads
        facts = Path(heads.folder) / FACTS
        return _probe(self._key, self.device, heads.folder, facts.stat().st_mtime_ns, self.workspace.database.uri)

    @property
    def summariser(self) -> Summariser:
        return self.summariser_for(ControllerSettings())

    def summariser_for(self, settings: ControllerSettings) -> Summariser:
        """Writes summaries within the limits of the settings."""
        return self.parts.summariser or _summariser(self._key, self.device, self.tokens, settings)

    def detail_writer(self, settings: ControllerSettings) -> DetailWriter | None:
        """Writes PaMER+'s step details with the chat model; None: the summariser's own are used, written by a rule."""
        chat = self.chat
        if chat is None:
            return None
        return LlmDetailWriter(
            chat,
            detail_tokens=settings.detail_tokens,
            steps_per_call=settings.details_per_call,
            source_characters=settings.summary_source_characters,
            retries=settings.summary_retries,
        )

    @property
    def settings(self) -> ControllerSettings:
        """The controller's defaults, with as many heads as there are; fewer heads than its vote must all agree."""
        heads = 5 if self.parts.probe is not None else self.heads.heads.stack.count
        return ControllerSettings(heads=heads, vote=min(heads, ControllerSettings.model_fields["vote"].default))

    @property
    def memory(self) -> MemoryStore:
        require_confirmed(self.profile)
        return _memory(self.profile.memory_uri or self.workspace.database.uri)

    def recaller(
        self, settings: ControllerSettings, memory: Memories, recorder: Recorder | None, router_kind: RouterKind = "index"
    ) -> Recaller:
        """PaMER+'s recaller: with a chat model its router and agent, else deterministic ones; a router over the archive has no model."""
        chat, counter = self.chat, self.tokens.counter
        router: Router = LlmRouter(chat) if chat else EmbeddedRouter(self.embedder)
        if router_kind == "archive":
            router = EmbeddedRouter(self.embedder, ArchiveSource(lambda blocks: archived_messages(memory, blocks)))
        agent: RecallAgent = LlmRecallAgent(chat) if chat else QuotingAgent(counter, max_tokens=settings.evidence_tokens)
        return StepRecaller(memory, router, agent, counter, query_characters=settings.query_characters, recorder=recorder)

    @property
    def draft_probe(self) -> DraftProbe:
        """Probing-RAG's probe for the frozen model; an error if there is none."""
        return find_probe(self.model_name, self.workspace.path)

    def draft_gate(self) -> RecallGate:
        """Probing-RAG's gate before recall."""
        return ProbingRagGate(self.model, self.draft_probe)

    def identity(self) -> dict[str, Any]:
        """What identifies these parts, as part of a run's id; nothing is loaded."""
        models = self.profile.identity()
        models["frozen_model"] |= {"model": chosen_model(self.profile.frozen_model), "fallback": ""}
        return {"models": models, "parts": self.parts.names()}

    def heads_identity(self) -> dict[str, str]:
        """Which heads vote; empty where a given probe does."""
        return {} if self.parts.probe is not None else self.heads.identity()

    def why_not(self) -> str:
        """Why hidden states cannot be read and voted on here, as a sentence with its remedy; empty where they can."""
        model = chosen_model(self.profile.frozen_model)
        try:
            heads = self.heads
        except InputError as error:
            return error.sentence
        if not is_here(model):
            return (
                f"the weights of {model_name(model)} are not on this machine (the heads {heads.name} read them). Get them: {remedy(model)}"
            )
        return ""


def load_controller(
    workspace: Workspace,
    profile: str | Profile = "embedded",
    device: str = "auto",
    *,
    kind: Kind = "pamer",
    settings: ControllerSettings | None = None,
    heads: HeadSet | str | Path | None = None,
    probe: Probe | None = None,
    recorder: Recorder | None = None,
) -> PamerController:
    """The controller that a profile describes, for a live agent.

    `workspace`: keeps memories, hidden states and PaMER+'s selections.
    `profile`: a profile, its name or TOML file, or `hf:ID`; `embedded` is the model that installs with PaMER Lab.
    `device`: `auto`, `cpu` or `cuda`.
    `kind`: `pamer` recalls summaries, `pamer+` restores single steps.
    `settings`: budgets, vote and limits; None takes the profile's.
    `heads`: heads, the name of registered ones or their folder; None takes the profile's, else those that fit its model.
    `probe`: votes instead of model and heads.
    `recorder`: gets PaMER+'s selections; None writes them to the workspace's audit.
    """
    named = profile if isinstance(profile, Profile) else load_profile(profile)
    if isinstance(heads, HeadSet):
        model = _model(parts_key(named), device)
        probe, heads = HeadsProbe(model, heads, FeatureStore(workspace.database, model)), None
    factory = Factory(named, workspace, device, str(heads or ""), Parts(probe=probe))
    chosen, plus = settings or factory.settings, kind == "pamer+"
    recorder = recorder or LiveRecorder(workspace.database)
    return PamerController(
        factory.memory,
        factory.embedder,
        factory.summariser_for(chosen),
        factory.probe,
        factory.tokens,
        chosen,
        recaller=factory.recaller(chosen, factory.memory, recorder) if plus else None,
        details=factory.detail_writer(chosen) if plus else None,
    )


def parts_key(profile: Profile) -> str:
    """A profile as the cache key of its parts: without the settings that no part depends on."""
    unused = {"name": "", "memory_uri": "", "heads": "", "probe_system_prompt": "", "training": TrainingSettings()}
    return profile.model_copy(update=unused).model_dump_json()


@lru_cache(maxsize=2)
def _model(profile: str, device: str) -> FrozenModel:
    return load_frozen(Profile.model_validate_json(profile), device)


@lru_cache(maxsize=2)
def _chat(profile: str, device: str) -> Chat | None:
    named = Profile.model_validate_json(profile)
    return load_chat(named, _model(profile, device) if named.chat.kind == "local" else None)


@lru_cache(maxsize=2)
def _embedder(profile: str, device: str) -> Embedder:
    return load_embedder(Profile.model_validate_json(profile), device)


@lru_cache(maxsize=4)
def _kept_embedder(profile: str, device: str, database: str) -> Embedder:
    return KeptEmbeddings(_embedder(profile, device), Database(database))


@lru_cache(maxsize=4)
def _summariser(profile: str, device: str, tokens: MessageTokens, settings: ControllerSettings) -> Summariser:
    limits = {"max_tokens": settings.summary_tokens, "source_characters": settings.summary_source_characters}
    chat = _chat(profile, device)
    if chat is None:
        return CachedSummariser(ExtractiveSummariser(tokens.counter, **limits))
    return CachedSummariser(LlmSummariser(chat, retries=settings.summary_retries, **limits))


@lru_cache(maxsize=8)
def _memory(uri: str) -> MemoryStore:
    return MemoryStore(Database(uri))


@lru_cache(maxsize=4)
def _probe(profile: str, device: str, heads: str, written: int, database: str) -> Probe:
    """`written`: when the heads were saved, so that heads retrained under the same name are read again."""
    model = _model(profile, device)
    return HeadsProbe(model, HeadSet.load(heads), FeatureStore(Database(database), model))
