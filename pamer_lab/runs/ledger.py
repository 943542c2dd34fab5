"""The conservation ledger: at every turn, every earlier block is in exactly one state, and every token is accounted for.

`check` recounts a decision from its items and refuses one that does not add up, so a wrong picture is never stored. The states
themselves are `decisions.letters`.
"""

from collections.abc import Iterable

from pamer_lab.decisions import Decision, Item, blocks_of
from pamer_lab.errors import LabError
from pamer_lab.policies.interface import History


class LedgerError(LabError):
    """Raised when a policy's decision does not account for every block and token; the run stops there."""


def check(decision: Decision, history: History) -> None:
    """Refuse a decision whose blocks or tokens do not add up."""
    t, place = history.t, 0
    for item in decision.items:
        if item.kind not in ("blocks", "edited"):
            if any(not 0 <= first < last <= t for first, last in item.spans):
                raise LedgerError(f"turn {t}: a {item.kind} item stands for blocks {item.spans}, and only {t} exist")
            if not set(item.in_part) <= (set(blocks_of(item.spans)) if item.kind == "evidence" else set()):
                raise LedgerError(f"turn {t}: a {item.kind} item restores blocks {item.in_part} in part, and stands for {item.spans}")
            continue
        (span,) = item.spans
        first, last = span
        if not place <= first < last <= t:
            raise LedgerError(f"turn {t}: blocks {first}..{last - 1} are out of order, doubled or unknown (before block {t})")
        if item.kind == "edited" and (last != first + 1 or not item.text):
            raise LedgerError(f"turn {t}: an edited item is one block with its text; this one has blocks {first}..{last - 1}")
        if item.kind == "blocks" and item.tokens != history.tokens([span]):
            raise LedgerError(f"turn {t}: blocks {first}..{last - 1} count {history.tokens([span])} tokens, the item says {item.tokens}")
        place = last
    head = history.head()
    if list(decision.items[: len(head)]) != head:
        raise LedgerError(f"turn {t}: the context does not start with the tools and the prefix")
    if decision.action == "fallback" and decision.tokens != history.raw_tokens:
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
