"""A few tokens that a chat model would write next, each with its probability.

From an OpenAI-compatible server that reports `logprobs`, or from weights in this process. Invariant: as many probabilities as tokens, each
between 0 and 1, or an error that names the model.
"""

import math
from dataclasses import dataclass

from pamer_lab.errors import ModelError
from pamer_lab.models.chat import Chat, ChatClient, ChatMessages, LocalChat, reported
from pamer_lab.models.usage import UNKNOWN_USAGE, ChatUsage, set_usage


@dataclass(frozen=True)
class Draft:
    """What a model would write."""

    tokens: tuple[str, ...]
    probabilities: tuple[float, ...]
    usage: ChatUsage


def draft(chat: Chat, messages: ChatMessages, max_tokens: int) -> Draft:
    """The next tokens; refused where the model does not say how probable they are."""
    if isinstance(chat, ChatClient):
        return _asked(chat, messages, max_tokens)
    if isinstance(chat, LocalChat):
        return _generated(chat, messages, max_tokens)
    raise ModelError(f"{chat.name} reports no token probabilities")


def _asked(chat: ChatClient, messages: ChatMessages, max_tokens: int) -> Draft:
    answer = chat.create(messages, max_tokens, logprobs=True)
    usage = reported(answer) or UNKNOWN_USAGE
    try:
        entries = answer.choices[0].logprobs.content
        found = [(str(entry.token), math.exp(min(float(entry.logprob), 0.0))) for entry in entries]
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
