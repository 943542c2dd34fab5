"""An engine's worker for extraction: computes the missing states of one conversation and writes them to the workspace's store."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from pamer_lab.errors import LabError, StorageError
from pamer_lab.features.contexts import Context
from pamer_lab.features.serialise import Hint
from pamer_lab.features.values import Request
from pamer_lab.jobs import Progress
from pamer_lab.models.frozen import FrozenModel, load_frozen
from pamer_lab.models.profiles import Profile
from pamer_lab.trajectory.recorded import Recorded
from pamer_lab.trajectory.values import Message, Tool


class Part(msgspec.Struct, frozen=True):
    """A request without its conversation."""

    points: tuple[int, ...] | None
    context: Context
    hint: Hint
    name: str
    active_tokens: int | None
    probe_prompt: str
    recorded: Recorded | None


class Job(msgspec.Struct, frozen=True):
    """One conversation, and the requests over it."""

    workspace: str
    profile: str
    """The profile as JSON."""
    device: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    parts: tuple[Part, ...]
    layers: tuple[str, ...]
    poolings: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.parts[0].name


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a worker reports to its parent."""

    tokens: int = 0
    """Tokens that went through the model since the last note."""
    error: str = ""
    """Why the conversation cannot be read at all."""
    finished: bool = False
    again: str = ""


@lru_cache(maxsize=2)
def _model(profile: str, device: str) -> FrozenModel:
    return load_frozen(Profile.model_validate_json(profile), device)


def work(job: Job, tell: Callable[[Note], Any]) -> None:
    """Compute and store what is missing of one conversation."""
    from pamer_lab.features.extract import extract
    from pamer_lab.features.store import FeatureStore
    from pamer_lab.workspace import Workspace

    told = 0

    def watch(progress: Progress) -> None:
        nonlocal told
        tell(Note(progress.done - told))
        told = progress.done

    requests = [
        Request(
            job.messages, job.tools, part.points, part.context, part.hint, part.name, part.active_tokens, part.probe_prompt, part.recorded
        )
        for part in job.parts
    ]
    try:
        model = _model(job.profile, job.device)
        store = FeatureStore(Workspace(job.workspace).database, model)
        found = extract(requests, model, layers=job.layers, poolings=job.poolings, store=store, progress=watch)
    except StorageError as error:
        tell(Note(again=str(error)))
        return
    except LabError as error:
        tell(Note(error=str(error), finished=True))
        return
    tell(Note(found.tokens_computed - told, finished=True))
