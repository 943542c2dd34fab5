"""What a provider billed, split into uncached, read, write and output; what it does not report stays unknown.

Reads a copy of the answer, complete or streamed, in the formats of the three APIs. Invariant: unknown is None, never zero.
"""

import zlib
from typing import Any

import orjson
from msgspec import Struct

from pamer_lab.errors import FormatError
from pamer_lab.live.wire import Api, read_answer_message
from pamer_lab.prices import MILLION, PriceTable
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.streams import answer_of, events_of
from pamer_lab.trajectory.values import Message, Usage

MOST_BYTES = 64_000_000
MOST_ENCODINGS = 3
"""Maximum number of nested content encodings of a body."""


class Billing(Struct, frozen=True, omit_defaults=True):
    """Tokens of one call as the provider reported them; None: not reported."""

    uncached: int | None = None
    read: int | None = None
    write: int | None = None
    output: int | None = None

    @property
    def input(self) -> int | None:
        """All input tokens; None if not reported."""
        return None if self.uncached is None else self.uncached + (self.read or 0) + (self.write or 0)

    def as_usage(self) -> Usage:
        return Usage(self.input or 0, self.output or 0, self.read or 0)

    def money(self, prices: PriceTable) -> float | None:
        """Its cost; None if input or output is unknown."""
        if self.uncached is None or self.output is None:
            return None
        parts = (
            (self.uncached, prices.uncached),
            (self.read or 0, prices.read),
            (self.write or 0, prices.write),
            (self.output, prices.output),
        )
        return sum(tokens * price for tokens, price in parts) / MILLION


class Answer(Struct, frozen=True):
    """The message and usage of an answer, or why they could not be read."""

    message: Message | None = None
    usage: Billing | None = None
    response_id: str = ""
    error: str = ""


def read_answer(api: Api, body: bytes, headers: dict[str, str]) -> Answer:
    """Parse an answer's bytes; a damaged answer gives whatever can be read."""
    try:
        text = decoded(body, headers.get("content-encoding", ""))
    except (OSError, ValueError, zlib.error, EOFError) as fault:
        return Answer(error=f"the answer could not be decoded ({fault})")
    streamed = "text/event-stream" in headers.get("content-type", "") or text.lstrip()[:6] in (b"event:", b"data: ")
    if streamed:
        events = events_of(text.decode("utf-8", "replace"))
        value: Any = answer_of(events)
        error = next((get.text(get.obj(event, "error"), "message", "type") for event in events if isinstance(event.get("error"), dict)), "")
    else:
        try:
            value, error = orjson.loads(text), ""
        except orjson.JSONDecodeError:
            return Answer(error="the answer is not JSON")
    if not isinstance(value, dict):
        return Answer(error=error or "the answer has an unknown format")
    try:
        message = read_answer_message(api, value)
    except (FormatError, KeyError, TypeError, AttributeError, IndexError) as fault:
        return Answer(None, billing(api, value.get("usage")), get.text(value, "id"), f"the answer could not be read ({fault})")
    return Answer(message, billing(api, value.get("usage")), get.text(value, "id"), error)


def billing(api: Api, usage: Any) -> Billing | None:
    """A provider's usage; None where there is none."""
    if not isinstance(usage, dict):
        return None
    if api == "messages":
        found = Billing(
            get.count(usage, "input_tokens"),
            get.count(usage, "cache_read_input_tokens"),
            get.count(usage, "cache_creation_input_tokens"),
            get.count(usage, "output_tokens"),
        )
    else:
        sent = get.count(usage, "prompt_tokens", "input_tokens")
        details = get.obj(usage, "prompt_tokens_details", "input_tokens_details")
        read = get.count(details, "cached_tokens")
        if read is None:
            read = get.count(usage, "prompt_cache_hit_tokens")
        write = get.count(details, "cache_write_tokens", "cache_creation_tokens")
        uncached = None if sent is None else max(0, sent - (read or 0) - (write or 0))
        found = Billing(uncached, read, write, get.count(usage, "completion_tokens", "output_tokens"))
    return found if found != Billing() else None


def decoded(body: bytes, encoding: str) -> bytes:
    """A body without its content encoding, decompressed up to `MOST_BYTES`; `ValueError` for an unknown encoding."""
    names = [part.strip().lower() for part in encoding.split(",") if part.strip()]
    if len(names) > MOST_ENCODINGS:
        raise ValueError(f"{len(names)} nested content encodings")
    for name in reversed(names):
        body = _decoded(body, name)
    return body


def _decoded(body: bytes, name: str) -> bytes:
    match name:
        case "identity":
            return body
        case "gzip" | "x-gzip" | "deflate":
            reader = zlib.decompressobj(16 + zlib.MAX_WBITS if "gzip" in name else zlib.MAX_WBITS)
            try:
                return reader.decompress(body, MOST_BYTES)
            except zlib.error:
                if name != "deflate":
                    raise
                return zlib.decompressobj(-zlib.MAX_WBITS).decompress(body, MOST_BYTES)
        case "zstd" | "br":
            import pyarrow as pa

            with pa.input_stream(pa.BufferReader(body), compression="zstd" if name == "zstd" else "brotli") as stream:
                found: bytes = stream.read(MOST_BYTES)
                return found
    raise ValueError(f"unknown content encoding {name!r}")
