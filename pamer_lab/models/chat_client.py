"""Answers from any server that speaks OpenAI's `/v1/chat/completions`.

One answer per call, with the server's usage summed over all attempts; an answer cut at its token limit says so, and is an error
where a schema was asked for. A failed attempt is tried again with back-off, a refused request is not.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pamer_lab.errors import InputError, ModelError
from pamer_lab.models.attempts import BadAnswer, DoesNotFit, with_attempts
from pamer_lab.models.chat import ChatAnswer, ChatMessages, ChatUsage, parsed_answer
from pamer_lab.models.profiles import ChatSettings
from pamer_lab.models.usage import NO_USAGE, UNKNOWN_USAGE, set_usage, usage_of
from pamer_lab.redaction import api_key


class ChatClient:
    """A chat server behind the `Chat` Protocol."""

    def __init__(self, settings: ChatSettings) -> None:
        import openai

        if not settings.base_url or not settings.model:
            raise InputError("a chat server needs base_url and model in its profile")
        self._settings = settings
        self.name = settings.model
        self._client = openai.OpenAI(
            base_url=settings.base_url, api_key=api_key(settings.api_key_variable), timeout=settings.timeout_seconds, max_retries=0
        )

    def complete(self, messages: ChatMessages, *, max_tokens: int, schema: Mapping[str, Any] | None = None) -> ChatAnswer:
        what = f"{self.name} at {self._settings.base_url}"
        used: list[ChatUsage] = []
        try:
            answer = with_attempts(
                lambda: self._ask(messages, max_tokens, schema),
                what=what,
                attempts=self._settings.attempts,
                failed=lambda error: used.append(_cost(error)),
            )
        except ModelError as error:
            set_usage(error, sum(used, usage_of(error)))
            raise
        return replace(answer, usage=sum(used, answer.usage))

    def _ask(self, messages: ChatMessages, max_tokens: int, schema: Mapping[str, Any] | None) -> ChatAnswer:
        request: dict[str, Any] = {
            "model": self._settings.model,
            "messages": [dict(message) for message in messages],
            "temperature": self._settings.temperature,
            "max_tokens": max_tokens,
        }
        if not self._settings.thinking:
            request["extra_body"] = {"chat_template_kwargs": {"enable_thinking": False}}
        if schema is not None:
            request["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": dict(schema)}}
        return self._parsed(self._client.chat.completions.create(**request), max_tokens, schema)

    def _parsed(self, answer: Any, max_tokens: int, schema: Mapping[str, Any] | None) -> ChatAnswer:
        usage = _reported(answer)
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
            raise BadAnswer("the answer holds no text")
        truncated = choices[0].finish_reason == "length"
        if schema is not None and truncated:
            # At temperature 0 another attempt is cut at the same place.
            raise DoesNotFit(f"{self.name} did not finish its JSON within {max_tokens} tokens")
        return text, truncated


def _reported(answer: Any) -> ChatUsage | None:
    """The usage that the server reported; None where it reported none."""
    usage = getattr(answer, "usage", None)
    numbers = [getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")]
    if not all(isinstance(number, int) and number >= 0 for number in numbers):
        return None
    return ChatUsage(numbers[0] or 0, numbers[1] or 0, "recorded")


def _cost(error: Exception) -> ChatUsage:
    """What a failed attempt took: unknown where the server worked on it, or may have, and reported nothing."""
    import openai

    if (known := usage_of(error)).calls:
        return known
    worked = isinstance(error, BadAnswer | openai.APITimeoutError | openai.APIResponseValidationError)
    return UNKNOWN_USAGE if worked else NO_USAGE
