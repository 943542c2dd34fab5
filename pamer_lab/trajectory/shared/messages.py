"""Chat messages in OpenAI's shape, Anthropic's parts inside them included -> messages of a draft.

For every format that wraps a list of such messages. Extra keys of a message that carry no text are left out; tags and fenced
commands inside a text stay text, and no call is made from them.
"""

from typing import Any

from msgspec import structs

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls, read_thinking, read_tools
from pamer_lab.trajectory.shared.parts import Content, read_content, read_output, warn_unknown
from pamer_lab.trajectory.shared.usage import read_usage, usage_beside
from pamer_lab.trajectory.shared.vocabulary import CALL_IDS, CALLS, calls_beside, failure, output_of, read_id, result_of, role_of
from pamer_lab.trajectory.values import Message, ToolCall

ROLES = {"system", "developer", "user", "assistant", "tool", "function"}
KNOWN = frozenset(
    {"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "usage", "is_error", "status", "timestamp"}
    | {"reasoning_content", "reasoning", "thinking", "thinking_blocks", "reasoning_details", "id", "type", "index", "weight"}
    | {*CALLS, *CALL_IDS, "functionCall", "toolName", "isError", "usage_metadata", "metrics"}
)
"""Fields of a message that are read, or that carry nothing a conversation needs."""
PLAIN_KEYS = frozenset(("role", "content", "name", "tool_calls", "tool_call_id", "timestamp", "id", "turn_idx"))
SYSTEM = ("system_prompt", "systemPrompt", "system", "instructions", "system_message", "system_instruction", "systemInstruction")
"""Fields next to the messages that contain the system prompt."""
META = ("answer", "status", "domain", "source", "split", "tag", "category", "env_name", "termination_reason", "success")


def warn_unused(draft: Draft, messages: list[Any], known: frozenset[str] = KNOWN) -> None:
    """Add one warning that names the message fields that no rule reads."""
    if unused := set().union(*messages) - known:
        draft.warn("messages", f"fields of messages that were left out: {', '.join(sorted(unused)[:20])}")


def read_facts(draft: Draft, value: dict[str, Any]) -> None:
    """Read what an object that wraps a conversation commonly says about it."""
    draft.tools = read_tools(value.get("tools") or value.get("functions"))
    draft.model = get.text(value, "model", "model_name")
    draft.usage = read_usage(value.get("usage"))
    draft.question_id = get.text(value, "query_id", "question_id", "example_id")
    draft.task_id = get.text(value, "task_id", "instance_id", "id")
    draft.reward = get.amount(value, "reward", "score")
    draft.meta.update({key: value[key] for key in META if isinstance(value.get(key), str | int | float)})


def add_system(draft: Draft, value: Any, messages: list[Any]) -> None:
    """Add the system prompt that an object keeps next to its messages, unless they include a system message."""
    given = get.some(value, *SYSTEM)
    if not isinstance(given, str | list | dict) or any(role_of(get.text(message, "role", "type")) == "system" for message in messages):
        return
    try:
        text = read_content(given).text
    except FormatError:
        text = json_text(given)
    if text:
        draft.system(text)


def is_message(value: Any) -> bool:
    """Whether a value is an object with a known role and with content or calls."""
    return (
        isinstance(value, dict)
        and isinstance(role := value.get("role"), str)
        and role in ROLES
        and ("content" in value or "tool_calls" in value or "function_call" in value)
    )


def add_messages(draft: Draft, messages: Any, *, place: str = "messages") -> None:
    """Append OpenAI-shaped messages (Anthropic parts inside them are understood too)."""
    if not isinstance(messages, list):
        raise draft.fault(place, f"is {type(messages).__name__}, not a list of messages")
    for number, item in enumerate(messages):
        if not _add_quickly(draft, item):
            add_message(draft, item, f"{place}[{number}]")


def _add_quickly(draft: Draft, item: Any) -> bool:
    """Fast path for the most common messages, which cannot need a warning; False for any other. Counting fields rules out extra ones."""
    if type(item) is not dict:
        return False
    role, text, name = item.get("role"), item.get("content"), item.get("name")
    fields = len(item)
    if name is not None:
        if type(name) is not str:
            return False
        fields -= 1
    if role == "assistant" and fields == 3 and "tool_calls" in item and (type(text) is str or (text is None and "content" in item)):
        calls = _plain_calls(item["tool_calls"])
        return calls is not None and draft.asked(text or "", calls, name or "")
    if type(text) is not str:
        return False
    if role == "tool" and fields == 3 and type(own := item.get("tool_call_id")) is str:
        return draft.answered(own, text, name or "")
    if role == "assistant" and fields == 2:
        return draft.asked(text, (), name or "")
    if role == "user" and fields == 2:
        draft.messages.append(Message("user", text, name=name or ""))
        return True
    return False


def _plain_calls(given: Any) -> list[ToolCall] | None:
    """Calls in OpenAI's own shape; None if any has another."""
    calls: list[ToolCall] = []
    for call in given if type(given) is list else (None,):
        if type(call) is not dict or type(body := call.get("function")) is not dict or type(own := call.get("id")) is not str:
            return None
        name, arguments = body.get("name"), body.get("arguments")
        if type(name) is not str or type(arguments) is not str or not name:
            return None
        calls.append(ToolCall(own, name, arguments))
    return calls


def add_message(draft: Draft, item: Any, where: str) -> None:
    """Append one OpenAI-shaped message; a fault names its place."""
    try:
        if not isinstance(item, dict):
            raise FormatError(f"is {type(item).__name__}, not a message")
        content = item.get("content")
        before = len(draft.messages)
        if (type(content) is not str and content is not None) or not _add_plain(draft, item, content or "", where):
            _add(draft, item, content, where)
        if "timestamp" in item:
            draft.stamp(before, get.as_time(item["timestamp"]))
    except FormatError as error:
        raise FormatError(error.reason, where=_inside(f"{draft.where} {where}".strip(), error.where)) from error


def _add_plain(draft: Draft, item: dict[str, Any], text: str, where: str) -> bool:
    """The common case without parsing parts: text, and fields that need no further check; False for any other."""
    if not item.keys() <= PLAIN_KEYS:
        return False
    match item.get("role"):
        case "assistant":
            calls = item.get("tool_calls")
            draft.assistant(text, read_calls(calls) if calls else (), name=speaker(item), where=where)
        case "tool":
            draft.tool(read_id(item, "tool_call_id"), text, name=speaker(item), where=where)
        case "user" if not item.get("tool_calls"):
            draft.messages.append(Message("user", text, name=speaker(item)))
        case _:
            return False
    return True


def _inside(outer: str, inner: str) -> str:
    return inner if inner.startswith(outer) else f"{outer}.{inner}" if inner else outer


def _add(draft: Draft, item: dict[str, Any], given: Any, where: str) -> None:
    role = role_of(item.get("role"))
    if role == "tool" and type(given) is not str:
        content = _read_output(item, given)
    else:
        content = Content([given]) if type(given) is str else read_content(given, where="content")
    warn_unknown(draft, content, where)
    if (content.calls or content.thinking) and role in ("system", "user", "tool"):
        _keep_misplaced(draft, content, role, where)
    match role:
        case "assistant":
            _add_assistant(draft, content, item, where)
        case "tool":
            _add_result(draft, content, item, where)
        case "user":
            _add_user(draft, content, item, where)
        case "system":
            draft.system(content.text)
        case "call":
            _add_call_in_words(draft, content, where)
        case _:
            said = item.get("role")
            draft.warn(where, f"has the unknown role {said!r}; kept as a note")
            draft.event("note", json_text(item) if content.calls or content.results else content.text, role=said)


def _read_output(item: dict[str, Any], given: Any) -> Content:
    """The content of a result; its output may have another name, or a wrapper of its protocol."""
    found = result_of(item)[1] if given is None else output_of(given)[0]
    return read_output(found, where="content") if found is not given else read_content(given, where="content")


def _keep_misplaced(draft: Draft, content: Content, role: Any, where: str) -> None:
    """Calls and thinking belong to the assistant; in any other message they are kept as text."""
    content.texts.extend(content.thinking)
    for call in content.calls:
        content.texts.append(f"{call.name}({call.arguments})")
        draft.warn(where, f"a {role} message calls {call.name!r}; kept as text, because only the agent's calls are calls")


def _add_assistant(draft: Draft, content: Content, item: dict[str, Any], where: str) -> None:
    calls = content.calls
    if beside := calls_beside(item):
        calls = _without_repeats(calls, read_calls(beside))
    if single := get.obj(item, "function_call", "functionCall"):
        calls = calls + read_calls([single])
    if isinstance(item.get("refusal"), str) and item["refusal"] and item["refusal"] not in content.texts:
        content.texts.append(item["refusal"])
    thinking, thought = content.thought, read_thinking(item)
    if thought and thought not in thinking:
        thinking = f"{thought}\n{thinking}" if thinking else thought
    usage = usage_beside(item)
    draft.assistant(content.text, calls, thinking=thinking, images=content.images, usage=usage, name=speaker(item), where=where)
    for call_id, result, failed in content.results:
        draft.tool(call_id, result.text, images=result.images, error=failed, where=where)


def _without_repeats(parts: list[ToolCall], calls: list[ToolCall]) -> list[ToolCall]:
    """Some wrappers list Anthropic's `tool_use` parts again as `tool_calls`; each call counts once."""
    if not parts:
        return calls
    ids = {call.id for call in calls if call.id}
    return [part for part in parts if part.id not in ids] + calls


def _add_call_in_words(draft: Draft, content: Content, where: str) -> None:
    """Add a message that is a call in words to the turn before it, or as a separate turn."""
    draft.warn(where, "is a call written as text; kept as the agent's text")
    if draft.messages and (last := draft.messages[-1]).role == "assistant" and not last.tool_calls:
        draft.messages[-1] = structs.replace(last, content=f"{last.content}\n{content.text}" if last.content else content.text)
    else:
        draft.assistant(content.text, content.calls, where=where)


def _add_result(draft: Draft, content: Content, item: dict[str, Any], where: str) -> None:
    if content.results and not content.texts:
        _add_user(draft, content, item, where)
        return
    own = read_id(item, *CALL_IDS[:-1])
    name = get.text(item, "name", "toolName")
    draft.tool(own, content.text, name=name, images=content.images, error=failure(item), where=where)


def _add_user(draft: Draft, content: Content, item: dict[str, Any], where: str) -> None:
    """A user message; Anthropic puts tool results into it, and they come first."""
    for call_id, result, failed in content.results:
        draft.tool(call_id, result.text, images=result.images, error=failed, where=where)
    if content.texts or not content.results:
        draft.user(content.text, images=content.images, name=speaker(item))


def speaker(item: dict[str, Any]) -> str:
    name = item.get("name")
    return name if type(name) is str else ""
