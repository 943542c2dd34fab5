"""Answers from the frozen model's own weights, for summaries without a server.

Greedy decoding, so the same prompt gives the same answer. A prompt longer than the model's window is refused; shortening it
is the caller's decision. A small model does not keep to a schema: what it answers is checked, and an answer that does not
fit or was cut at its token limit is handled as with any other chat model.
"""

from collections.abc import Mapping
from typing import Any

from pamer_lab.errors import ModelError
from pamer_lab.models.attempts import DoesNotFit
from pamer_lab.models.chat import ChatAnswer, ChatMessages, ChatUsage, parsed_answer
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.models.usage import set_usage


class LocalChat:
    """The frozen model behind the `Chat` Protocol."""

    def __init__(self, model: FrozenModel) -> None:
        self._model = model
        self.name = f"{model.name} (local)"

    def complete(self, messages: ChatMessages, *, max_tokens: int, schema: Mapping[str, Any] | None = None) -> ChatAnswer:
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
                )
        except torch.OutOfMemoryError as error:
            raise DoesNotFit(f"{model.name} ran out of memory on {model.device} with a prompt of {len(ids):,} tokens") from error
        answer = found[0, len(ids) :].tolist()
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
