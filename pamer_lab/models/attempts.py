"""Calls to a server that may fail: bounded attempts with backoff, and one sentence when all have failed.

Knows the `openai` package's errors, not what is asked. An error that a retry cannot fix (a wrong model name, a rejected key, an invalid
request) is raised at once, and a key in a server's message is removed. An answer is limited in time, up to its last byte, and in size.
"""

import random
import re
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pamer_lab.counts import whole_number
from pamer_lab.errors import ModelError
from pamer_lab.models.profiles import ChatSettings, EmbeddingSettings
from pamer_lab.redaction import api_key, without_keys

T = TypeVar("T")

FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 20.0
MOST_BYTES = 256_000_000
"""Maximum size of an answer, unpacked."""
TRANSFER = ("content-encoding", "content-length", "transfer-encoding")
"""Headers about how an answer was transferred, which no longer apply once it is read."""
RETRIED_STATUS = frozenset({408, 409, 425, 429})
"""Statuses that are tried again, as is every 5xx."""


REQUEST_STATUS = frozenset({400, 413, 422, 500})
"""Statuses that concern this one request (too long, not understood, failed), not the caller or the server."""
_OVER_WINDOW = re.compile(r"context.?(length|window)|(prompt|input).{0,40}too (long|large)|maximum.{0,40}tokens", re.IGNORECASE)
"""How servers say that a prompt exceeds the model's window."""


class Unanswered(ModelError):
    """Raised when a model is available, but has no usable answer to this one request; other requests may succeed."""


class BadAnswer(Unanswered):
    """Raised when a server answered, but not in the agreed shape; another attempt may do better."""


class EndlessAnswer(BadAnswer):
    """Raised when an answer does not end in time, or is too large."""


class DoesNotFit(Unanswered):
    """Raised when a prompt exceeds the model's window or an answer its token limit; the same request fails again, a smaller one may not."""


def server_client(settings: ChatSettings | EmbeddingSettings) -> Any:
    """An `openai` client that sends what the profile names and nothing else: no organisation or project from the environment."""
    import openai

    seconds = settings.timeout_seconds
    client = openai.OpenAI(
        base_url=settings.base_url,
        api_key=api_key(settings.api_key_variable),
        timeout=seconds,
        max_retries=0,
        http_client=_bounded_client(seconds),
    )
    client.organization = client.project = None
    return client


def _bounded_client(seconds: float) -> Any:
    """An HTTP client with one time limit for a complete answer: the library's own applies to each piece, and pieces may never end."""
    import openai

    class Bounded(openai.DefaultHttpxClient):
        def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            until = time.monotonic() + seconds
            answer = super().send(request, stream=True, **options)
            try:
                body = _read(answer.iter_bytes(), until, seconds)
            finally:
                answer.close()
            headers = [(name, value) for name, value in answer.headers.multi_items() if name.lower() not in TRANSFER]
            return type(answer)(answer.status_code, headers=headers, content=body, request=answer.request)

    return Bounded(timeout=seconds)


def _read(pieces: Iterable[bytes], until: float, seconds: float) -> bytes:
    found, size = [], 0
    for piece in pieces:
        found.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise EndlessAnswer(f"the answer is larger than {MOST_BYTES // 1_000_000} MB")
        if time.monotonic() > until:
            raise EndlessAnswer(f"the answer had not ended after {seconds:g} seconds")
    return b"".join(found)


def with_attempts(
    call: Callable[[], T],
    *,
    what: str,
    attempts: int,
    sleep: Callable[[float], None] = time.sleep,
    cancelled: Callable[[], bool] = lambda: False,
    failed: Callable[[Exception], None] = lambda error: None,
) -> T:
    """The call's result; after `attempts` failures a `ModelError` that says what failed and how often.

    `failed` is called with the error of each attempt that is retried or was the last; counting its cost is up to the caller.
    """
    import openai

    reason: Exception | None = None
    for number in range(attempts):
        if number:
            sleep(_delay(number, reason))
        if cancelled():
            break
        try:
            return call()
        except openai.APIStatusError as error:
            if error.status_code not in RETRIED_STATUS and error.status_code < 500:
                raise _kind(error)(f"{what}: the server refused the request ({_short(error)})") from error
            reason = error
        except (openai.APIConnectionError, openai.APIResponseValidationError, BadAnswer) as error:
            reason = error.__cause__ if isinstance(error.__cause__, BadAnswer) else error
        except (ValueError, RecursionError) as error:  # the body was not JSON, or nested beyond reading
            reason = BadAnswer(f"the answer is not JSON ({error})")
        failed(reason)
    tried = f"{attempts} attempts" if attempts > 1 else "one attempt"
    raise _kind(reason)(f"{what}: no usable answer after {tried} ({_short(reason)})") from reason


def _kind(reason: Exception | None) -> type[ModelError]:
    """The error to raise: is this request at fault, or the server, the connection or the key?"""
    status = getattr(reason, "status_code", None)
    if status == 413 or (status in REQUEST_STATUS and _OVER_WINDOW.search(str(reason))):
        return DoesNotFit
    return Unanswered if isinstance(reason, BadAnswer) or status in REQUEST_STATUS else ModelError


def _delay(number: int, reason: Exception | None) -> float:
    """Seconds before attempt `number`: what the server asked for, else doubling, with some jitter."""
    response = getattr(reason, "response", None)
    asked = str(response.headers.get("retry-after", "")) if response is not None else ""
    if (seconds := whole_number(asked)) is not None:
        return min(float(max(seconds, 0)), LONGEST_DELAY_SECONDS)
    doubled = min(FIRST_DELAY_SECONDS * 2 ** (number - 1), LONGEST_DELAY_SECONDS)
    return float(doubled * random.uniform(0.75, 1.25))  # noqa: S311


def _short(error: Exception | None) -> str:
    text = " ".join(without_keys(str(error)).split()) if error else "stopped"
    return f"{type(error).__name__}: {text[:300]}" if error else text
