"""A decision and its history -> the messages that the model sees.

Invariant: messages whose content is unchanged are the history's own objects, in order; edited ones differ only in their content, so calls
keep their results; their tokens add up to the decision's, without the tools.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from pamer_lab.blocks.render import opening, render_message
from pamer_lab.decisions import Decision, Item
from pamer_lab.errors import LabError
from pamer_lab.policies.interface import History
from pamer_lab.trajectory.values import Message


class RebuildError(LabError):
    """Raised when an edited item does not fit its block: it was stored by an earlier version, or its text was changed since."""


def rebuilt(decision: Decision, history: History) -> list[Message]:
    """The messages of a decision's request; its tools are the history's."""
    found: list[Message] = []
    for item in decision.items:
        found += item_messages(item, history)
    return found


def item_messages(item: Item, history: History) -> Sequence[Message]:
    """The messages of one item."""
    match item.kind:
        case "tools":
            return ()
        case "prefix":
            return history.messages[: history.prefix_end]
        case "blocks":
            ((first, last),) = item.spans
            return history.messages[history.blocks[first].start : history.blocks[last - 1].end]
        case "edited":
            return edited_messages(item, history.block_messages(item.spans[0][0]))
        case _:
            return (Message(item.role, item.text),)


def edited_messages(item: Item, messages: Sequence[Message]) -> list[Message]:
    """The messages of a block with the contents that an edited item gives them."""
    lengths = dict(item.replaced)
    found: list[Message] = []
    place = 0
    for number, message in enumerate(messages):
        if number in lengths:
            start = place + len(opening(message))
            message = replace(message, content=item.text[start : start + lengths[number]])
        rendering = render_message(message)
        if not item.text.startswith(rendering, place):
            raise RebuildError(f"message {number} of block {item.spans[0][0]} cannot be rebuilt from its edited text ({item.source})")
        place += len(rendering)
        found.append(message)
    if place != len(item.text) or not lengths:
        raise RebuildError(f"block {item.spans[0][0]} cannot be rebuilt from its edited text ({item.source})")
    return found
