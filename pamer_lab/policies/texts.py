"""Texts that policies put into a request, and what writing them took."""

from collections.abc import Sequence

from pamer_lab.blocks import MessageTokens
from pamer_lab.decisions import Item, ItemKind, Span, Spent
from pamer_lab.memory.summary import SourceBlock, Summary, within_budget
from pamer_lab.policies.interface import Resources
from pamer_lab.trajectory.values import Message, Role


def add_text(kind: ItemKind, text: str, spans: tuple[Span, ...], tokens: MessageTokens, *, source: str = "", role: Role = "user") -> Item:
    """An item for a message that the trace does not hold, counted as the model would read it."""
    return Item(kind, tokens.total([Message(role, text)]), spans, source, text, role)


def summary_spent(summary: Summary, blocks: Sequence[SourceBlock], resources: Resources) -> Spent:
    """Tokens of a summary: as its model reported them, or what a rule read (within the source budget) and wrote."""
    name = resources.summariser.name
    if summary.usage.calls:
        return Spent.of("summary", name, summary.usage)
    read = sum(resources.tokens.total(block.messages) for block in within_budget(blocks))
    return Spent("summary", read, resources.tokens.counter.count([summary.text])[0], name, local=True)
