"""What can be observed without a model at a decision point: length, turn, tool and action types, the text of Recent2, and three rules.

The rules are triggers that agents use in practice. `similar queries`: three similar ones among the last ten. `short results`: four in a
row. `visited again`: the newest opened page or document was opened before.
Invariant: only messages before the decision are used, and rows follow `Decisions.keys`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import orjson

from pamer_lab.blocks import MessageTokens, cut
from pamer_lab.blocks.render import render_message
from pamer_lab.features.contexts import context_messages
from pamer_lab.models.embedder import Embedder
from pamer_lab.probes.readout import Floats
from pamer_lab.studies.decisions import Decisions
from pamer_lab.trajectory.recorded import recorded_of
from pamer_lab.trajectory.values import Message, Trace

FAMILIES = {
    "search": {"search", "find", "query", "grep", "lookup", "list"},
    "read": {"get", "open", "read", "fetch", "visit", "view", "browse", "cat", "scroll", "click"},
    "write": {"write", "edit", "create", "save", "replace", "insert", "update", "patch", "submit"},
    "run": {"run", "bash", "exec", "shell", "python", "terminal", "command", "execute"},
}
"""Words in a tool's name that identify the kind of action."""

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True)
class Observables:
    """Columns for the metadata controls."""

    length: Floats
    """[n]: tokens of the active request at the decision, tools included."""
    turn: Floats
    """[n]: the decision point."""
    tools: tuple[str, ...]
    """[n]: the tool called last; empty if the last action called none."""
    actions: tuple[str, ...]
    """[n]: the type of the last action."""


def observe(traces: Mapping[str, Trace], decisions: Decisions, tokens: MessageTokens) -> Observables:
    """The observables of all decision points."""
    lengths: dict[str, list[int]] = {}
    for trace_id in dict.fromkeys(trace_id for trace_id, _ in decisions.keys):
        trace, recorded = traces[trace_id], recorded_of(traces[trace_id], decisions.history)
        starts, tools = [block.start for block in cut(trace.messages).blocks], tokens.tools(trace.tools)
        if recorded is None:
            running = np.cumsum([tools, *tokens.counts(trace.messages)])
            lengths[trace_id] = [int(running[start]) for start in starts]
        else:
            lengths[trace_id] = [tools + tokens.total(recorded.view(trace.messages, start)) for start in starts]
    last = [_last_action(traces[trace_id], t) for trace_id, t in decisions.keys]
    return Observables(
        length=np.array([lengths[trace_id][t] for trace_id, t in decisions.keys], dtype=np.float32),
        turn=np.array([t for _, t in decisions.keys], dtype=np.float32),
        tools=tuple(message.tool_calls[-1].name if message.tool_calls else "" for message in last),
        actions=tuple(action_type(message) for message in last),
    )


def action_type(message: Message) -> str:
    """Type of an assistant message: `answer` without calls, else the family of its last call, with `several` for more than one."""
    if not message.tool_calls:
        return "answer"
    words = {word.lower() for word in _WORD.findall(message.tool_calls[-1].name)}
    family = next((family for family, known in FAMILIES.items() if words & known), "other")
    several = "several " if len(message.tool_calls) > 1 else ""
    return several + family + (" with text" if message.content.strip() else "")


def one_hot(values: Sequence[str]) -> Floats:
    """[n] names -> [n, names]."""
    names = sorted(set(values))
    return np.array([[value == name for name in names] for value in values], dtype=np.float32)


def recent2_texts(traces: Mapping[str, Trace], decisions: Decisions) -> list[str]:
    """The text of the prefix and the two newest complete blocks, as the model would read it."""
    return ["".join(render_message(message) for message in context) for context in _recent2(traces, decisions)]


def recent2_embeddings(traces: Mapping[str, Trace], decisions: Decisions, embedder: Embedder) -> Floats:
    """Mean of the messages' embeddings, weighted by their length; each message is embedded once."""
    contexts = _recent2(traces, decisions)
    texts = {message: render_message(message) for context in contexts for message in context}
    known = dict(zip(texts, embedder.embed(list(texts.values())), strict=True))
    rows = [
        np.average([known[message] for message in context], axis=0, weights=[len(texts[message]) for message in context])
        for context in contexts
    ]
    return np.asarray(rows, dtype=np.float32)


def _recent2(traces: Mapping[str, Trace], decisions: Decisions) -> list[tuple[Message, ...]]:
    """Recent2 at every row, from the history that the decisions refer to."""
    pieces = {trace_id: cut(traces[trace_id].messages) for trace_id, _ in decisions.keys}
    recorded = {trace_id: recorded_of(traces[trace_id], decisions.history) for trace_id in pieces}
    rows = []
    for trace_id, t in decisions.keys:
        messages, operations = traces[trace_id].messages, recorded[trace_id]
        if operations is None:
            rows.append(context_messages(messages, t, "recent2", pieces[trace_id]))
        else:
            had = operations.view(messages, pieces[trace_id].blocks[t].start)
            rows.append(context_messages(had, len(cut(had).blocks), "recent2"))
    return rows


def _last_action(trace: Trace, t: int) -> Message:
    return trace.messages[cut(trace.messages).blocks[t - 1].start]


RULES = ("three similar queries in ten", "four short results in a row", "a URL visited again")

SIMILAR = 0.5
"""Minimum Jaccard similarity of the words of two similar queries."""
QUERIES_SEEN, QUERIES_ALIKE = 10, 3
SHORT_CHARACTERS = 200
"""Results with fewer characters are short."""
SHORT_IN_A_ROW = 4
QUERY_KEYS = ("query", "q", "queries", "search", "search_query", "keywords", "pattern")
PLACE_KEYS = ("url", "uri", "href", "docid", "doc_id", "document_id", "document", "page", "path", "file", "file_path")

_QUERY_WORD = re.compile(r"\w+")


@dataclass
class _Seen:
    """What the rules remember while a trace goes by."""

    queries: list[frozenset[str]]
    places: set[str]
    short: int
    again: bool


def triggers(trace: Trace) -> list[tuple[bool, ...]]:
    """Per decision point (0 included) one value per rule, in the order of `RULES`."""
    seen = _Seen([], set(), 0, False)
    rows: list[tuple[bool, ...]] = [(False,) * len(RULES)]
    for block in cut(trace.messages).blocks:
        _see(seen, block.of(trace.messages))
        rows.append((_alike(seen.queries[-QUERIES_SEEN:]), seen.short >= SHORT_IN_A_ROW, seen.again))
    return rows[: trace.turns]


def _see(seen: _Seen, messages: Sequence[Message]) -> None:
    opened = False
    for key, text in _arguments(messages[0]):
        if key in QUERY_KEYS:
            seen.queries.append(frozenset(_QUERY_WORD.findall(text.lower())))
        elif key in PLACE_KEYS:
            place = text.strip().lower().rstrip("/")
            seen.again = place in seen.places or (opened and seen.again)
            seen.places.add(place)
            opened = True
    if not opened:
        seen.again = False
    for message in messages[1:]:
        if message.role == "tool":
            seen.short = seen.short + 1 if len(message.content) < SHORT_CHARACTERS else 0


def _arguments(message: Message) -> Iterator[tuple[str, str]]:
    for call in message.tool_calls:
        try:
            given = orjson.loads(call.arguments)
        except orjson.JSONDecodeError:
            continue
        for key, value in given.items() if isinstance(given, dict) else ():
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str):
                    yield key.lower(), text


def _alike(queries: Sequence[frozenset[str]]) -> bool:
    """Whether some query has enough similar ones, itself included."""
    return any(sum(_similar(one, other) for other in queries) >= QUERIES_ALIKE for one in queries)


def _similar(one: frozenset[str], other: frozenset[str]) -> bool:
    union = len(one | other)
    return union == 0 or len(one & other) >= SIMILAR * union
