"""HTTP cassettes that VCR libraries write as YAML -> plain values.

Only files that begin like a cassette are parsed, and every scalar stays text. Invariant: no tag but `!!binary` is honoured, so a
file only ever becomes texts, lists and objects; aliases, which can make a small file endless, are refused, and all compressed bodies
together stay within one budget.
"""

import base64
import binascii
import re
from typing import Any

from pamer_lab.config import ReadLimits
from pamer_lab.errors import InputError
from pamer_lab.opening import Budget
from pamer_lab.trajectory.unpacking import GZIP_MAGIC, gunzip

CASSETTE = re.compile(rb"\A(?:---[^\n]*\n|#[^\n]*\n|version:[^\n]*\n|recorded_with:[^\n]*\n|\s)*+(?:http_)?interactions:", re.ASCII)
CASSETTE_SUFFIXES = (".yaml", ".yml")
MOST_DEPTH = 100


def is_cassette(data: bytes) -> bool:
    """Whether these bytes look like a cassette."""
    return CASSETTE.match(data[:4_000]) is not None


def read_cassette(data: bytes, limits: ReadLimits) -> Any:
    """The cassette as lists, objects and texts."""
    import yaml

    class Loader(yaml.CBaseLoader):  # type: ignore[misc]
        """Keeps scalars as text and decodes binary bodies."""

    budget = Budget(len(data))

    def binary(loader: Any, node: Any) -> str:
        try:
            body = base64.b64decode(str(node.value))
        except (binascii.Error, ValueError):
            return str(node.value)
        if body[:2] == GZIP_MAGIC:
            body = gunzip(body, limits.model_copy(update={"max_bytes": min(limits.max_bytes, budget.left)}))
            budget.take(len(body))
        return body.decode("utf-8", "replace")

    Loader.add_constructor("tag:yaml.org,2002:binary", binary)
    try:
        depth = 0
        for values, event in enumerate(yaml.parse(data, Loader=yaml.CBaseLoader)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > MOST_DEPTH or values > limits.max_members:
                raise InputError("is a YAML cassette with aliases, or nested too deeply, or with too many values; record it again as JSON")
        return yaml.load(data, Loader=Loader)  # noqa: S506 - the base loader makes texts, lists and objects only
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark else ""
        raise InputError(f"is not valid YAML ({getattr(error, 'problem', None) or 'unreadable'})", where=where) from error
    except RecursionError as error:
        raise InputError("is YAML that is nested too deeply") from error
