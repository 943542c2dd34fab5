"""`clear-tool-uses:T`: over T tokens all tool results but the newest few are cleared, as in Anthropic's context editing."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pamer_lab.counts import counted
from pamer_lab.decisions import Decision, Item
from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Fact, Family, History, PolicySession, Resources
from pamer_lab.policies.plain import Arranged, PlainPolicy, Shortened, head_tokens

CLEARED = "cleared uses"
PLACEHOLDER = "[cleared]"


@dataclass(frozen=True)
class ClearToolUses(PlainPolicy):
    """Clears rarely, but many results at once, so that the prompt's new beginning stays cached in between."""

    title: ClassVar[str] = "clear-tool-uses"
    description: ClassVar[str] = "when the request passes T tokens, all tool results but the newest few become one word; calls stay"
    sources: ClassVar[tuple[str, ...]] = (
        "Anthropic API, context editing, clear_tool_uses_20250919",
        "langchain-ai/langchain, langchain/agents/middleware/context_editing.py, ClearToolUsesEdit",
    )
    facts: ClassVar[tuple[Fact, ...]] = (
        ("paper", "Anthropic's documentation: over the trigger of 100,000 tokens, all but the newest 3 tool results are cleared"),
        ("paper", "clear_at_least: if less than that could be cleared, nothing is, since clearing breaks the cached prefix"),
        ("code", "LangChain's defaults are the same (trigger 100,000, keep 3, clear_at_least 0); its placeholder is the one used here"),
        ("inferred", "cleared results stay cleared, and the trigger looks at the edited request"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "calls keep their arguments (clear_tool_inputs is off by default), and no tool is excluded",
        "LangChain stops clearing as soon as clear_at_least is reached; here, as in the API, everything but the newest uses is cleared",
        "in traces without tool messages the environment's user messages are the results",
    )
    family: ClassVar[Family] = "host"
    look: ClassVar[LineLook] = LineLook("sky", "dashdot")

    threshold: int = field(default=100_000, metadata={"least": 1})
    """Request size in tokens above which results are cleared."""
    keep: int = field(default=3, metadata={"least": 0})
    """Number of newest results to keep."""
    minimum: int = 0
    """Minimum number of tokens to clear each time (clear_at_least); if fewer could be cleared, nothing is. 0: no minimum."""

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources)


class _Session:
    def __init__(self, policy: ClearToolUses, resources: Resources) -> None:
        self.policy = policy
        self._arranged = Arranged()
        self._shortened = Shortened(resources.tokens)
        self._results: list[tuple[int, int]] = []
        """Block and place of every result, in order."""
        self._read = 0
        """Number of blocks whose results are listed."""
        self._items: dict[int, Item] = {}
        """Blocks with cleared results."""
        self._first = 0
        """Index of the first result of the newest cleared block; earlier results no longer change."""

    def turn(self, history: History) -> Decision:
        for block in range(self._read, history.t):
            self._results += [(block, place) for place in self._shortened.results.of(history, block)]
        self._read = history.t
        limit = self.policy.threshold
        resumed = self._arranged.edited < len(self._items)
        laid = self._arranged(history, self._items) if resumed else self._arranged.again(history)
        now = (*history.head(), *laid)
        size = head_tokens(history) + self._arranged.tokens
        if size <= limit:
            return Decision("pass", f"the request has {size:,} tokens, within {limit:,}", now)
        items = self._cleared(history)
        gone = sum(self._tokens(history, block) - item.tokens for block, item in items.items())
        if not gone or gone < self.policy.minimum:
            return Decision("pass", f"the request has {size:,} tokens, over {limit:,}, and only {gone:,} could be cleared", now)
        self._items |= items
        self._move_on()
        kept = counted(self.policy.keep, "newest result")
        reason = f"the request had {size:,} tokens, over {limit:,}: all but the {kept} are cleared, {gone:,} tokens"
        return Decision("pass", reason, (*history.head(), *self._arranged(history, self._items)))

    def _cleared(self, history: History) -> dict[int, Item]:
        """Blocks with all results but the newest cleared, if that changes them."""
        places: dict[int, list[int]] = {}
        for block, place in self._results[self._first : max(len(self._results) - self.policy.keep, 0)]:
            places.setdefault(block, []).append(place)
        found: dict[int, Item] = {}
        for block, cleared in places.items():
            if block in self._items and len(self._items[block].replaced) == len(cleared):
                continue
            edit = f"{CLEARED} ({', '.join(map(str, cleared))})"
            item = self._shortened.block(history, block, edit, dict.fromkeys(cleared, PLACEHOLDER))
            if item is not None:
                found[block] = item
        return found

    def _move_on(self) -> None:
        """Advance to the newest block with a cleared result, since more of its results may be cleared later."""
        last = len(self._results) - self.policy.keep - 1
        while last > 0 and self._results[last - 1][0] == self._results[last][0]:
            last -= 1
        self._first = last

    def _tokens(self, history: History, block: int) -> int:
        """Tokens of a block as it is now in the request."""
        return self._items[block].tokens if block in self._items else history.tokens([(block, block + 1)])

    def resume(self, decisions: Sequence[Decision]) -> None:
        last = decisions[-1].items if decisions else ()
        self._items = {item.spans[0][0]: item for item in last if item.kind == "edited"}
        self._first = 0
