"""Codex CLI rollouts, in both envelopes: bare Responses items (2025-08) and `{timestamp, type, payload}` lines (since).

`event_msg` lines repeat the items for the interface; only token counts (usage of the turn before them), rollbacks, errors and texts that no
item holds are read from them. A `compacted` line is a compaction event; its summary stays a user message, and earlier messages are kept.
Tool output that Codex sent as JSON text is kept as text.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_tools
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.responses_items import Items
from pamer_lab.trajectory.shared.rows import Row, head, rows, warn_strays
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Turn, add_steps, stamp_steps
from pamer_lab.trajectory.shared.usage import usage_in
from pamer_lab.trajectory.values import Message

NAME = "codex-rollout"
ENVELOPE = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
ITEMS = ("message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "local_shell_call", "web_search_call")
NOT_SENT = ("ghost_snapshot", "other", "compaction", "compaction_summary", "compaction_trigger", "trae_extra_info")
"""Items that Codex keeps for itself and that hold no readable text."""
REPEATS = (
    "exec_command_begin exec_command_end exec_command_output_delta exec_approval_request apply_patch_approval_request patch_apply_begin "
    "patch_apply_end mcp_tool_call_begin mcp_tool_call_end web_search_begin web_search_end view_image_tool_call image_generation_begin "
    "image_generation_end dynamic_tool_call_request dynamic_tool_call_response item_started item_completed raw_response_item "
    "context_compacted task_started task_complete turn_started turn_complete turn_diff plan_update session_configured "
    "agent_reasoning_section_break agent_message_delta agent_reasoning_delta background_event entered_review_mode exited_review_mode "
    "guardian_assessment undo_started undo_completed sub_agent_activity thread_goal_updated thread_name_updated thread_settings_applied "
    "collab_agent_spawn_begin collab_agent_spawn_end collab_agent_interaction_begin collab_agent_interaction_end collab_waiting_begin "
    "collab_waiting_end collab_close_begin collab_close_end"
).split()
QUIET = frozenset(
    ("state", "world_state", "token_usage_record", "inter_agent_communication_metadata", *(f"event_msg/{kind}" for kind in REPEATS))
)
"""Lines that repeat items for the interface, or are not part of the conversation."""
TOKENS = {"sent": "input_tokens", "given": "output_tokens", "cached": "cached_input_tokens"}


def detect(document: Document) -> bool:
    first = head(document, 20)
    if any(row.get("type") in ENVELOPE and isinstance(row.get("payload"), dict) for row in first):
        return True
    header = bool(first) and "type" not in first[0] and {"id", "timestamp"} <= first[0].keys()
    states = any(row.get("record_type") == "state" for row in first)
    return (header or states) and any(row.get("type") in ITEMS for row in first)


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME, orphans="as_user")
    warn_strays(draft, document)
    found = rows(document)
    reader = _Reader(draft, found)
    for where, row in found:
        reader.add(where, row)
    reader.finish()
    yield draft


class _Reader:
    def __init__(self, draft: Draft, found: list[Row]) -> None:
        self.draft = draft
        self.items = Items(draft)
        self.tokens: int | None = None
        """Size of the context at the newest token count."""
        self.instructions: list[str] = []
        self.total: Any = None
        self.events: list[tuple[int, str, str]] = []
        """(number of steps before it, kind, text) of each message event; most repeat an item."""
        self.mutates = any(row.get("type") == "history_mutation" for _, row in found)
        """Whether items come in lists, as TRAE's Codex writes them; only then are token counts separate records."""
        self.only_events = not self.mutates and not any(row.get("type") == "response_item" or row.get("type") in ITEMS for _, row in found)

    def add(self, where: str, row: dict[str, Any]) -> None:
        before = len(self.items.steps)
        self._add(where, row)
        stamp_steps(self.items.steps, before, get.as_time(row.get("timestamp")))

    def _add(self, where: str, row: dict[str, Any]) -> None:
        body = get.obj(row, "payload")
        match row.get("type"):
            case "session_meta":
                self._header({**body, **get.obj(body, "meta")})
            case "turn_context":
                self.draft.model = self.draft.model or get.text(body, "model")
                self.draft.meta.setdefault("effort", body.get("effort"))
            case "response_item":
                self._item(body, where)
            case "event_msg":
                self._event(body, where)
            case "compacted":
                self._compacted(body, where)
            case "history_mutation" if body.get("operation") == "append":  # TRAE's Codex
                for place, item in get.placed(get.objects(body, "items"), f"{where} items"):
                    self._item(item, place)
            case "token_usage_record" if self.mutates and self.items.last is not None:
                self.items.last.usage = usage_in(body.get("usage"), **TOKENS)
            case None if row.get("record_type"):
                self.draft.passed(get.text(row, "record_type"), where, QUIET)
            case None if "role" not in row:
                self._header(row)
            case _ if "payload" in row:
                self.draft.passed(str(row.get("type")), where, QUIET)
            case _:
                self._item(row, where)

    def _item(self, item: dict[str, Any], where: str) -> None:
        if item.get("type") in NOT_SENT:
            self.draft.passed(str(item["type"]), where, NOT_SENT)
        else:
            self.items.add(item, where)

    def _header(self, body: dict[str, Any]) -> None:
        base = get.text(get.obj(body, "base_instructions"), "text") or get.text(body, "base_instructions")
        for text in (base, get.text(body, "instructions")):
            if text and text not in self.instructions:
                self.instructions.append(text)
        self.draft.tools = self.draft.tools or read_tools(body.get("dynamic_tools"))
        self.draft.model = self.draft.model or get.text(body, "model")
        names = {"id": "session", "cwd": "cwd", "cli_version": "version", "originator": "originator", "source": "source", "git": "git"}
        for key, name in names.items():
            if body.get(key) is not None:
                self.draft.meta.setdefault(name, body[key])

    def _event(self, body: dict[str, Any], where: str) -> None:
        kind = get.text(body, "type")
        match kind:
            case "token_count":
                self._count(get.obj(body, "info"))
            case "user_message" | "agent_message" | "agent_reasoning" | "agent_reasoning_raw_content":
                text = get.text(body, "message", "text")
                if self.only_events:
                    self._from_event(kind, text, where)
                elif text:
                    self.events.append((len(self.items.steps), kind, text))
            case "thread_rolled_back":
                self.items.say(Mark("context_edit", "the conversation was rolled back", {"turns": body.get("num_turns")}))
            case "turn_aborted" | "error" | "stream_error" | "warning":
                text = get.text(body, "message", "reason")
                self.items.say(Mark("note", text, {"event": kind}))
            case _:
                self.draft.passed(f"event_msg/{kind}", where, QUIET)

    def _from_event(self, kind: str, text: str, where: str) -> None:
        """Add a message event of a rollout that has no items, only events."""
        if kind == "user_message":
            self.items.say(Said("user", text))
        elif kind == "agent_message":
            self.items.add({"type": "message", "role": "assistant", "content": text}, where)
        else:
            self.items.add({"type": "reasoning", "content": text}, where)

    def _count(self, info: dict[str, Any]) -> None:
        """Usage of the newest turn; a count that repeats the previous totals is skipped."""
        last = info.get("last_token_usage")
        if not isinstance(last, dict) or info.get("total_token_usage") == self.total:
            return
        self.total = info.get("total_token_usage")
        self.tokens = get.count(last, "total_tokens") or self.tokens
        if self.items.last is not None and self.items.last.usage is None:
            self.items.last.usage = usage_in(last, **TOKENS)

    def _compacted(self, body: dict[str, Any], where: str) -> None:
        text = get.text(body, "message", "summary")
        history = get.items(body, "replacement_history")
        known = {step.text for step in self.items.steps if isinstance(step, Said)}
        listed = get.placed(history, f"{where} replacement_history")
        texts = [content_of(self.draft, item.get("content"), place).text for place, item in listed if get.text(item, "role")]
        new = [said for said in texts if said and said not in known and said != text]
        facts = {"tokens_before": self.tokens, "kept": len(history) or None, "replacement": new or None}
        keeps = partial(_keep_said, frozenset(texts) if history else None)
        if not self._waits():
            self.items.close()
        self.items.steps.append(Mark("compaction", text, facts, keeps, Said if text else None))
        if text:
            self.items.steps.append(Said("user", text))

    def _waits(self) -> bool:
        """Whether the open turn has calls without a result; if so, it continues after a compaction."""
        turn = self.items.turn
        return turn is not None and any(call.id in self.items.due for call in turn.calls)

    def finish(self) -> None:
        steps = self.items.steps
        known: set[str] = set()
        for step in steps:
            match step:
                case Turn():
                    known.update(step.texts, step.thinking)
                case Said() | Result():
                    known.update((step.text, *step.text.split("\n")))
        joined = ""
        for before, kind, text in reversed(self.events):
            if text in known:
                continue
            joined = joined or "\n".join(known)
            if text not in joined:
                steps.insert(before, Mark("note", text, {"event": kind}))
        said = [step.text for step in steps if isinstance(step, Said)]
        heads = [Said("system", text) for text in self.instructions if not any(text in other for other in said)]
        self.draft.usage = usage_in(self.total, **TOKENS)
        add_steps(self.draft, [*heads, *steps])


def _keep_said(texts: frozenset[str] | None, messages: Sequence[Message]) -> list[int]:
    """The messages that the replacement history repeats; without one, Codex keeps what the user said."""
    said = [index for index, message in enumerate(messages) if message.role in ("system", "user")]
    return said if texts is None else [index for index in said if messages[index].content in texts]
