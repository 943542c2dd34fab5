"""Gemini `Content` objects (a role and its parts) -> steps, in both spellings (`functionCall`, `function_call`).

Invariant: one content of the model is one turn, thoughts kept apart; a result comes before the text it came with.
"""

from typing import Any

from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_call
from pamer_lab.trajectory.shared.parts import Content, add_image
from pamer_lab.trajectory.shared.steps import Result, Said, Step, Turn
from pamer_lab.trajectory.values import ToolCall, Usage

NO_TEXT = {"thoughtSignature", "thought_signature", "videoMetadata", "partMetadata"}


def to_steps(draft: Draft, role: str, parts: Any, where: str, *, usage: Usage | None = None, name: str = "") -> list[Step]:
    """The steps of one content; `parts` may be text or a single part."""
    if isinstance(parts, str | dict):
        parts = [parts]
    if not isinstance(parts, list):
        raise draft.fault(where, f"has parts that are {type(parts).__name__}, not a list")
    turn = Turn(where, usage=usage, name=name)
    said = Content()
    results: list[Step] = []
    for place, part in get.placed(parts, f"{where}.parts"):
        _add_part(draft, turn, said, results, part, place)
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
    draft.expect(part, where, "a part")
    if isinstance(part.get("text"), str):
        (turn.thinking if part.get("thought") else said.texts).append(part["text"])
    elif call := get.obj(part, "functionCall", "function_call"):
        turn.calls.append(read_call(call, arguments="args"))
    elif answer := get.obj(part, "functionResponse", "function_response"):
        results.append(_result(answer, where))
    elif blob := get.obj(part, "inlineData", "inline_data", "fileData", "file_data"):
        add_image(said, blob)
    elif code := get.obj(part, "executableCode", "executable_code"):
        turn.calls.append(ToolCall("", "code_execution", json_text(code)))
    elif outcome := get.obj(part, "codeExecutionResult", "code_execution_result"):
        failed = outcome.get("outcome") not in (None, "OUTCOME_OK")
        results.append(Result("", get.text(outcome, "output"), where, error=failed, name="code_execution"))
    elif part.keys() - NO_TEXT - {"thought"}:
        said.texts.append(draft.kept_as_json(where, f"part with {', '.join(sorted(part))}", part))


def _result(answer: dict[str, Any], where: str) -> Result:
    """Text of a function's answer: a lone `output`, `error`, `content` or `result` is the text itself, anything else stays JSON."""
    response = answer.get("response")
    failed = isinstance(response, dict) and bool(response.get("error"))
    content = Content([json_text(response)])
    if isinstance(response, dict) and len(response) == 1:
        key, value = next(iter(response.items()))
        if key in ("output", "error", "content", "result"):
            content.texts = [json_text(value)]
    for part in get.objects(answer, "parts"):
        if blob := get.obj(part, "inlineData", "fileData"):
            add_image(content, blob)
    return Result(get.text(answer, "id"), content.text, where, content.images, failed, get.text(answer, "name"))


def declared_tools(value: Any) -> list[Any]:
    """The function declarations of a request's `tools`."""
    found: list[Any] = []
    for tool in value if isinstance(value, list) else []:
        for item in get.objects(tool, "functionDeclarations", "function_declarations"):
            found.append({**item, "parameters": get.some(item, "parameters", "parametersJsonSchema", "parameters_json_schema")})
    return found
