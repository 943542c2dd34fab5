"""One vocabulary of parts: what the sources call a text, a call, a result, their ids, names, arguments and outputs.

The chat, Anthropic, telemetry and generic readers all read through these tables; a new spelling is one word here. Knows no file format.
Invariant: spellings differ only in case, `-` and `_` (`toolUse`, `tool-use`, `tool_use`), so a table holds each word once.
"""

from typing import Any, Literal

from pamer_lab.trajectory.plain_values import NO_ARGUMENTS, json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.values import ToolCall

PartKind = Literal["text", "thinking", "image", "attachment", "call", "result", "both", "mark", ""]
"""`both`: a call with its result in one part. `mark`: bookkeeping without words (a step boundary, a cache point). Empty: unknown."""

KINDS: dict[str, PartKind] = {
    **dict.fromkeys("text inputtext outputtext summarytext reasoningtext markdown mention".split(), "text"),
    **dict.fromkeys("thinking reasoning think thought reasoningcontent".split(), "thinking"),
    **dict.fromkeys("image imageurl inputimage".split(), "image"),
    **dict.fromkeys("document file inputfile audio inputaudio video media".split(), "attachment"),
    **dict.fromkeys(
        "tooluse servertooluse mcptooluse toolcall toolrequest functioncall frontendtoolrequest toolcallrequest".split(), "call"
    ),
    **dict.fromkeys("toolresult toolresponse tooloutput mcptoolresult functionresponse functionresult".split(), "result"),
    **dict.fromkeys("functioncalloutput functioncallresponse toolcallresponse toolcallresult toolcalloutput toolreturn".split(), "result"),
    **dict.fromkeys("toolinvocation dynamictool".split(), "both"),
    **dict.fromkeys("cachepoint stepstart stepfinish".split(), "mark"),
}

TYPES = ("type", "$type", "block_type", "content_type", "part_kind")
"""Fields that say what a part is."""

ROLES = {
    **dict.fromkeys("system developer systemprompt".split(), "system"),
    **dict.fromkeys("user human environment env question usermessage".split(), "user"),
    **dict.fromkeys("assistant ai model agent gpt bot chatgpt claude gemini assistantmessage".split(), "assistant"),
    **dict.fromkeys("tool function observation toolresult ipython toolresponse functionresponse".split(), "tool"),
    **dict.fromkeys("functioncall toolcall".split(), "call"),
}
"""What a source calls a speaker -> what we call it; `call` is an assistant turn that is a call and nothing else."""

CALLS = ("tool_calls", "toolCalls", "toolRequests", "tool_uses", "toolUses", "function_calls", "functionCalls")
"""Fields of a message that list its calls outside the content."""
NAMES = ("name", "toolName", "tool_name", "tool", "functionName", "function_name", "toolCallName", "apiName")
ARGUMENTS = tuple("arguments args input parameters params rawInput toolArgs function_args tool_input".split())
ARGUMENTS += tuple("tool_args tool_kwargs argumentsJson raw_input".split())
CALL_IDS = ("tool_call_id", "toolCallId", "callId", "callID", "call_id", "toolUseId", "tool_use_id", "toolUseID", "invocation_id", "id")
"""Names of the id that joins a call and its result; `id` alone may be the part's own."""
OUTPUTS = (
    "content",
    "output",
    "result",
    "response",
    "toolResult",
    "tool_result",
    "responseParts",
    "run",
    "value",
    "text",
    "error",
    "errorText",
)
FAILED = ("error", "failed", "cancelled", "rejected", "error-text", "error-json", "output-error")
"""Words under `status`, `state` or `type` that mark a result as an error."""


def plain_word(value: Any) -> str:
    """A type or role in normalised spelling: `toolUse`, `tool-use` and `tool_use` are one word."""
    return value.replace("_", "").replace("-", "").lower() if isinstance(value, str) else ""


def part_kind(part: dict[str, Any]) -> tuple[PartKind, dict[str, Any]]:
    """What a part is, and the object that holds its fields: the part itself, or the value of its only telling key (`{toolUse: {...}}`)."""
    given = next((part[key] for key in TYPES if key in part), None)
    if isinstance(given, str):
        kind = kind_of_word(plain_word(given))
        if not kind and given.startswith("tool-") and ("toolCallId" in part or "state" in part):
            return "both", part | {"toolName": given[5:]}
        return kind, part
    for key, value in part.items() if given is None else ():
        kind = KINDS.get(plain_word(key), "")
        if isinstance(value, str) and kind in ("text", "thinking") and len(part) == 1 and key[:1].isupper():
            return kind, {"text": value}  # an enum of Rust: {"Text": "..."}
        if isinstance(value, dict) and (kind in ("call", "result", "both") or (kind and len(part) == 1)):
            inner = value.get("reasoningText")
            return kind, inner if isinstance(inner, dict) else value
    if given is None and len(part) == 1 and "json" in part:
        return "text", {"text": part["json"]}
    return ("text", part) if isinstance(part.get("text"), str) else ("", part)


def kind_of_word(word: str) -> PartKind:
    """The kind of a type as a plain word; some sources write `TextContent` or `ToolCallPart` for `text` and `toolCall`."""
    found = KINDS.get(word)
    return found if found is not None else KINDS.get(word.removesuffix("content").removesuffix("part").removesuffix("block"), "")


def role_of(value: Any) -> str:
    """Our name of a speaker (`system`, `user`, `assistant`, `tool` or `call`); empty where no rule knows the source's."""
    return ROLES.get(plain_word(value), "")


def call_of(value: dict[str, Any]) -> ToolCall:
    """One call in any of the usual shapes: flat, under `function`, or wrapped once more as `toolCall: {value: {...}}`."""
    body = value.get("function")
    if (
        isinstance(body, dict)
        and type(own := value.get("id")) is str
        and type(body.get("arguments")) is str
        and type(body.get("name")) is str
    ):
        return ToolCall(own, body["name"], body["arguments"])  # the common case
    own, body = read_id(value, *CALL_IDS), value
    for key in ("function", "custom", "toolCall", "tool_call", "functionCall", "function_call", "toolInvocation", "value"):
        if isinstance(inner := body.get(key), dict):
            body = inner
    name = next((found for key in NAMES if isinstance(found := body.get(key), str) and found), "")
    if not name and isinstance(body.get("function"), str):
        name = body["function"]
    given = next((body[key] for key in ARGUMENTS if body.get(key) is not None), None)
    return ToolCall(own or read_id(body, *CALL_IDS), name, NO_ARGUMENTS if given is None else json_text(given))


def calls_beside(message: dict[str, Any]) -> Any:
    """The calls that a message lists outside its content, under whichever name; None where it lists none."""
    found = next((found for key in CALLS if (found := message.get(key))), None)
    if found is None and any("apiName" in tool for tool in get.objects(message, "tools")):
        return message["tools"]  # LobeChat's
    return found


def read_id(value: dict[str, Any], *keys: str) -> str:
    """The first id under these names as text; some sources number their calls from 0."""
    for key in keys:
        found = value.get(key)
        if isinstance(found, str | int) and not isinstance(found, bool) and found != "":
            return str(found)
    return ""


MCP_RESULT = {"content", "isError", "is_error", "_meta", "meta", "structuredContent", "structured_content", "status"}


def output_of(value: Any, depth: int = 0) -> tuple[Any, bool]:
    """(what a tool gave back, whether it failed), with the protocol's wrappers removed.

    Supported are Gemini's `functionResponse`, MCP's `{content, isError}`, `{status, value}` and `{type, value}`, and runs with a `result`;
    an object that is the tool's own answer stays as it is.
    """
    if not isinstance(value, dict) or depth > 6:
        return value, False
    failed = failure(value)
    inner: Any = value
    if answer := get.obj(value, "functionResponse", "function_response"):
        inner = answer.get("response")
        if isinstance(inner, dict) and len(inner) == 1 and (key := next(iter(inner))) in ("output", "error", "content", "result"):
            inner, failed = inner[key], failed or key == "error"
    elif isinstance(value.get("responseParts"), dict | list | str):
        inner = value["responseParts"]
        inner = inner[0] if isinstance(inner, list) and len(inner) == 1 else inner
    elif isinstance(value.get("run"), dict) and {"status", "result"} & value["run"].keys():
        failed = failure(value["run"])
        inner = next((value["run"][key] for key in ("result", "error") if value["run"].get(key) is not None), None)
    elif "value" in value and ("status" in value or value.get("type") in ("text", "json", "content", "error-text", "error-json")):
        inner = value["value"]
    elif isinstance(value.get("content"), str | list) and value.keys() <= MCP_RESULT:
        inner = value["content"]
    elif value.keys() == {"status", "error"}:
        inner = value["error"]
    if inner is value:
        return value, failed
    found, worse = output_of(inner, depth + 1)
    return found, failed or worse


def failure(value: dict[str, Any]) -> bool:
    """Whether an object says of itself that it is an error."""
    if value.get("isError") is True or value.get("is_error") is True or value.get("success") is False:
        return True
    return any(isinstance(word := value.get(key), str) and word.lower() in FAILED for key in ("status", "state", "type"))


def result_of(part: dict[str, Any]) -> tuple[str, Any, bool]:
    """(call id, output, failed) of a part or record that is a result."""
    own, found, failed = read_id(part, *CALL_IDS) or read_id(get.obj(part, "origin"), *CALL_IDS), None, failure(part)
    for key in OUTPUTS:
        if part.get(key) is not None:
            wrapped = {"functionResponse": part} if key == "response" else {"run": part[key]} if key == "run" else part[key]
            found, worse = output_of(wrapped)
            return own, found, failed or worse or key in ("error", "errorText")
    return own, found, failed


def text_of(part: dict[str, Any], *keys: str) -> str:
    """The text of a part under the first of these names that has any; a value that is not text is kept as JSON."""
    found = get.some(part, *keys)
    if isinstance(found, dict) and isinstance(found.get("value"), str):
        return str(found["value"])
    return "" if found is None else json_text(found)
