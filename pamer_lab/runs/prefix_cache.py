"""How much of a request a provider's prefix cache could serve: its longest common prefix with the previous request.

Rewriting early history breaks this prefix, which is why fewer tokens can cost more. Raw parts are compared by what they
are, added texts character by character; nothing about a provider's cache lifetime or block size is assumed.
"""

from collections.abc import Sequence

from pamer_lab.blocks import TokenCounter
from pamer_lab.blocks.render import render_message
from pamer_lab.bounded import Bounded
from pamer_lab.decisions import Item
from pamer_lab.trajectory.values import Message

STARTS_KEPT = 256
_STARTS: Bounded[tuple[str, str], int] = Bounded(STARTS_KEPT)
"""Tokens of common starts, by tokenizer and text."""


def cached_tokens(previous: Sequence[Item], current: Sequence[Item], cumulative: Sequence[int], counter: TokenCounter) -> int:
    """Tokens at the start of `current` that `previous` starts with too."""
    shared = 0
    for before, now in zip(previous, current, strict=False):
        if before is now or before == now:
            shared += now.tokens
            continue
        if before.kind == now.kind == "blocks" and before.spans[0][0] == now.spans[0][0]:
            first, last = now.spans[0][0], min(before.spans[0][1], now.spans[0][1])
            return shared + cumulative[last] - cumulative[first]
        if before.text and now.text:
            return shared + min(_counted(counter, common_start(rendered(before), rendered(now))), before.tokens, now.tokens)
        return shared
    return shared


def rendered(item: Item) -> str:
    """An added text as the model reads it."""
    return render_message(Message(item.role, item.text))


def _counted(counter: TokenCounter, text: str) -> int:
    """Tokens of a common start; recalled texts change one by one, so the same starts come again."""
    return _STARTS.one((counter.name, text), lambda: counter.count([text])[0])


def common_start(one: str, other: str) -> str:
    """The text both start with."""
    same, most = 0, min(len(one), len(other))
    while same < most:  # the first half of what is left is equal, or the difference is in it
        step = (most - same + 1) // 2
        if one[same : same + step] == other[same : same + step]:
            same += step
        elif step == 1:
            break
        else:
            most = same + step
    return one[:same]
