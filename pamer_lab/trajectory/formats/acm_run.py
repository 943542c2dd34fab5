"""Run files of agentic context management (ACM) and of BrowseComp-Plus, which share `query_id` and `result`.

ACM keeps `raw_history`, the append-only conversation, next to `history`, the live context that its `manage_context` tool
cut. The trace is the raw history; operations become events with the token counts from `token_trajectory` (turns count from
0). A BrowseComp-Plus run has no messages: its `result` items become turns, with reasoning kept apart as thinking.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.labels import is_compression, is_recall
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_tools
from pamer_lab.trajectory.shared.messages import add_messages, is_message
from pamer_lab.trajectory.shared.rows import first_episode, read_each
from pamer_lab.trajectory.shared.usage import read_usage
from pamer_lab.trajectory.values import EventKind, Message, ToolCall

NAME = "acm-run"
FACTS = ("status", "correct_answer", "final_answer", "confidence", "num_turns", "tool_call_counts", "error", "token_trajectory")
ITEMS = ("reasoning", "tool_call", "output_text")


def detect(document: Document) -> bool:
    first = first_episode(document)
    return isinstance(first, dict) and (_history(first)[0] != "" or ("query_id" in first and _has_items(first)))


def _history(value: dict[str, Any]) -> tuple[str, list[Any]]:
    """(field, messages) of the run's conversation: the raw history, or else the live one if the file is certainly ACM's."""
    raw, live = get.items(value, "raw_history"), get.items(value, "history")
    if raw and is_message(raw[0]):
        return "raw_history", raw
    if live and is_message(live[0]) and ("mem_operations" in value or "token_trajectory" in value):
        return "history", live
    return "", []


def _has_items(value: dict[str, Any]) -> bool:
    return get.first(value, "result").get("type") in ITEMS


def read(document: Document) -> Iterator[Draft]:
    return read_each(document, NAME, _read_one)


def _read_one(value: Any, where: str) -> Draft:
    if not isinstance(value, dict):
        raise FormatError("is not a run", where=where)
    draft = Draft(NAME, where=where)
    _read_facts(draft, value)
    place, messages = _history(value)
    if messages:
        if place == "history":
            draft.warn("history", "the file has no `raw_history`; what the agent compressed away is missing")
            draft.orphans = "as_user"
        add_messages(draft, messages, place=place)
        _add_operations(draft, value)
    elif _has_items(value):
        _add_items(draft, value)
    else:
        raise FormatError("contains neither `raw_history`, `history` nor `result` items", where=where)
    return draft


def _read_facts(draft: Draft, value: dict[str, Any]) -> None:
    metadata = get.obj(value, "metadata")
    draft.question_id = get.text(value, "query_id", "question_id")
    draft.task_id = draft.question_id
    draft.model = get.text(metadata, "model") or get.text(value, "model")
    draft.usage = read_usage(value.get("usage"))
    draft.tools = read_tools(value.get("tools"))
    draft.reward = get.amount(value, "reward", "is_correct", "correct")
    draft.meta = get.facts(value, *FACTS)
    draft.meta["mode"] = metadata.get("mode")


def _add_operations(draft: Draft, value: dict[str, Any]) -> None:
    """Place recorded operations at the calls that made them, in order; one without a call is kept, with a warning."""
    tokens = _tokens_by_turn(value)
    gone: tuple[tuple[int, int], ...] = ()
    places = {"compression": _calls(draft, is_compression), "recall": _calls(draft, is_recall)}
    for where, operation in get.placed(get.items(value, "mem_operations"), "mem_operations"):
        if not isinstance(operation, dict):
            draft.warn(where, f"is {type(operation).__name__}, not an operation; left out")
            continue
        tool = get.text(operation, "tool", "name")
        target = "recall" if is_recall(tool) else "compression"
        kind: EventKind = "memory_read" if target == "recall" else "compaction"
        facts = {key: item for key, item in operation.items() if key != "query"}
        text = get.text(operation, "query", "summary")
        if not places[target]:
            draft.warn(where, f"no call of {tool!r} is left for it in the history; kept as an event at the end")
            draft.event(kind, text, **facts)
            continue
        turn, index = places[target].pop(0)
        if target == "compression":
            facts |= {"tokens_before": tokens.get(turn - 1), "tokens_after": tokens.get(turn)}
            taken = _compressed(draft.messages, gone, index, operation.get("compressed_message_count"))
            if taken and _answered(draft.messages, index):
                gone = taken
                facts |= {"replaced": gone, "summary_message": index + 1}
        draft.event_at(index + 1, kind, text, **facts)


def _compressed(messages: Sequence[Message], before: tuple[tuple[int, int], ...], call: int, count: Any) -> tuple[tuple[int, int], ...]:
    """The range removed so far, this operation included: it removes the oldest `count` messages left, or all if it has no count."""
    start = next((index for index, message in enumerate(messages) if message.role == "assistant"), call)
    first = before[0][1] if before else start
    end = min(first + count, call) if isinstance(count, int) and not isinstance(count, bool) else call
    return ((start, end),) if end > first else ()


def _answered(messages: Sequence[Message], call: int) -> bool:
    """Whether the call's result, which is the summary, comes right after it."""
    return call + 1 < len(messages) and messages[call + 1].role == "tool"


def _calls(draft: Draft, wanted: Any) -> list[tuple[int, int]]:
    """(turn, message index) of each call of a tool that `wanted` accepts."""
    found: list[tuple[int, int]] = []
    turn = -1
    for index, message in enumerate(draft.messages):
        turn += message.role == "assistant"
        found += [(turn, index) for call in message.tool_calls if wanted(call.name)]
    return found


def _tokens_by_turn(value: dict[str, Any]) -> dict[int, int]:
    """Tokens of the live context after each turn."""
    counts = ((get.count(row, "turn"), get.count(row, "tokens_actual")) for row in get.objects(value, "token_trajectory"))
    return {turn: tokens for turn, tokens in counts if turn is not None and tokens is not None}


def _add_items(draft: Draft, value: dict[str, Any]) -> None:
    question = get.text(value, "question", "query")
    if question:
        draft.user(question)
    else:
        draft.warn("question", "is not in the file, so the trace has no prefix")
    thinking: list[str] = []
    for where, item in draft.each(value["result"], "result", "an item"):
        text = _output(item.get("output"))
        match item.get("type"):
            case "reasoning":
                thinking.append(text)
                continue
            case "tool_call":
                draft.assistant(
                    "",
                    [ToolCall("", get.text(item, "tool_name"), json_text(item.get("arguments")))],
                    thinking="\n".join(thinking),
                    where=where,
                )
                if item.get("output") is not None:
                    draft.tool("", text, where=where)
            case "output_text":
                draft.assistant(text, thinking="\n".join(thinking), where=where)
            case other:
                draft.warn(where, f"item of type {other!r} was kept as an event")
                draft.event("note", json_text(item))
        thinking = []
    if thinking:
        draft.assistant("", thinking="\n".join(thinking), where="result")


def _output(value: Any) -> str:
    """Text, a list of texts (reasoning summaries), or anything else as JSON."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return json_text("" if value is None else value)
