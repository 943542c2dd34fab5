"""The conservation ledger: at every turn, every earlier block is in exactly one state, and every token is accounted for.

`Ledger.follow` recounts a decision from its items and refuses one that does not add up, so a wrong picture is never stored. The states
it finds are `decisions.letters`. The start that a request shares with the previous one is counted once, so a turn costs what it changes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pamer_lab.blocks import TokenCounter
from pamer_lab.decisions import Decision, Item, Span, blocks_of, shared_start
from pamer_lab.errors import LabError
from pamer_lab.policies.interface import History
from pamer_lab.runs.prefix_cache import cached_tokens


class LedgerError(LabError):
    """Raised when a policy's decision does not account for every block and token; the run stops there."""


OVER: dict[str, tuple[bytes, bytes]] = {"summary": (b".", b"S"), "recalled": (b".S", b"RR"), "evidence": (b".SR", b"XXX")}
"""Kind of an added text -> the states of blocks that it replaces, and what they become."""
OVER_STATES = {kind: bytes.maketrans(before, after) for kind, (before, after) in OVER.items()}


@dataclass
class _Counted:
    """The first items of a request, checked and counted."""

    items: int = 0
    tokens: int = 0
    laid: bytearray = field(default_factory=bytearray)
    """States of the blocks so far by raw and edited items alone."""
    texts: list[Item] = field(default_factory=list)
    """Items among them whose added text replaces blocks."""

    def copy(self) -> "_Counted":
        return _Counted(self.items, self.tokens, self.laid[:], self.texts[:])

    def add(self, items: Sequence[Item], history: History) -> None:
        """Count more items, or refuse them."""
        t = history.t
        for item in items:
            if item.kind in ("blocks", "edited"):
                self._lay(item, history)
            elif item.spans or item.in_part:
                for first, last in item.spans:
                    if not 0 <= first < last <= t:
                        raise LedgerError(f"turn {t}: a {item.kind} item replaces blocks {item.spans}, and only {t} exist")
                if item.in_part and not set(item.in_part) <= (set(blocks_of(item.spans)) if item.kind == "evidence" else set()):
                    raise LedgerError(f"turn {t}: a {item.kind} item restores blocks {item.in_part} in part, and replaces {item.spans}")
                if item.text and item.kind in OVER:
                    self.texts.append(item)
        self.items += len(items)
        self.tokens += sum([item.tokens for item in items])

    def _lay(self, item: Item, history: History) -> None:
        (span,) = item.spans
        (first, last), t = span, history.t
        if not len(self.laid) <= first < last <= t:
            raise LedgerError(f"turn {t}: blocks {first}..{last - 1} are out of order, doubled or unknown (before block {t})")
        if item.kind == "edited" and (last != first + 1 or not item.text):
            raise LedgerError(f"turn {t}: an edited item is one block with its text; this one has blocks {first}..{last - 1}")
        if item.kind == "blocks" and item.tokens != history.tokens([span]):
            raise LedgerError(f"turn {t}: blocks {first}..{last - 1} count {history.tokens([span])} tokens, the item says {item.tokens}")
        self.laid += b"." * (first - len(self.laid)) + (b"A" if item.kind == "blocks" else b"S") * (last - first)

    def states(self, stored: Iterable[Span], t: int) -> str:
        """One letter per block, as `decisions.letters` has them."""
        found = self.laid.ljust(t, b".")
        spans: dict[str, list[Span]] = {kind: [] for kind in OVER} | {"summary": [*stored]}
        for item in self.texts:
            spans[item.kind] += item.spans
        for kind, table in OVER_STATES.items():
            for first, last in spans[kind]:
                if last - first == 1:  # by far the most of them
                    found[first] = table[found[first]]
                else:
                    found[first:last] = found[first:last].translate(table)
        return found.decode()


class Ledger:
    """The decisions of one run in their order."""

    def __init__(self, previous: Sequence[Item] = ()) -> None:
        self._previous = previous
        self._start = _Counted()
        """What the last two requests both start with."""

    def follow(self, decision: Decision, history: History, counter: TokenCounter) -> tuple[int, int, str]:
        """A request's tokens, those of the start it shares with the previous one, and its blocks' states; refused if it does not add up."""
        items, previous = decision.items, self._previous
        same = shared_start(previous, items)
        if same < self._start.items:
            self._start = _Counted()
        self._start.add(items[self._start.items : same], history)
        counted = self._start.copy()
        counted.add(items[same:], history)
        check_ends(decision, history, counted.tokens)
        self._previous = items
        cached = self._start.tokens + cached_tokens(previous[same:], items[same:], history.cumulative, counter)
        return counted.tokens, cached, counted.states(decision.stored, history.t)


def check_ends(decision: Decision, history: History, tokens: int) -> None:
    """Refuse a request without its start, and a fallback that changed something."""
    head = history.head()
    if list(decision.items[: len(head)]) != head:
        raise LedgerError(f"turn {history.t}: the context does not start with the tools and the prefix")
    if decision.action == "fallback" and tokens != history.raw_tokens:
        raise LedgerError(f"turn {history.t}: a fallback must return the request unchanged")


def check(decision: Decision, history: History) -> None:
    """Refuse a decision whose blocks or tokens do not add up."""
    counted = _Counted()
    counted.add(decision.items, history)
    check_ends(decision, history, counted.tokens)


def expand(items: Iterable[Item], block_tokens: list[int]) -> list[dict[str, object]]:
    """Items for display: raw blocks one by one, each with its number and tokens; the sum stays the same."""
    rows: list[dict[str, object]] = []
    for item in items:
        if item.kind == "blocks":
            rows += [{"kind": "block", "source": f"block {n}", "blocks": [n], "tokens": block_tokens[n]} for n in range(*item.spans[0])]
            continue
        source = item.source or item.kind
        covered = [number for first, last in item.spans for number in range(first, last)]
        row: dict[str, object] = {"kind": item.kind, "source": source, "blocks": covered, "tokens": item.tokens}
        row |= {"restored_in_part": list(item.in_part)} if item.in_part else {}
        rows.append(row | ({"role": item.role, "text": item.text} if item.text else {}))
    return rows
