"""Answers of chat models: the `Chat` Protocol, an OpenAI-compatible server, the frozen model's own weights, and the choice between them.

Invariant: an answer requested with a schema is JSON of that shape, or an error; `usage` says where its numbers come from. A failed
attempt is tried again with back-off, a refused request is not; a prompt longer than the window is refused, never shortened here.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from pamer_lab.errors import InputError, ModelError
from pamer_lab.models.answers import mended, parsed_answer
from pamer_lab.models.attempts import BadAnswer, DoesNotFit, server_client, with_attempts
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.models.profiles import ChatSettings, Profile
from pamer_lab.models.usage import NO_USAGE, UNKNOWN_USAGE, ChatUsage, UsageKind, set_usage, usage_of
from pamer_lab.redaction import without_keys
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode

__all__ = ["Chat", "ChatAnswer", "ChatClient", "ChatMessages", "ChatUsage", "LocalChat", "UsageKind", "load_chat"]

T = TypeVar("T")

ChatMessages = Sequence[Mapping[str, str]]
"""`{"role": ..., "content": ...}`, in order."""


@dataclass(frozen=True)
class ChatAnswer:
    """One answer."""

    text: str
    usage: ChatUsage
    """Usage of every attempt it took, including failed ones."""
    raw: str = ""
    """As the model wrote it, thinking included."""
    truncated: bool = False
    """The model ran into its token limit. Never true with a schema: JSON that was cut off is a `DoesNotFit` error."""

    def data(self) -> Any:
        """The answer as JSON; only for answers that were asked for with a schema."""
        return json.loads(self.text)


class Chat(Protocol):
    """A model that answers."""

    name: str

    def complete(self, messages: ChatMessages, *, max_tokens: int, schema: Mapping[str, Any] | None = None) -> ChatAnswer:
        """The answer; with a JSON schema its text is JSON of that shape."""
        ...


def load_chat(profile: Profile, model: FrozenModel | None = None) -> Chat | None:
    """The chat model a profile names; None if it names none."""
    if profile.chat.kind != "none":
        refuse_in_reviewer_mode("Asking a model")
    match profile.chat.kind:
        case "none":
            return None
        case "openai":
            return ChatClient(profile.chat)
        case "local":
            if model is None:
                raise InputError("a local chat needs the loaded frozen model")
            return LocalChat(model)


class ChatClient:
    """A chat server behind the `Chat` Protocol."""

    def __init__(self, settings: ChatSettings) -> None:
        if not settings.base_url or not settings.model:
            raise InputError("a chat server needs base_url and model in its profile")
        self._settings = settings
        self.name = settings.model
        self._client = server_client(settings)

    def complete(self, messages: ChatMessages, *, max_tokens: int, schema: Mapping[str, Any] | None = None) -> ChatAnswer:
        answer, before = self._attempted(lambda: self._ask(messages, max_tokens, schema))
        return replace(answer, usage=answer.usage + before)

    def create(self, messages: ChatMessages, max_tokens: int, **more: Any) -> tuple[Any, ChatUsage]:
        """The server's raw answer, for callers that need more than its text, and the usage of failed attempts before it."""
        return self._attempted(lambda: self._create(messages, max_tokens, **more))

    def _attempted(self, call: Callable[[], T]) -> tuple[T, ChatUsage]:
        """The first result, and the usage of the attempts before it; an error carries the usage of all of them."""
        used: list[ChatUsage] = []
        try:
            found = with_attempts(
                call,
                what=f"{self.name} at {self._settings.base_url}",
                attempts=self._settings.attempts,
                failed=lambda error: used.append(_cost(error)),
            )
        except ModelError as error:
            set_usage(error, sum(used, usage_of(error)))
            raise
        return found, sum(used, NO_USAGE)

    def _ask(self, messages: ChatMessages, max_tokens: int, schema: Mapping[str, Any] | None) -> ChatAnswer:
        shape: dict[str, Any] = {}
        if schema is not None:
            shape = {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": dict(schema)}}}
        return self._parsed(self._create(messages, max_tokens, **shape), max_tokens, schema)

    def _create(self, messages: ChatMessages, max_tokens: int, **more: Any) -> Any:
        request: dict[str, Any] = {
            "model": self._settings.model,
            "messages": [dict(message) for message in messages],
            "temperature": self._settings.temperature,
            "max_tokens": max_tokens,
        }
        if not self._settings.thinking:
            request["extra_body"] = {"chat_template_kwargs": {"enable_thinking": False}}
        return self._client.chat.completions.create(**request, **more)

    def _parsed(self, answer: Any, max_tokens: int, schema: Mapping[str, Any] | None) -> ChatAnswer:
        usage = reported(answer)
        try:
            text, truncated = self._text(answer, max_tokens, schema)
            if usage is None:
                raise BadAnswer("the answer does not report its usage")
            return ChatAnswer(parsed_answer(text, schema), usage, text, truncated)
        except ModelError as error:
            set_usage(error, usage or UNKNOWN_USAGE)
            raise

    def _text(self, answer: Any, max_tokens: int, schema: Mapping[str, Any] | None) -> tuple[str, bool]:
        """What the model wrote, and whether it ran into its limit."""
        choices = getattr(answer, "choices", None)
        if not isinstance(choices, list) or len(choices) != 1:
            raise BadAnswer("the answer does not have exactly one choice")
        text = getattr(getattr(choices[0], "message", None), "content", None)
        if not isinstance(text, str):
            raise BadAnswer("the answer contains no text")
        truncated = choices[0].finish_reason == "length"
        if schema is not None and truncated:
            # At temperature 0 another attempt is cut at the same place.
            raise DoesNotFit(f"{self.name} did not finish its JSON within {max_tokens} tokens")
        return without_keys(mended(text)), truncated  # a server may send the key back, and answers are stored


def reported(answer: Any) -> ChatUsage | None:
    """The usage that the server reported; None if it reported none."""
    usage = getattr(answer, "usage", None)
    numbers = [getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")]
    if not all(isinstance(number, int) and number >= 0 for number in numbers):
        return None
    return ChatUsage(numbers[0] or 0, numbers[1] or 0, "recorded")


def _cost(error: Exception) -> ChatUsage:
    """Usage of a failed attempt: unknown if the server worked on it, or may have, and reported nothing."""
    import openai

    if (known := usage_of(error)).calls:
        return known
    worked = isinstance(error, BadAnswer | openai.APITimeoutError | openai.APIResponseValidationError)
    return UNKNOWN_USAGE if worked else NO_USAGE


class LocalChat:
    """The frozen model behind the `Chat` Protocol."""

    def __init__(self, model: FrozenModel) -> None:
        self._model = model
        self.name = f"{model.name} (local)"

    def complete(self, messages: ChatMessages, *, max_tokens: int, schema: Mapping[str, Any] | None = None) -> ChatAnswer:
        model = self._model
        ids, found = self.generate(messages, max_tokens)
        answer = found.sequences[0, len(ids) :].tolist()
        text = str(model.tokenizer.decode(answer, skip_special_tokens=True))
        usage = ChatUsage(len(ids), len(answer), "measured")
        truncated = len(answer) >= max_tokens and answer[-1] not in self._ends()
        try:
            if schema is not None and truncated:
                raise DoesNotFit(f"{self.name} did not finish its JSON within {max_tokens} tokens")
            return ChatAnswer(parsed_answer(text, schema), usage, text, truncated)
        except ModelError as error:
            set_usage(error, usage)
            raise

    @property
    def tokenizer(self) -> Any:
        return self._model.tokenizer

    def generate(self, messages: ChatMessages, max_tokens: int, *, scores: bool = False) -> tuple[list[int], Any]:
        """The prompt's tokens, and what the model generates after them, with the scores of every step if asked for."""
        import torch

        model = self._model
        ids = self._prompt(messages)
        if len(ids) + max_tokens > model.window:
            raise DoesNotFit(f"a prompt of {len(ids):,} tokens and {max_tokens:,} for the answer exceed {model.name}'s {model.window:,}")
        given = torch.as_tensor([ids], device=model.device)
        try:
            with torch.inference_mode():
                found = model.model.generate(
                    given,
                    attention_mask=torch.ones_like(given),
                    max_new_tokens=max_tokens,
                    do_sample=False,
                    pad_token_id=model.tokenizer.eos_token_id,
                    return_dict_in_generate=True,
                    output_scores=scores,
                )
        except torch.OutOfMemoryError as error:
            raise DoesNotFit(f"{model.name} ran out of memory on {model.device} with a prompt of {len(ids):,} tokens") from error
        return ids, found

    def _ends(self) -> set[int]:
        """Tokens that end an answer."""
        named = getattr(self._model.model.generation_config, "eos_token_id", None)
        several = named if isinstance(named, list) else [named]
        return {int(token) for token in [*several, self._model.tokenizer.eos_token_id] if token is not None}

    def _prompt(self, messages: ChatMessages) -> list[int]:
        tokenizer = self._model.tokenizer
        if getattr(tokenizer, "chat_template", None):
            shaped = [dict(message) for message in messages]
            text = tokenizer.apply_chat_template(shaped, tokenize=False, add_generation_prompt=True, enable_thinking=False)
        else:
            text = "".join(f"<|im_start|>{item['role']}\n{item['content']}<|im_end|>\n" for item in messages) + "<|im_start|>assistant\n"
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])
