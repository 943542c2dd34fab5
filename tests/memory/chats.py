"""A chat model by a script: it answers, is cut at its limit, and refuses prompts over its window, as a server does."""

from collections.abc import Callable, Mapping
from typing import Any

from pamer_lab.blocks import EstimatedCounter
from pamer_lab.models.answers import parsed_answer
from pamer_lab.models.attempts import DoesNotFit
from pamer_lab.models.chat import ChatAnswer, ChatMessages, ChatUsage
from pamer_lab.models.usage import set_usage


class ScriptedChat:
    """`answer` makes the text from the user message; every token counts."""

    name = "scripted"

    def __init__(self, answer: Callable[[str], str], *, window: int = 1_000_000) -> None:
        self._answer = answer
        self._window = window
        self.asked: list[tuple[str, str, int]] = []
        """System text, user text and limit of each call."""
        self.used: list[tuple[int, int]] = []
        """Input and output tokens of each call that was worked on."""

    def complete(self, messages: ChatMessages, *, max_tokens: int, schema: Mapping[str, Any] | None = None) -> ChatAnswer:
        system, user = (message["content"] for message in messages)
        self.asked.append((system, user, max_tokens))
        (read,) = EstimatedCounter().count([system + user])
        if read + max_tokens > self._window:
            raise DoesNotFit(f"a prompt of {read} tokens")
        text = self._answer(user)
        (written,) = EstimatedCounter().count([text])
        truncated = written > max_tokens
        self.used.append((read, min(written, max_tokens)))
        usage = ChatUsage(*self.used[-1], "measured")
        try:
            if truncated and schema is not None:
                raise DoesNotFit(f"no JSON within {max_tokens} tokens")
            kept = text[: len(text) * max_tokens // written] if truncated else text
            return ChatAnswer(parsed_answer(kept, schema), usage, truncated=truncated)
        except Exception as error:
            set_usage(error, usage)
            raise

    @property
    def total(self) -> tuple[int, int]:
        return sum(read for read, _ in self.used), sum(written for _, written in self.used)
