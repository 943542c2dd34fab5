"""A profile -> a working controller: the one place that picks parts.

What always holds: with the embedded profile nothing is fetched and no language model is asked; the store is opened once, here.
"""

from pathlib import Path
from typing import Literal

from pamer_lab.blocks import MessageTokens, TokenCounter
from pamer_lab.controller.heads_probe import HeadsProbe
from pamer_lab.controller.pamer import PamerController
from pamer_lab.controller.pamer_plus import StepRecaller, archived_messages
from pamer_lab.controller.probe import Probe
from pamer_lab.controller.recall import Recaller
from pamer_lab.controller.recall_agent import RecallAgent
from pamer_lab.controller.recall_agent_llm import LlmRecallAgent
from pamer_lab.controller.recall_agent_quote import QuotingAgent
from pamer_lab.controller.router import Router
from pamer_lab.controller.router_embedded import EmbeddedRouter
from pamer_lab.controller.router_llm import LlmRouter
from pamer_lab.controller.router_sources import ArchiveSource, RouterKind
from pamer_lab.controller.selection_record import Recorder
from pamer_lab.controller.settings import ControllerSettings
from pamer_lab.features.store import FeatureStore
from pamer_lab.memory import Memories, MemoryStore, Summariser
from pamer_lab.memory.extractive import ExtractiveSummariser
from pamer_lab.memory.llm_summary import LlmSummariser
from pamer_lab.models.chat import Chat, load_chat
from pamer_lab.models.embedder import Embedder, load_embedder
from pamer_lab.models.frozen import FrozenModel, load_frozen
from pamer_lab.models.profiles import Profile, load_profile
from pamer_lab.models.tokenizer import embedded_counter
from pamer_lab.probes.artefact import HeadSet, load_shipped
from pamer_lab.storage import Database
from pamer_lab.workspace import Workspace

Kind = Literal["pamer", "pamer+"]
"""`pamer`: recalls whole summaries. `pamer+`: restores only the steps that are needed."""


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
    """The controller a profile describes, with the heads that come with the package unless others are named."""
    named = profile if isinstance(profile, Profile) else load_profile(profile)
    settings = settings or ControllerSettings.of_profile(named)
    named = _with_settings(named, settings)
    model = load_frozen(named, device) if probe is None or named.chat.kind == "local" else None
    store = MemoryStore(Database(named.memory_uri) if named.memory_uri else workspace.database)
    embedder = load_embedder(named, device)
    chat = load_chat(named, model)
    tokens = MessageTokens(embedded_counter())
    if probe is None and model is not None:
        probe = heads_probe(model, heads, workspace)
    assert probe is not None
    summariser = load_summariser(chat, tokens.counter, settings)
    recaller = step_recaller(store, embedder, chat, tokens, settings, recorder) if kind == "pamer+" else None
    return PamerController(store, embedder, summariser, probe, tokens, settings, recaller=recaller)


def heads_probe(model: FrozenModel, heads: HeadSet | str | Path | None, workspace: Workspace) -> HeadsProbe:
    """The trained heads on their model, with features kept in the workspace."""
    chosen = heads if isinstance(heads, HeadSet) else HeadSet.load(heads) if heads is not None else load_shipped(model.name)
    return HeadsProbe(model, chosen, FeatureStore(workspace.database, model))


def load_summariser(chat: Chat | None, counter: TokenCounter, settings: ControllerSettings) -> Summariser:
    """The chat model's summaries where there is one, else extractive ones."""
    limits = {"max_tokens": settings.summary_tokens, "source_characters": settings.summary_source_characters}
    return LlmSummariser(chat, **limits) if chat else ExtractiveSummariser(counter, **limits)


def step_recaller(
    store: Memories,
    embedder: Embedder,
    chat: Chat | None,
    tokens: MessageTokens,
    settings: ControllerSettings,
    recorder: Recorder | None,
    router_kind: RouterKind = "index",
) -> Recaller:
    """PaMER+'s recaller: with a chat model its router and agent, else the deterministic ones; a router over the archive has no model."""
    router: Router = LlmRouter(chat) if chat else EmbeddedRouter(embedder)
    if router_kind == "archive":
        router = EmbeddedRouter(embedder, ArchiveSource(lambda blocks: archived_messages(store, blocks)))
    agent: RecallAgent = LlmRecallAgent(chat) if chat else QuotingAgent(tokens.counter, max_tokens=settings.evidence_tokens)
    return StepRecaller(store, router, agent, tokens.counter, query_characters=settings.query_characters, recorder=recorder)


def _with_settings(profile: Profile, settings: ControllerSettings) -> Profile:
    """The profile with the limits that the settings name."""
    return profile.model_copy(
        update={
            "probe_limit": settings.probe_input_tokens,
            "prefix_kept": settings.prefix_kept_tokens,
            "output_reserve": settings.output_reserve_tokens,
            "chat": profile.chat.model_copy(
                update={"timeout_seconds": settings.summary_timeout_seconds, "attempts": settings.summary_attempts}
            ),
            "embedding": profile.embedding.model_copy(
                update={"timeout_seconds": settings.embedding_timeout_seconds, "attempts": settings.embedding_attempts}
            ),
        }
    )
