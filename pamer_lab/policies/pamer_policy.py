"""What the PaMER policies, and others with PaMER's memory, declare: parameters, needs and the parts of their controller.

`pamer_session` runs a trace under them.
"""

import logging
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from pydantic import ValidationError

from pamer_lab.blocks import recent_start
from pamer_lab.blocks.render import QUERY_CHARACTERS
from pamer_lab.controller import ControllerSettings
from pamer_lab.controller.gate import Gate
from pamer_lab.controller.probe import Probe, ReadingProbe
from pamer_lab.controller.recall import Recaller
from pamer_lab.controller.trigger import Moment, Trigger
from pamer_lab.decisions import Decision
from pamer_lab.errors import Cancelled, InputError
from pamer_lab.features.values import Cancel, OnProgress, Request
from pamer_lab.looks import LineLook
from pamer_lab.memory import DetailWriter
from pamer_lab.policies.interface import Coming, Family, Need, Offered, PolicySession, Resources
from pamer_lab.policies.pamer_session import PamerSession
from pamer_lab.prices import DEFAULT, PACKAGED_NAMES, find_prices

logger = logging.getLogger(__name__)

Inject = Literal["front", "append"]
"""`front`: between prefix and blocks. `append`: after the newest block."""
Recalls = Literal["summaries", "steps", ""]
"""What is recalled from memory: summaries, chosen raw steps, or nothing."""
SUMMARISED = 0.4
"""Approximate characters of all summaries, and of the queries they cause, per character of the history; 0.1 to 0.6 on the demo traces."""


class ControlledPolicy:
    """A policy around the controller with its memory and recall; a subclass adds the parameters and decides when to compress."""

    title: ClassVar[str]
    family: ClassVar[Family] = "pamer"
    acts_live: ClassVar[bool] = True
    recalls: ClassVar[Recalls] = "summaries"
    removes: ClassVar[bool] = True
    """Whether blocks that became a memory leave the context."""
    minimum: int
    retained: int

    @property
    def name(self) -> str:
        """The title and every parameter that differs from its default."""
        ordered = sorted(fields(self), key=lambda field: bool(field.kw_only))  # type: ignore[arg-type]
        given = ((field.name, field.default, getattr(self, field.name)) for field in ordered)
        return self.title + "".join(f":{key}={value}" for key, default, value in given if value != default)

    @property
    def injects(self) -> Inject:
        """Where recalled memory goes."""
        return "front"

    @property
    def asks_chat(self) -> bool:
        """Whether the chat model is asked before memory is searched."""
        return False

    @property
    def reads_drafts(self) -> bool:
        """Whether a probe reads drafts of the frozen model before memory is searched."""
        return False

    @property
    def reads_all(self) -> bool:
        """Whether logits are also read at turns where the controller does not ask for them."""
        return False

    def controller_settings(self, resources: Resources) -> ControllerSettings:
        raise NotImplementedError(type(self).__name__)

    def decider(self, resources: Resources) -> Probe | Trigger:
        """The probe or trigger that decides on compression."""
        raise NotImplementedError(type(self).__name__)

    def wanted(self, decision: Decision, moment: Moment) -> bool:
        """Whether compression was requested at a turn that has enough to compress."""
        raise NotImplementedError(type(self).__name__)

    def failed(self, decision: Decision, moment: Moment) -> bool:
        """Whether compression was requested at this turn and failed."""
        return decision.action == "fallback" and 0 < decision.candidate_tokens >= self.minimum and self.wanted(decision, moment)

    def price_gate(self) -> Gate | None:
        """The gate that tells whether an edit pays off; None: edits need not pay off."""
        return None

    def recaller(self, resources: Resources) -> Recaller | None:
        """Finds memory; None: the controller's own top summaries."""
        return None

    def details(self, resources: Resources) -> DetailWriter | None:
        """Writes step details; None: the summariser's own rule-based details."""
        return None

    @property
    def returned(self) -> Recalls:
        """What is recalled with these parameters."""
        return self.recalls

    @property
    def moments(self) -> str:
        """Identifies the turns at which it compresses: policies with the same value write the same summaries."""
        raise NotImplementedError(type(self).__name__)

    def embeds(self, task: float, block: float) -> dict[str, float]:
        written = {f"summaries of {self.retained}, {self.minimum}, {self.moments}": SUMMARISED * block}
        match self.returned:
            case "summaries":
                return written | {f"queries of {self.retained}": min(task + self.retained * block, QUERY_CHARACTERS)}
            case "steps":  # the newest block, and the index entry of one that left
                return written | {"steps": 2.1 * block}
            case "":
                return written

    def start(self, resources: Resources) -> PolicySession:
        return PamerSession(self, resources)


@dataclass(frozen=True)
class PamerPolicy(ControlledPolicy):
    """Parameters of all PaMER policies; the defaults are the paper's."""

    needs_models: ClassVar[bool] = True
    needs: ClassVar[tuple[Need, ...]] = ("heads", "embedder", "summariser")
    look: ClassVar[LineLook] = LineLook("purple", "longdash", width=2.5)
    offered: ClassVar[Offered] = "also"

    vote: int = field(default=3, metadata={"least": 1})
    """Number of heads, of five, that must vote for compression."""
    minimum: int = 1024
    """Minimum size of a compression candidate in tokens."""
    retained: int = 2
    """Number of newest complete blocks that are never compressed."""
    top: int = field(default=3, metadata={"least": 1})
    """Maximum number of summaries recalled."""
    logits: str = field(default="all", metadata={"choices": ("all", "asked")})
    """When logits are computed: at every turn with an older block, or only when the controller asks for them."""
    heads: str = field(default="", kw_only=True)
    """Name of the heads that vote (`pamer-lab heads list`), regardless of the heads that the run is started with; empty: those heads."""

    @property
    def reads_all(self) -> bool:
        return self.logits == "all"

    def settings(self, resources: Resources) -> dict[str, Any]:
        controller = self.controller_settings(resources).model_dump(exclude={"inject"} if self.injects == "front" else None)
        rule: dict[str, Any] = {"retained": self.retained, "vote": self.vote, "minimum": self.minimum, "top": self.top}
        rule |= {"recalls": self.recalls, "compresses": True}
        # Only what differs from the paper's layout, so that runs with that layout keep their ids.
        rule |= {"inject": self.injects} if self.injects != "front" else {}
        rule |= {"gate": gate.as_settings()} if (gate := self.price_gate()) else {}
        voting = {key: value for key, value in resources.heads_identity().items() if key in ("sha256", "hint")}
        own = {"controller": controller, "rule": rule if self.removes else None, "logits": self.logits, "heads": voting}
        return own | resources.identity()

    def controller_settings(self, resources: Resources) -> ControllerSettings:
        given = resources.settings.model_dump()
        given |= {"vote": self.vote, "minimum_candidate_tokens": self.minimum, "retained_blocks": self.retained}
        try:
            return ControllerSettings(**given | {"top_k": self.top, "recall": bool(self.recalls), "inject": self.injects})
        except ValidationError as error:
            said = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
            raise InputError(f"policy {self.name!r}: {said}") from error

    def decider(self, resources: Resources) -> Probe:
        return resources.probe

    @property
    def moments(self) -> str:
        return f"{self.vote} votes {self.heads}"

    def wanted(self, decision: Decision, moment: Moment) -> bool:
        return sum(decision.votes) >= self.vote

    def read_ahead(self, coming: Coming, resources: Resources, progress: OnProgress | None, cancel: Cancel | None) -> None:
        """Compute the states of all turns at which the heads will be read, if those turns are known in advance (`logits=all`)."""
        probe = resources.probe
        if not self.reads_all or not isinstance(probe, ReadingProbe):
            return
        first = next((block.index for block in coming.blocks if block.complete), len(coming.blocks))
        points = [t for t in coming.points if first < recent_start(coming.blocks[:t], self.retained)]
        context = f"recent{self.retained}" if self.retained else "current"
        try:
            probe.read_ahead(Request(coming.messages, coming.tools, points, context), progress, cancel)
        except Cancelled:
            raise
        except Exception as error:  # each turn then computes its own state, and its decision says what went wrong
            logger.warning("states could not be read ahead: %s", error)


@dataclass(frozen=True)
class CachedPamerPolicy(PamerPolicy):
    """Options of `pamer` and `pamer+` for prompt caches; the defaults are the paper's."""

    inject: str = field(default="front", metadata={"choices": ("front", "append")})
    """Where recalled memory goes. `front`: between prefix and blocks, chosen again for every request. `append`: after the newest block,
    each memory or step only once until the next compression."""
    gate: str = field(default="heads", metadata={"choices": ("heads", "priced")})
    """What decides on compression. `heads`: the vote. `priced`: the vote, if the edit also pays off."""
    horizon: int = 20
    """For `gate=priced`: number of turns within which an edit must pay off."""
    prices: str = field(default=DEFAULT, metadata={"choices": PACKAGED_NAMES})
    """For `gate=priced`: the price table."""
    window: int = 128_000
    """For `gate=priced`: size of the model's context window in tokens; 0: unknown."""

    @property
    def injects(self) -> Inject:
        return "append" if self.inject == "append" else "front"

    def price_gate(self) -> Gate | None:
        if self.gate != "priced":
            return None
        return Gate.of(find_prices(self.prices), horizon=self.horizon, window=self.window, appended=self.injects == "append")
