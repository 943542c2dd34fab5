"""Texts that policies put into a request, and the task they are written for."""

from pamer_lab.blocks import MessageTokens
from pamer_lab.policies.values import History, Item, ItemKind, Span
from pamer_lab.trajectory.values import Message, Role


def add_text(
    kind: ItemKind, text: str, spans: tuple[Span, ...], tokens: MessageTokens, *, source: str = "", role: Role = "user"
) -> Item:
    """An item for a message that the trace does not hold, counted as the model would read it."""
    return Item(kind, tokens.total([Message(role, text)]), spans, source, text, role)


def task_text(history: History) -> str:
    """What the agent was asked: the user messages of the prefix, or the whole prefix where there are none."""
    prefix = history.messages[: history.prefix_end]
    asked = [message.content for message in prefix if message.role == "user"] or [message.content for message in prefix]
    return "\n\n".join(asked)
