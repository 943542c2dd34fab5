"""A second count of a finished run: from the trace's messages and the stored items to states and sums.

Shares no code with the ledger that the engine uses to check each answer, so that an error in one is found by the other. Knows nothing of
policies.
Invariant: an empty list means that every earlier block of every turn is in exactly one state and that every token of every request is in
exactly one item.
"""

from collections.abc import Iterator, Sequence

from pamer_lab.blocks import violations
from pamer_lab.runs.timeline import Timeline
from pamer_lab.runs.values import Turn

STATES = frozenset("ASRX.")


def faults(timeline: Timeline, turns: Sequence[Turn]) -> list[str]:
    """Everything that does not add up, in words; empty where all does."""
    numbers = [turn.t for turn in turns]
    found = [] if numbers == list(range(timeline.turns)) else [f"{len(numbers)} turns of {timeline.turns}, or out of order"]
    return found + [f"turn {turn.t}: {fault}" for turn in turns for fault in _of_turn(timeline, turn)]


def _of_turn(timeline: Timeline, turn: Turn) -> Iterator[str]:
    messages, blocks = timeline.trace.messages, timeline.pieces.blocks
    if len(turn.states) != turn.t or not set(turn.states) <= STATES:
        yield f"{len(turn.states)} states for {turn.t} earlier blocks"
        return
    raw = [number for item in turn.items if item.kind == "blocks" for first, last in item.spans for number in range(first, last)]
    told = {number for item in turn.items if item.text for first, last in item.spans for number in range(first, last)}
    kept = {number for first, last in turn.stored for number in range(first, last)}
    if raw != sorted(set(raw)) or raw != [number for number, state in enumerate(turn.states) if state == "A"]:
        yield "the active blocks are not those of the request, once each and in order"
    if {number for number, state in enumerate(turn.states) if state == "."} != set(range(turn.t)) - set(raw) - told - kept:
        yield "the blocks marked absent are not exactly those that no item and no memory contains"
    sizes = timeline.block_tokens
    added = sum(item.tokens for item in turn.items if item.text)
    given = timeline.tools_tokens + timeline.prefix_tokens + sum(sizes[number] for number in raw) + added
    if not given == turn.active_tokens == sum(item.tokens for item in turn.items):
        yield f"the items count {given} tokens, but the turn has {turn.active_tokens}"
    if not 0 <= turn.cached_tokens <= turn.active_tokens:
        yield f"{turn.cached_tokens} cached tokens of {turn.active_tokens}"
    request = [*messages[: timeline.pieces.prefix_end], *(message for number in raw for message in blocks[number].of(messages))]
    if violations(request) and not violations(messages[: blocks[turn.t].start]):
        yield "the request breaks the tool protocol, and the recorded one did not"
