"""The seam between replay and a policy: start a session for a trace, then answer turn after turn.

A policy is one class in one file with three texts (`description`, `parameters`, `deviations`); the registry finds it
by name. What always holds: a session is told of every turn once, in order, and after `resume` it answers exactly as if
it had given the earlier answers itself.
"""

from collections.abc import Sequence
from typing import Protocol

from pamer_lab.blocks import MessageTokens
from pamer_lab.memory.summary import Summariser
from pamer_lab.policies.values import Answer, History
from pamer_lab.workspace import Workspace


class Resources(Protocol):
    """What a policy may use beside the history; models are loaded on first use."""

    workspace: Workspace
    tokens: MessageTokens
    session_id: str
    """The session that memory is kept under: the run's id."""
    profile: str
    device: str

    @property
    def summariser(self) -> Summariser:
        """Writes summaries; the profile decides which."""


class PolicySession(Protocol):
    """A policy at work on one trace."""

    def turn(self, history: History) -> Answer: ...

    def resume(self, answers: Sequence[Answer]) -> None:
        """Take up the state after these answers; anything stored beyond them is forgotten."""


class Policy(Protocol):
    """One way to manage context, with its parameters set."""

    @property
    def name(self) -> str:
        """Name and parameters in their one canonical form, such as `sliding-window:5`."""

    @property
    def settings(self) -> dict[str, object]:
        """Every setting that changes an answer; part of the run's identity."""

    def start(self, resources: Resources) -> PolicySession: ...
