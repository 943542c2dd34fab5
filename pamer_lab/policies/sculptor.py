"""`sculptor`: an editor next to the agent summarises, hides and restores fragments of the context, as Sculptor's tools let the agent do.

Invariant: an operation applies only to a known, complete step that is not among the newest, and an edit must make the step shorter;
everything hidden or summarised can be restored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pamer_lab.blocks.marks import break_template_tokens
from pamer_lab.counts import counted
from pamer_lab.decisions import Action, Decision, Item, Spent
from pamer_lab.errors import LabError
from pamer_lab.looks import LineLook
from pamer_lab.models.usage import usage_of
from pamer_lab.policies.interface import Fact, Family, History, Need, PolicySession, Resources
from pamer_lab.policies.plain import PlainPolicy, Shortened, arranged
from pamer_lab.policies.step_editor import editing_prompt, operations_schema

Operation = Literal["hide", "summary", "restore"]
"""`hide`: a mark replaces the results of a step. `summary`: the editor's summary replaces them. `restore`: the step is shown as it was."""
HEAD_CHARACTERS = 200
SUMMARY_CHARACTERS = 1_200
"""Maximum number of characters kept of one summary."""


@dataclass(frozen=True)
class Sculptor(PlainPolicy):
    """The profile's chat model is the editor."""

    title: ClassVar[str] = "sculptor"
    description: ClassVar[str] = (
        "a language model gets an index of the steps and hides, summarises or restores them; every edit is reversible"
    )
    sources: ClassVar[tuple[str, ...]] = ("Sculptor, arXiv 2508.04664 (tool code not published)",)
    facts: ClassVar[tuple[Fact, ...]] = (
        ("paper", "tools in three families: fragment the context; summarise, hide and restore, reversibly; exact search"),
        (
            "note",
            "one note lists eight tools (fragment_context, summary_fragment, revert_summary, ...); names and limits are from such notes",
        ),
        ("note", "the author's later skill edits a call and its result together and aims at 30 to 50 % less"),
        ("inferred", "fragments are blocks; there is no fixed trigger, so the editor is asked every few blocks"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "a separate model is prompted to edit; in the original the acting model, prompted or trained, calls the tools",
        "exact search over the context is called by the agent and is not replayed",
    )
    family: ClassVar[Family] = "method"
    needs: ClassVar[tuple[Need, ...]] = ("chat",)
    look: ClassVar[LineLook] = LineLook("vermilion", "longdash")

    every: int = field(default=5, metadata={"least": 1})
    """Number of new blocks after which the editor is asked."""
    keep: int = field(default=2, metadata={"least": 1})
    """Number of newest blocks that are never edited."""
    target: float = field(default=0.4, metadata={"least": 0.05, "most": 0.95})
    """Share of the steps' tokens that the editor is asked to remove."""

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources)


class _Session:
    def __init__(self, policy: Sculptor, resources: Resources) -> None:
        self.policy, self.resources = policy, resources
        self.shortened = Shortened(resources.tokens)
        self.edited: dict[int, Item] = {}
        """Steps that are currently hidden or summarised."""

    def turn(self, history: History) -> Decision:
        before = self._items(history)
        if history.t == 0 or history.t % self.policy.every or history.t <= self.policy.keep:
            return Decision("pass", f"the editor is asked every {counted(self.policy.every, 'block')}", before)
        chat = self.resources.chat
        try:
            answer = chat.complete(self._prompt(history), max_tokens=2_048, schema=SCHEMA)
        except LabError as error:
            usage = usage_of(error)
            cost = (Spent.of("router", chat.name, usage),) if usage.calls else ()
            return Decision("pass", "the editor failed; nothing changes", before, error=str(error), spent=cost)
        spent = (Spent.of("router", chat.name, answer.usage),)
        edits, restored = self._valid(history, answer.data()["operations"])
        if not edits and not restored:
            return Decision("pass", "the editor names no step that can be edited", before, spent=spent)
        self.edited = {block: item for block, item in (self.edited | edits).items() if block not in restored}
        action: Action = "compress" if edits else "recall"
        reason = f"the editor shortens {counted(len(edits), 'step')} and restores {len(restored)}"
        done = tuple(restored) if not edits else ()
        return Decision(action, reason, self._items(history), restored_steps=done, spent=spent)

    def _valid(self, history: History, operations: Sequence[Mapping[str, Any]]) -> tuple[dict[int, Item], list[int]]:
        """Edits that shorten known, complete, older steps, and edited steps to restore; only the first operation on a step counts."""
        edits: dict[int, Item] = {}
        restored: set[int] = set()
        for entry in operations:
            block, operation = int(entry["step"]), entry["operation"]
            known = 0 <= block < history.t - self.policy.keep and block not in edits and block not in restored
            if not known or not history.blocks[block].complete:
                continue
            if operation == "restore":
                restored |= {block} & {*self.edited}
            elif block not in self.edited and (item := self._item(history, block, operation, str(entry.get("summary", "")))):
                edits[block] = item
        return edits, sorted(restored)

    def _item(self, history: History, block: int, operation: Operation, summary: str) -> Item | None:
        said = " ".join(break_template_tokens(summary[:SUMMARY_CHARACTERS]).split())
        if operation == "summary" and not said:
            return None
        places = self.shortened.results.of(history, block)
        text = f"[Summary of step {block}] {said}" if operation == "summary" else f"[Step {block} is hidden and can be restored]"
        texts = {place: text if number == 0 else "[see above]" for number, place in enumerate(places)}
        return self.shortened.block(history, block, f"{operation} at turn {history.t}", texts) if texts else None

    def _prompt(self, history: History) -> list[dict[str, str]]:
        def state(block: int) -> str:
            item = self.edited.get(block)
            return item.source.split()[0] if item else "full" if block < history.t - self.policy.keep else "protected"

        return editing_prompt(INSTRUCTION.format(target=f"{self.policy.target:.0%}"), history, state, HEAD_CHARACTERS)

    def _items(self, history: History) -> tuple[Item, ...]:
        return (*history.head(), *arranged(history, self.edited))

    def resume(self, decisions: Sequence[Decision]) -> None:
        kept = [item for item in decisions[-1].items if item.kind == "edited"] if decisions else []
        self.edited = {item.spans[0][0]: item for item in kept}


INSTRUCTION = (
    "You edit the context of an agent. Below are its task and an index of its steps with their size and beginning. Aim to remove about "
    "{target} of their tokens: hide steps that no longer matter, or replace a step by a summary that keeps every name, number and path the "
    "agent may need. A hidden or summarised step that is needed now: restore. Leave out steps that stay as they are. Answer with JSON only."
)
SCHEMA = operations_schema("hide", "summary", "restore", texts=("summary",))
