"""Complete per-turn accounting of a growing trace: cut, identities, protocol and tokens, from 200 to 2,000 turns."""

from typing import Any

from pamer_lab.bench.measure import best_seconds, messages
from pamer_lab.blocks import MessageTokens, cut, identities, split, violations
from pamer_lab.models.tokenizer import embedded_counter

HELP = "per-turn accounting of a 2,000-turn trace against ten times a 200-turn one"


def account(turns: int) -> list[int]:
    """Tokens of prefix + history and of `O_t` at every decision point, each message touched once."""
    said = list(messages(turns, words=60))
    assert not violations(said)
    pieces = cut(said)
    counts = MessageTokens(embedded_counter()).counts(said)
    names = identities(block.of(said) for block in pieces.blocks)
    assert len(names) == turns
    sizes = [sum(counts[block.start : block.end]) for block in pieces.blocks]
    prefix = sum(counts[: pieces.prefix_end])
    context, contexts = prefix, []
    for size in sizes:
        contexts.append(context)
        context += size
    split(pieces.blocks)
    return contexts


def run() -> tuple[dict[str, float], dict[str, Any]]:
    account(20)
    small, large = best_seconds(lambda: account(200)), best_seconds(lambda: account(2000))
    return {"turn2000_vs_linear": large / (10 * small)}, {"seconds_200": small, "seconds_2000": large}
