"""Summaries without a model: the most informative lines of each step, quoted.

Deterministic. Names that a result showed and the agent used more than once come first, then each step's best line (shortened to the step's
share of the budget), then the best lines overall; the result is in the order of the history, under step numbers. Nothing is reworded, so a
summary states no fact that the blocks do not. A step's detail is its entry in the index that PaMER+'s router reads (`StepDetail`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pamer_lab.blocks import TokenCounter
from pamer_lab.bounded import Bounded
from pamer_lab.errors import ModelError
from pamer_lab.memory.passages import PASSAGE_CHARACTERS, passages
from pamer_lab.memory.summary import BUDGET, CALL_CHARACTERS, OnDemand, SourceBlock, StepDetail, Summary, clip, within_budget
from pamer_lab.memory.terms import KEPT_LINES, scores, terms, weight
from pamer_lab.trajectory.values import Message

SHARE_CHARACTERS = 40
"""Minimum characters of a step's best line that are kept, however many steps share the budget."""
USED = "used later: "
"""Starts the line of names that a step's results brought and the agent used afterwards."""
BEHIND = 1 << 60
"""Place that sorts a line after all others of its step."""
SOURCE_SHARE = 0.75
"""Maximum size of a summary, as a share of the tokens of its source: quoting everything would save nothing."""
SHORT_TOKENS = 128
"""Tokens that a summary may always have, however short its source is."""
COUNTED_TOGETHER = 64
"""Number of texts that are counted at once."""
USED_SHARE = 0.25
"""Share of a summary's tokens that names used more than once may take before anything else."""


@dataclass(frozen=True)
class _Line:
    place: int
    """Position among the lines of all blocks."""
    step: int
    text: str
    score: float
    result: bool
    """Whether it came back to the agent, rather than being written by it."""


@dataclass
class UsedName:
    """One name and its uses."""

    name: str
    """As the result spells it."""
    step: int
    """The step whose result showed it first."""
    uses: int = 0
    """Later messages of the agent that name it, in their text or in a call."""


class ExtractiveSummariser:
    """Quotes the most telling lines of each step."""

    name = "extractive-3"

    def __init__(self, counter: TokenCounter, *, max_tokens: int = 1024, source_characters: int = BUDGET) -> None:
        self._counter = counter
        self._max_tokens = max_tokens
        self._source_characters = source_characters
        self._sizes: Bounded[str, int] = Bounded(KEPT_LINES)
        """Tokens of each line with its step number."""

    def summarise(self, task: str, blocks: Sequence[SourceBlock], later: Sequence[Message] = ()) -> Summary:
        if not blocks:
            raise ModelError("there are no blocks to summarise")
        source = within_budget(blocks, self._source_characters)
        lines = _lines(source)
        used = used_names(task, blocks, later)
        # About three characters to a token, and a few tokens for the step's number.
        share = max(3 * (self._max_tokens // len(source) - 6), SHARE_CHARACTERS)
        room = max(self._shorter([line.text for line in lines]), min(SHORT_TOKENS, self._max_tokens))
        repeated = self._fitting(_used_lines(used, repeated=True), int(USED_SHARE * room))
        chosen = [*repeated, *_by_worth(lines, share, _used_lines(used, repeated=False))]
        kept = self._fitting(chosen, room) or self._fitting(chosen, self._max_tokens)
        text = _text(kept) or "\n".join(f"Step {block.step}: (no text)" for block in source)[:PASSAGE_CHARACTERS]
        return Summary(text, _details(blocks, self._source_characters, _telling(source, lines), used))

    def _shorter(self, texts: Sequence[str]) -> int:
        """Maximum tokens of a summary of these texts, so that it is shorter; they are counted only until the overall limit applies."""
        counted = 0
        for start in range(0, len(texts), COUNTED_TOGETHER):
            counted += sum(self._counter.count(texts[start : start + COUNTED_TOGETHER]))
            if int(SOURCE_SHARE * counted) >= self._max_tokens:
                return self._max_tokens
        return int(SOURCE_SHARE * counted)

    def _fitting(self, lines: list[_Line], room: int) -> list[_Line]:
        """The lines that fit into `room` tokens together, in order of preference."""
        sizes = self._sizes.many([f"Step {line.step}: {line.text}\n" for line in lines], self._counter.count)
        kept: list[_Line] = []
        used = 0
        for line, size in zip(lines, sizes, strict=True):
            if used + size <= room:
                kept.append(line)
                used += size
        while kept and self._counter.count([_text(kept)])[0] > room:
            kept.pop()
        return kept


def extractive_details(blocks: Sequence[SourceBlock], characters: int = BUDGET) -> Sequence[str]:
    """One line per block without a model: what was called, and the block's most telling line."""
    source = within_budget(blocks, characters)
    return _details(blocks, characters, _telling(source, _lines(source)), used_names("", blocks))


def _used_lines(used: Mapping[str, UsedName], *, repeated: bool) -> list[_Line]:
    """Names used more than once, or only once, under the steps that showed them."""
    of_step: dict[int, list[str]] = {}
    for name in sorted(used.values(), key=lambda name: -name.uses):
        if (name.uses > 1) == repeated:
            of_step.setdefault(name.step, []).append(name.name)
    texts = [(step, text) for step, names in of_step.items() for text in passages(USED + ", ".join(names))]
    return [_Line(BEHIND, step, text, 0.0, False) for step, text in texts]


def _by_worth(lines: list[_Line], share: int, used: list[_Line]) -> list[_Line]:
    """Each step's best line first, then names that were used, then other informative lines, best first; each text once."""
    ranked = sorted(lines, key=lambda line: (-line.score, line.place))
    firsts: dict[int, _Line] = {}
    for line in ranked:
        firsts.setdefault(line.step, replace(line, text=_cut(line.text, share)))
    leading = sorted(firsts.values(), key=lambda line: (-line.score, line.place))
    places = {line.place for line in leading}
    unique: dict[str, _Line] = {}
    for line in [*leading, *used, *(line for line in ranked if line.place not in places and weight(line.text) > 1)]:
        unique.setdefault(line.text.casefold(), line)
    return list(unique.values())


def _cut(text: str, cap: int) -> str:
    return text if len(text) <= cap else f"{text[: cap - 3]}..."


def _text(lines: Sequence[_Line]) -> str:
    """Lines under their steps, in the order of the history."""
    parts: list[str] = []
    step = None
    for line in sorted(lines, key=lambda line: (line.step, line.place)):
        parts.append(f"Step {line.step}: {line.text}" if line.step != step else f"- {line.text}")
        step = line.step
    return "\n".join(parts)


def _lines(blocks: Sequence[SourceBlock]) -> list[_Line]:
    found = [
        (block.step, text, bool(number))
        for block in blocks
        for number, message in enumerate(block.messages)
        for text in _message_lines(message)
    ]
    rated = scores([text for _, text, _ in found])
    return [_Line(place, step, text, score, result) for place, ((step, text, result), score) in enumerate(zip(found, rated, strict=True))]


def _message_lines(message: Message) -> Iterator[str]:
    for call in message.tool_calls:
        yield clip(f"{call.name}({' '.join(call.arguments.split())})", PASSAGE_CHARACTERS)
    for passage in passages(message.content):
        yield " ".join(passage.split())


def _telling(blocks: Sequence[SourceBlock], lines: Sequence[_Line]) -> dict[int, str]:
    """Step -> its best line that came back to the agent, else its best line that is not a call."""
    of_step: dict[int, list[_Line]] = {block.step: [] for block in blocks}
    for line in lines:
        of_step[line.step].append(line)
    found: dict[int, str] = {}
    for block in blocks:
        own, calls = of_step[block.step], _calls(block)
        heard = [line for line in own if line.result] or [
            line for line in own if not any(line.text.startswith(call[:40]) for call in calls)
        ]
        best = max(heard, key=lambda line: (line.score, -line.place), default=None)
        found[block.step] = best.text if best else ""
    return found


def _details(blocks: Sequence[SourceBlock], characters: int, telling: Mapping[int, str], used: Mapping[str, UsedName]) -> OnDemand:
    """One detail per block. Names of the results come in this order: asked for, used most, used in the next step, named by few steps."""
    uses = {term: name.uses for term, name in used.items()}

    def write() -> tuple[str, ...]:
        source = within_budget(blocks, characters)
        asked = [spelled(block.messages[:1]) for block in source]
        answered = [spelled(block.messages[1:]) for block in source]
        steps = Counter(name for before, after in zip(asked, answered, strict=True) for name in {**before, **after})
        details: list[str] = []
        for block, before, after, following in zip(source, asked, answered, [*asked[1:], {}], strict=True):
            ranked = sorted(after, key=lambda name: (name not in before, -uses.get(name, 0), name not in following, steps[name]))
            details.append(_detail(block, telling[block.step], list(before.values()), [after[name] for name in ranked]))
        return tuple(details)

    return OnDemand(write)


def _calls(block: SourceBlock) -> list[str]:
    return [
        clip(f"{call.name}({' '.join(call.arguments.split())})", CALL_CHARACTERS)
        for message in block.messages
        for call in message.tool_calls
    ]


def _detail(block: SourceBlock, line: str, said: Sequence[str], names: Sequence[str]) -> str:
    calls = _calls(block)
    more = f"; and {len(calls) - 3} more calls" if len(calls) > 3 else ""
    head = "; ".join(calls[:3]) + more
    return StepDetail(head, tuple(name for name in said if name not in head), line, tuple(names)).text()


def used_names(task: str, blocks: Sequence[SourceBlock], later: Sequence[Message] = ()) -> dict[str, UsedName]:
    """Names that a result showed and the agent used afterwards, by term; `later` are messages of the agent after the blocks.

    A name that the task gave is not counted, because the task stays in the context, nor one that the agent named before a result did.
    """
    known: dict[str, UsedName | None] = dict.fromkeys(terms(task))
    for block in blocks:
        _count(block.messages[:1], known)
        for term, name in spelled(block.messages[1:]).items():
            if term not in known:
                known[term] = UsedName(name, block.step)
    for message in later:
        _count([message], known)
    return {term: found for term, found in known.items() if found is not None and found.uses}


def _count(said: Sequence[Message], known: dict[str, UsedName | None]) -> None:
    for term in spelled(said):
        if (found := known.setdefault(term, None)) is not None:
            found.uses += 1


def spelled(messages: Sequence[Message]) -> dict[str, str]:
    """Term -> its spelling, in the order of the messages."""
    found: dict[str, str] = {}
    for text in _texts(messages):
        lowered = text.lower()
        places = {name: lowered.find(name) for name in terms(text)}
        for name in sorted(places, key=lambda name: (places[name], name)):
            written = text[max(places[name], 0) :][: len(name)]
            found.setdefault(name, written if written.lower() == name else name)
    return found


def _texts(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        yield message.content
        yield from (call.arguments for call in message.tool_calls)
