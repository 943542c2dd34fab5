"""The conservation ledger: at every turn, every earlier block is in exactly one state.

A block is `active` when it stands in the request word for word; `restored` when memory put its raw text back as evidence,
complete or in part (then the item names the block in `in_part`);
`recalled` when a summary that covers it was fetched from memory into the request; `summarised` when a summary covers it, in
the request by rule or kept in memory; `absent` when nothing does. The first that applies, in this order, is its state.
`check` recounts an answer from its items and refuses one that does not add up, so a wrong picture is never stored.
"""

from collections.abc import Iterable
from typing import Literal

from pamer_lab.errors import LabError
from pamer_lab.policies.values import Answer, History, Item, Span, blocks_of

BlockState = Literal["active", "summarised", "recalled", "restored", "absent"]

LETTERS: dict[str, BlockState] = {"A": "active", "S": "summarised", "R": "recalled", "X": "restored", ".": "absent"}
"""States are stored as one letter per block."""


class LedgerError(LabError):
    """Raised when a policy's answer does not account for every block and token; the run stops there."""


def letters(answer: Answer, t: int) -> str:
    """One letter for each of the `t` earlier blocks."""
    states = bytearray(b"." * t)
    texts = [item for item in answer.items if item.text]
    for letter, spans in (
        (b"S", answer.stored),
        (b"S", _spans(texts, "summary")),
        (b"R", _spans(texts, "recalled")),
        (b"X", _spans(texts, "evidence")),
        (b"A", _spans(answer.items, "blocks")),
    ):
        for first, last in spans:
            states[first:last] = letter * (last - first)
    return states.decode()


def block_states(text: str) -> list[BlockState]:
    """Stored letters as words."""
    return [LETTERS[letter] for letter in text]


def check(answer: Answer, history: History) -> None:
    """Refuse an answer whose blocks or tokens do not add up."""
    t, place = history.t, 0
    for item in answer.items:
        if item.kind != "blocks":
            if any(not 0 <= first < last <= t for first, last in item.spans):
                raise LedgerError(f"turn {t}: a {item.kind} item stands for blocks {item.spans}, and only {t} exist")
            if not set(item.in_part) <= (set(blocks_of(item.spans)) if item.kind == "evidence" else set()):
                raise LedgerError(f"turn {t}: a {item.kind} item restores blocks {item.in_part} in part, and stands for {item.spans}")
            continue
        (span,) = item.spans
        first, last = span
        if not place <= first < last <= t:
            raise LedgerError(f"turn {t}: blocks {first}..{last - 1} are out of order, doubled or unknown (before block {t})")
        if item.tokens != history.tokens([span]):
            raise LedgerError(f"turn {t}: blocks {first}..{last - 1} count {history.tokens([span])} tokens, the item says {item.tokens}")
        place = last
    head = history.head()
    if list(answer.items[: len(head)]) != head:
        raise LedgerError(f"turn {t}: the context does not start with the tools and the prefix")
    if answer.action == "fallback" and answer.tokens != history.raw_tokens:
        raise LedgerError(f"turn {t}: a fallback must return the request as it came")


def expand(items: Iterable[Item], block_tokens: list[int]) -> list[dict[str, object]]:
    """Items for people: raw blocks one by one, each with its number and tokens; the sum stays the same."""
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


def _spans(items: Iterable[Item], kind: str) -> list[Span]:
    return [span for item in items if item.kind == kind for span in item.spans]
