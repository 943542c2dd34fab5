"""A context -> the tokens a frozen model reads, generation prompt last.

Two serialisers behind one Protocol: the model's own chat template if it keeps everything a message says, otherwise our ChatML rendering
(`blocks/render.py`). A template is tested on a witness conversation first, and every input is checked for lost text or calls; if
something is lost, that input is rendered in ChatML.
Invariant: the tokens contain the text of every message, call and tool description, and the same messages give the same tokens.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol
from weakref import WeakKeyDictionary

import msgspec
import numpy as np
import numpy.typing as npt

from pamer_lab.blocks import render
from pamer_lab.blocks.render import GENERATION_PROMPT, render_message, render_tools
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.trajectory.values import Message, Tool, ToolCall

Tokens = npt.NDArray[np.int32]

VERSION = 1
"""Raised whenever an input's tokens change for a reason that `blocks.render.VERSION` does not cover."""
REMEMBERED_TOKENS = 20_000_000
"""Tokens of messages kept for reuse before the memory is emptied."""

Hint = Literal["none", "faithful"]
"""`none`: the context as it is. `faithful`: the last message ends with the size of the active request."""


class Serialiser(Protocol):
    """Turns a context into tokens."""

    name: str
    """Kind and version; part of every stored vector's key."""

    def tokens(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Tokens:
        """The input of a forward pass, generation prompt last."""
        ...

    def count(self, messages: Sequence[Message], tools: Sequence[Tool]) -> int:
        """Tokens of a request, without the generation prompt."""
        ...


class ChatMLSerialiser:
    """Our own rendering; each message is tokenised once, since `<|im_start|>` keeps messages apart."""

    def __init__(self, tokenizer: Any) -> None:
        self.name = f"chatml-{render.VERSION}.{VERSION}"
        self._tokenizer = tokenizer
        self._known: dict[Message, Tokens] = {}
        self._size = 0
        self._tools: tuple[tuple[Tool, ...], Tokens] = ((), self._encode([""])[0])
        self._prompt = self._encode([GENERATION_PROMPT])[0]

    def tokens(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Tokens:
        return np.concatenate([self._tool_tokens(tools), *self._messages(messages), self._prompt])

    def count(self, messages: Sequence[Message], tools: Sequence[Tool]) -> int:
        return len(self._tool_tokens(tools)) + sum(len(ids) for ids in self._messages(messages))

    def _messages(self, messages: Sequence[Message]) -> list[Tokens]:
        missing = [message for message in dict.fromkeys(messages) if message not in self._known]
        if missing:
            if self._size > REMEMBERED_TOKENS:
                self._known, self._size, missing = {}, 0, list(dict.fromkeys(messages))
            for message, ids in zip(missing, self._encode([render_message(message) for message in missing]), strict=True):
                self._known[message] = ids
                self._size += len(ids)
        return [self._known[message] for message in messages]

    def _tool_tokens(self, tools: Sequence[Tool]) -> Tokens:
        if tuple(tools) != self._tools[0]:
            self._tools = (tuple(tools), self._encode([render_tools(tools)])[0])
        return self._tools[1]

    def _encode(self, texts: list[str]) -> list[Tokens]:
        return encode(self._tokenizer, texts)


class TemplateSerialiser:
    """The model's own chat template; ChatML where the template refuses or loses something."""

    def __init__(self, tokenizer: Any, fallback: ChatMLSerialiser) -> None:
        self.name = f"template-{fallback.name}"
        self._tokenizer = tokenizer
        self._fallback = fallback

    def tokens(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Tokens:
        text = template_text(self._tokenizer, messages, tools, prompt=True)
        return self._fallback.tokens(messages, tools) if text is None else encode(self._tokenizer, [text])[0]

    def count(self, messages: Sequence[Message], tools: Sequence[Tool]) -> int:
        # As requests are counted everywhere else: message by message, so that the hint of training and of replay agree.
        return self._fallback.count(messages, tools)


_SERIALISERS: "WeakKeyDictionary[Any, Serialiser]" = WeakKeyDictionary()


def serialiser_for(model: FrozenModel) -> Serialiser:
    """The serialiser that fits a model, made once per loaded model."""
    found = _SERIALISERS.get(model.model)
    if found is None:
        chatml = ChatMLSerialiser(model.tokenizer)
        keeps = template_text(model.tokenizer, WITNESS, WITNESS_TOOLS, prompt=True) is not None
        found = TemplateSerialiser(model.tokenizer, chatml) if keeps else chatml
        _SERIALISERS[model.model] = found
    return found


def encode(tokenizer: Any, texts: list[str]) -> list[Tokens]:
    """Token ids of texts, without the special tokens a tokenizer would add on its own."""
    found = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
    return [np.asarray(ids, dtype=np.int32) for ids in found]


def template_text(tokenizer: Any, messages: Sequence[Message], tools: Sequence[Tool], *, prompt: bool) -> str | None:
    """The template's rendering if it keeps everything; else None."""
    if not getattr(tokenizer, "chat_template", None) or not messages:
        return None
    try:
        text: str = tokenizer.apply_chat_template(
            [_chat_shape(message) for message in messages],
            tools=[as_function(tool) for tool in tools] or None,
            tokenize=False,
            add_generation_prompt=prompt,
            enable_thinking=False,
        )
    except Exception:  # a template is untrusted code: whatever it raises, it did not render
        return None
    return text if keeps_everything(text, messages, tools) else None


def keeps_everything(text: str, messages: Sequence[Message], tools: Sequence[Tool]) -> bool:
    """Whether a rendering contains every message text (in order), call, argument and tool description."""
    place = 0
    for message in messages:
        body = message.content.strip()
        found = text.find(body, place)
        if found < 0:
            return False
        place = found + len(body)
    return all(_stands_in(text, piece) for piece in _call_pieces(messages, tools))


def with_hint(messages: Sequence[Message], active_tokens: int) -> tuple[Message, ...]:
    """The messages with the context hint at the end of the last one."""
    hint = f"[context tokens: {active_tokens}]"
    if not messages:
        return (Message("system", hint),)
    last = messages[-1]
    content = f"{last.content}\n\n{hint}" if last.content else hint
    return (*messages[:-1], msgspec.structs.replace(last, content=content))


def with_probe_prompt(messages: Sequence[Message], prompt: str) -> tuple[Message, ...]:
    """The messages with a saved probe system prompt before the trace's own system text."""
    if not prompt:
        return tuple(messages)
    if messages and messages[0].role == "system":
        return (msgspec.structs.replace(messages[0], content=f"{prompt}\n\n{messages[0].content}"), *messages[1:])
    return (Message("system", prompt), *messages)


def truncated(tokens: Tokens, limit: int, prefix_kept: int) -> Tokens:
    """Over the limit: the first tokens and the newest rest; a limit too small for the prefix keeps a quarter of it."""
    if len(tokens) <= limit:
        return tokens
    head = prefix_kept if prefix_kept < limit else limit // 4
    return np.concatenate([tokens[:head], tokens[len(tokens) - (limit - head) :]])


def _chat_shape(message: Message) -> dict[str, Any]:
    shape: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        shape["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": json.loads(call.arguments or "{}")}}
            for call in message.tool_calls
        ]
    if message.role == "tool":
        shape |= {"tool_call_id": message.tool_call_id, "name": message.name}
    return shape


def as_function(tool: Tool) -> dict[str, Any]:
    """A tool description in OpenAI's shape."""
    return {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters}}


def _stands_in(text: str, piece: str) -> bool:
    return piece in text or json.dumps(piece, ensure_ascii=False)[1:-1] in text or json.dumps(piece)[1:-1] in text


def _call_pieces(messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[str]:
    for message in messages:
        for call in message.tool_calls:
            yield call.name
            yield from _leaves(json.loads(call.arguments or "{}"))
    for tool in tools:
        yield tool.name
        yield tool.description.strip()
        yield from _leaves(tool.parameters)


def _leaves(value: Any) -> Iterator[str]:
    """Keys and values of arguments, as they would appear in a text."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str):
        yield value.strip()
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value)


WITNESS = (
    Message("system", "witness-system"),
    Message("user", "witness-user"),
    Message(
        "assistant", "witness-text", (ToolCall("c1", "witness_call", '{"witness_key": "witness-value"}'), ToolCall("c2", "witness_two"))
    ),
    Message("tool", "witness-result", tool_call_id="c1", name="witness_call"),
    Message("tool", "witness-second", tool_call_id="c2", name="witness_two"),
    Message("user", "witness-later"),
)
"""A conversation with one of everything a template might drop."""
WITNESS_TOOLS = (Tool("witness_call", "witness-description", {"type": "object", "properties": {"witness_key": {"type": "string"}}}),)
