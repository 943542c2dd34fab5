"""The next few tokens a model would write: each with its probability, or their hidden states.

Probabilities come from an OpenAI-compatible server that reports `logprobs`, or from weights in this process; states only from those.
Invariant: as many probabilities as tokens, each between 0 and 1, or an error that names the model.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pamer_lab.blocks.marks import break_template_tokens
from pamer_lab.errors import ModelError
from pamer_lab.models.answers import mended
from pamer_lab.models.chat import Chat, ChatClient, ChatMessages, LocalChat, reported
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.models.usage import UNKNOWN_USAGE, ChatUsage, set_usage

States = npt.NDArray[np.float32]
NEXT = "You are the agent in the transcript below. Write its next action, and nothing else."


def next_action(text: str) -> ChatMessages:
    """The request for a draft of what comes after the task and the recent blocks."""
    return [{"role": "system", "content": NEXT}, {"role": "user", "content": break_template_tokens(text)}]


@dataclass(frozen=True)
class Draft:
    """What a model would write."""

    tokens: tuple[str, ...]
    probabilities: tuple[float, ...]
    usage: ChatUsage


def draft(chat: Chat, messages: ChatMessages, max_tokens: int) -> Draft:
    """The next tokens; an error if the model does not report their probabilities."""
    if isinstance(chat, ChatClient):
        return _asked(chat, messages, max_tokens)
    if isinstance(chat, LocalChat):
        return _generated(chat, messages, max_tokens)
    raise ModelError(f"{chat.name} reports no token probabilities")


def _asked(chat: ChatClient, messages: ChatMessages, max_tokens: int) -> Draft:
    answer, before = chat.create(messages, max_tokens, logprobs=True)
    usage = (reported(answer) or UNKNOWN_USAGE) + before
    try:
        entries = answer.choices[0].logprobs.content
        found = [(mended(str(entry.token)), math.exp(min(float(entry.logprob), 0.0))) for entry in entries]
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        missing = ModelError(f"{chat.name} reports no token probabilities (logprobs); choose a server that does")
        set_usage(missing, usage)
        raise missing from error
    return Draft(tuple(text for text, _ in found), tuple(chance for _, chance in found), usage)


def _generated(chat: LocalChat, messages: ChatMessages, max_tokens: int) -> Draft:
    import torch

    ids, found = chat.generate(messages, max_tokens, scores=True)
    answer = found.sequences[0, len(ids) :]
    chances = [float(torch.softmax(row[0].float(), -1)[token]) for row, token in zip(found.scores, answer, strict=True)]
    texts = [str(chat.tokenizer.decode([int(token)])) for token in answer]
    return Draft(tuple(texts), tuple(chances), ChatUsage(len(ids), len(answer), "measured"))


def drafted_states(model: FrozenModel, messages: ChatMessages, max_tokens: int, layers: Sequence[int]) -> tuple[States, ChatUsage]:
    """The mean state of the drafted tokens after each of these blocks, [layers, width]."""
    rows: list[list[States]] = [[] for _ in layers]

    def keep(place: int) -> Any:
        def hook(module: Any, inputs: Any, output: Any) -> None:
            hidden = output[0] if isinstance(output, tuple) else output
            rows[place].append(hidden[0, -1].float().cpu().numpy())

        return hook

    handles = [model.blocks[layer].register_forward_hook(keep(place)) for place, layer in enumerate(layers)]
    try:
        ids, found = LocalChat(model).generate(messages, max_tokens)
    finally:
        for handle in handles:
            handle.remove()
    usage = ChatUsage(len(ids), found.sequences.shape[1] - len(ids), "measured")
    # The first pass reads the prompt, every later one a drafted token; the last drafted token is not read.
    return np.stack([np.mean(read[1:] or read, axis=0) for read in rows]), usage
