"""How much of a request a provider's prompt cache could serve: its longest common prefix with earlier requests.

Rewriting early history breaks this prefix, which is why fewer tokens can cost more. `cached_tokens` compares with the previous request
alone and knows no provider. `PrefixTree` keeps all requests as a provider's cache does, and forgets what was not used within a lifetime.
Raw parts are compared by their keys, and where two requests diverge, their texts character by character.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from operator import itemgetter

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
            return shared + min(counted_start(counter, common_start(rendered(before), rendered(now))), before.tokens, now.tokens)
        return shared
    return shared


def rendered(item: Item) -> str:
    """An added text as the model reads it; an edited block is rendered already."""
    return item.text if item.kind == "edited" else render_message(Message(item.role, item.text))


def counted_start(counter: TokenCounter, text: str) -> int:
    """Tokens of a common start; recalled texts change one by one, so the same starts recur."""
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


Key = tuple[str, int | str]
"""What a piece of a request is: `("block", 7)`, `("text", "user\\n...")`, `("prefix", 0)`."""


@dataclass(slots=True)
class _Node:
    """One piece of a request, after all pieces before it."""

    used: float | None = None
    """When a request last went through here."""
    children: "dict[Key, _Node]" = field(default_factory=dict)
    texts: list[tuple[str, Key]] = field(default_factory=list)
    """Texts of the children, sorted, so that the one with the longest common start is a neighbour."""


_text = itemgetter(0)


class PrefixTree:
    """The requests of one session as a prompt cache keeps them; each use of a prefix renews its lifetime."""

    def __init__(
        self,
        text_of: Callable[[Key], str],
        count: Callable[[str, str, int], int],
        *,
        lifetime: float,
    ) -> None:
        """`count`: tokens of a start of a text, given that start, the text and the text's tokens."""
        self._text_of, self._count, self._lifetime = text_of, count, lifetime
        self._root = _Node()

    def send(self, pieces: Sequence[tuple[Key, int]], at: float | None) -> int:
        """Tokens of the longest start that a request shares with earlier ones still cached at that time; then keeps the request.

        `at`: seconds on any clock; None if unknown: every earlier request counts as still cached.
        """
        node, shared, place = self._root, 0, 0
        for key, tokens in pieces:
            child = node.children.get(key)
            if child is None or not self._alive(child, at):
                break
            node, shared, place = child, shared + tokens, place + 1
        if place < len(pieces):
            shared += self._partly(node, pieces[place:], at)
        self._keep(pieces, at)
        return shared if self._lifetime else 0

    def _alive(self, node: _Node, at: float | None) -> bool:
        return at is None or node.used is None or at - node.used <= self._lifetime

    def _partly(self, node: _Node, pieces: Sequence[tuple[Key, int]], at: float | None) -> int:
        """Tokens of the longest start that these pieces share with what was sent in their place, across piece boundaries."""
        texts = [*takewhile(bool, (self._text_of(key) for key, _ in pieces))]
        left, shared = self._longest(node, "".join(texts), at), 0
        for text, (_, tokens) in zip(texts, pieces, strict=False):
            if left < len(text):
                return shared + (min(self._count(text[:left], text, tokens), tokens) if left else 0)
            shared, left = shared + tokens, left - len(text)
        return shared

    def _longest(self, node: _Node, text: str, at: float | None) -> int:
        """Characters of the longest start that a text shares with the texts below a node."""
        found, places = 0, [(node, 0)]
        while places:  # not recursive: a request has as many pieces as the trace has messages
            node, begin = places.pop()
            rest, texts = text[begin:], node.texts
            longest, middle = 0, bisect_left(texts, rest, key=_text)
            for order in (range(middle - 1, -1, -1), range(middle, len(texts))):
                for number in order:
                    other, name = texts[number]
                    if self._alive(node.children[name], at):
                        longest = max(longest, len(common_start(rest, other)))
                        break
            found = max(found, begin + longest)
            # A shorter piece that the text starts with: what was sent after it may continue as the text does.
            start = rest[:longest]
            while start and (number := bisect_right(texts, start, key=_text) - 1) >= 0:
                other = texts[number][0]
                start = common_start(rest, other)
                if len(start) == len(other):
                    same = texts[bisect_left(texts, other, key=_text) : number + 1]
                    behind = (node.children[name] for equal, name in same if equal == other)
                    places += [(child, begin + len(other)) for child in behind if self._alive(child, at)]
                    start = start[:-1]
        return found

    def _keep(self, pieces: Sequence[tuple[Key, int]], at: float | None) -> None:
        node = self._root
        for key, _ in pieces:
            child = node.children.get(key)
            if child is None:
                child = node.children[key] = _Node()
                if text := self._text_of(key):
                    insort(node.texts, (text, key))
            child.used = at
            node = child


def pieces_of(items: Sequence[Item], block_tokens: Sequence[int]) -> list[tuple[Key, int]]:
    """A request as the pieces a tree compares, raw blocks one by one."""
    pieces: list[tuple[Key, int]] = []
    for item in items:
        if item.kind == "blocks":
            pieces += [(("block", number), block_tokens[number]) for number in range(*item.spans[0])]
        elif item.text:
            pieces.append((("text", rendered(item)), item.tokens))
        else:
            pieces.append(((item.kind, 0), item.tokens))
    return pieces
