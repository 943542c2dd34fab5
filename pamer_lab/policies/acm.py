"""`acm`: the agent's own memory calls, replayed exactly: what `manage_context` archived leaves the context from the next turn on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pamer_lab.counts import counted
from pamer_lab.decisions import Decision, spans_of
from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Fact, Family, History, Need, PolicySession, Resources
from pamer_lab.policies.plain import PlainPolicy
from pamer_lab.trajectory.values import Message, Trace

CALL = "manage_context"


@dataclass(frozen=True)
class Acm(PlainPolicy):
    """Needs a trace whose agent called `manage_context`; any other trace is refused."""

    title: ClassVar[str] = "acm"
    description: ClassVar[str] = "the agent's recorded manage_context calls: each archives everything since the one before it"
    sources: ClassVar[tuple[str, ...]] = ("ACM, lixiaochuan2020/agentic-context-management, arXiv 2607.23809",)
    facts: ClassVar[tuple[Fact, ...]] = (
        ("code", "manage_context() archives the messages since the last successful call up to the calling message"),
        ("code", "its tool result is the summary with its id; system prompt, question and earlier summaries stay"),
        ("code", "query_memory(summary_id, query) answers from the archive; its result is an ordinary tool result"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "exact only if the trace has the calls with their results; the model that makes such calls has 9B weights, which are not used",
        "a failed call is recognised by its error mark or its empty result",
    )
    family: ClassVar[Family] = "method"
    needs: ClassVar[tuple[Need, ...]] = ("recorded calls",)
    look: ClassVar[LineLook] = LineLook("purple", "dot")
    acts_live: ClassVar[bool] = False

    def refuses(self, trace: Trace) -> str:
        if any(call.name == CALL for message in trace.messages for call in message.tool_calls):
            return ""
        return f"policy 'acm' replays recorded {CALL} calls, and trace {trace.trace_id} has none; choose another policy for it"

    def start(self, resources: Resources) -> PolicySession:
        return _Session()


class _Session:
    def __init__(self) -> None:
        self._archived: list[int] = []
        self._since: list[int] = []
        """Blocks after the last successful call."""
        self._done = 0

    def turn(self, history: History) -> Decision:
        before = 0
        for block in range(self._done, history.t):
            before = len(self._archived)
            if _archives(history.block_messages(block)):
                self._archived += self._since
                self._since = []
            else:
                self._since.append(block)
        self._done = history.t
        gone = set(self._archived)
        items = (*history.head(), *history.raw(spans_of(block for block in range(history.t) if block not in gone)))
        if self._done and len(self._archived) > before:
            reason = f"the agent called {CALL}: {counted(len(self._archived) - before, 'block')} left for the summary in its result"
            return Decision("compress", reason, items, stored=spans_of(self._archived))
        reason = f"archived by the agent's own calls: {counted(len(gone), 'block')}" if gone else f"the agent has not called {CALL} yet"
        return Decision("pass", reason, items, stored=spans_of(self._archived))

    def resume(self, decisions: Sequence[Decision]) -> None:
        """What is archived follows from the history."""


def _archives(messages: Sequence[Message]) -> bool:
    """Whether the block holds a call that succeeded."""
    calls = {call.id for call in messages[0].tool_calls if call.name == CALL}
    return any(message.tool_call_id in calls and message.content and not message.error for message in messages[1:])
