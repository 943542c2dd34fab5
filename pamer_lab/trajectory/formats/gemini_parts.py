"""Gemini `Content` objects (a role and its parts) -> steps.

Not a format itself: Gemini histories and ADK sessions share it; both spellings (`functionCall`, `function_call`) are known.
What always holds: one content of the model is one turn, thoughts kept apart; a result stands before the text it came with.
"""

from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.formats.rows import list_of, text_of
from pamer_lab.trajectory.formats.steps import Result, Said, Step, Turn
from pamer_lab.trajectory.parts import Content, add_image
from pamer_lab.trajectory.values import Image, ToolCall, Usage

NO_TEXT = {"thoughtSignature", "thought_signature", "videoMetadata", "partMetadata"}


def to_steps(draft: Draft, role: str, parts: Any, where: str, *, usage: Usage | None = None, name: str = "") -> list[Step]:
    """The steps of one content; `parts` may be text or a single part."""
    if isinstance(parts, str | dict):
        parts = [parts]
    if not isinstance(parts, list):
        raise FormatError(f"has parts that are {type(parts).__name__}, not a list", where=f"{draft.where} {where}".strip())
    turn = Turn(where, usage=usage, name=name)
    said = Content()
    results: list[Step] = []
    for number, part in enumerate(parts):
        _add_part(draft, turn, said, results, part, f"{where}.parts[{number}]")
    turn.texts, turn.images = said.texts, said.images
    if role in ("model", "assistant"):
        return [turn, *results]
    if turn.thinking:
        said.texts += turn.thinking
    if said.texts or not results:
        results.append(Said("system" if role == "system" else "user", said.text, said.images, name))
    if turn.calls:
        # A call under the user's role is the program's own; it stays visible as the turn that its result answers.
        results.insert(0, Turn(where, calls=turn.calls))
    return results


def _add_part(draft: Draft, turn: Turn, said: Content, results: list[Step], part: Any, where: str) -> None:
    if isinstance(part, str):
        said.texts.append(part)
        return
    if not isinstance(part, dict):
        raise FormatError(f"is {type(part).__name__}, not a part", where=f"{draft.where} {where}".strip())
    call = part.get("functionCall") or part.get("function_call")
    answer = part.get("functionResponse") or part.get("function_response")
    blob = part.get("inlineData") or part.get("inline_data") or part.get("fileData") or part.get("file_data")
    if isinstance(part.get("text"), str):
        (turn.thinking if part.get("thought") else said.texts).append(part["text"])
    elif isinstance(call, dict):
        turn.calls.append(ToolCall(text_of(call.get("id")), text_of(call.get("name")), json_text(call.get("args"))))
    elif isinstance(answer, dict):
        results.append(_result(answer, where))
    elif isinstance(blob, dict):
        add_image(said, blob)
    elif isinstance(code := part.get("executableCode") or part.get("executable_code"), dict):
        turn.calls.append(ToolCall("", "code_execution", json_text(code)))
    elif isinstance(outcome := part.get("codeExecutionResult") or part.get("code_execution_result"), dict):
        failed = outcome.get("outcome") not in (None, "OUTCOME_OK")
        results.append(Result("", text_of(outcome.get("output")), where, error=failed, name="code_execution"))
    elif part.keys() - NO_TEXT - {"thought"}:
        draft.warn(where, f"part with {', '.join(sorted(part))} was kept as JSON text")
        said.texts.append(json_text(part))


def _result(answer: dict[str, Any], where: str) -> Result:
    """Text of a function's answer: a lone `output`, `error`, `content` or `result` is the text itself, anything else stays JSON."""
    response = answer.get("response")
    images: list[Image] = []
    failed = isinstance(response, dict) and bool(response.get("error"))
    text = json_text(response)
    if isinstance(response, dict) and len(response) == 1:
        key, value = next(iter(response.items()))
        if key in ("output", "error", "content", "result"):
            text = json_text(value)
    extra = Content()
    for part in list_of(answer.get("parts")):
        blob = part.get("inlineData") or part.get("fileData") if isinstance(part, dict) else None
        if isinstance(blob, dict):
            add_image(extra, blob)
    images += extra.images
    return Result(text_of(answer.get("id")), "\n".join([text, *extra.texts]), where, images, failed, text_of(answer.get("name")))


def declared_tools(value: Any) -> list[Any]:
    """The function declarations of a request's `tools`."""
    found: list[Any] = []
    for tool in value if isinstance(value, list) else []:
        given = (tool.get("functionDeclarations") or tool.get("function_declarations")) if isinstance(tool, dict) else None
        for item in given if isinstance(given, list) else []:
            if isinstance(item, dict):
                schema = item.get("parameters") or item.get("parametersJsonSchema") or item.get("parameters_json_schema")
                found.append({**item, "parameters": schema})
    return found
