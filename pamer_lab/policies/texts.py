"""Texts that policies put into a request, and what writing them took."""

from collections.abc import Sequence

from pamer_lab.blocks import MessageTokens
from pamer_lab.memory.source import within_budget
from pamer_lab.memory.summary import SourceBlock, Summary
from pamer_lab.models.usage import ChatUsage
from pamer_lab.policies.interface import Resources
from pamer_lab.policies.values import Item, ItemKind, Span, Spent
from pamer_lab.trajectory.values import Message, Role


def add_text(kind: ItemKind, text: str, spans: tuple[Span, ...], tokens: MessageTokens, *, source: str = "", role: Role = "user") -> Item:
    """An item for a message that the trace does not hold, counted as the model would read it."""
    return Item(kind, tokens.total([Message(role, text)]), spans, source, text, role)


def called(operation: str, model: str, usage: ChatUsage) -> Spent:
    """What the calls of one operation took."""
    return Spent(operation, usage.input_tokens, usage.output_tokens, model, calls=usage.calls, unknown=usage.unknown)


def summary_spent(summary: Summary, blocks: Sequence[SourceBlock], resources: Resources) -> Spent:
    """Tokens of a summary: as its model reported them, or what a rule read (within the source budget) and wrote."""
    name = resources.summariser.name
    if summary.usage.calls:
        return called("summary", name, summary.usage)
    read = sum(resources.tokens.total(block.messages) for block in within_budget(blocks))
    return Spent("summary", read, resources.tokens.counter.count([summary.text])[0], name, local=True)
