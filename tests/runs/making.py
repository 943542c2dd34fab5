"""Small traces made by hand, and replay without a store."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.controller.probe import TextProbe
from pamer_lab.factory import Factory, Parts
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.registry import parse_policy
from pamer_lab.policies.resources import RunResources
from pamer_lab.runs.timeline import Timeline, lay_out
from pamer_lab.runs.turns import replay_turns
from pamer_lab.runs.values import Turn
from pamer_lab.trajectory.values import Message, Tool, ToolCall, Trace
from pamer_lab.workspace import Workspace

PLAIN = ["base", "sliding-window:2", "sliding-window:3:budget=300", "periodic-summary:2", "periodic-summary:2:accumulate:keep=0"]
"""Policies that need no model."""


PARTS = Parts(embedder=HashingEmbedder(64), probe=TextProbe())
PAMER = ["pamer", "pamer+", "pamer-no-recall", "pamer-no-compression"]
SMALL = ":minimum=60:retained=1"
"""Settings with which small traces compress and recall."""


def call(number: int, query: str, result: str, said: str = "") -> list[Message]:
    """A block: one search and its result."""
    asked = ToolCall(f"c{number}", "search", json.dumps({"q": query}))
    return [Message("assistant", said, (asked,)), Message("tool", result, tool_call_id=f"c{number}", name="search")]


def make_trace(blocks: list[list[Message]], *, task: str = "Who founded the museum?", trace_id: str = "t-made", **fields: Any) -> Trace:
    messages = [Message("system", "You are a researcher."), Message("user", task), *(message for block in blocks for message in block)]
    return Trace(trace_id, fields.pop("question_id", trace_id), "made", tuple(messages), (Tool("search", "finds documents"),), **fields)


def long_trace(turns: int, *, words: int = 60, trace_id: str = "t-long", **fields: Any) -> Trace:
    """A trace of many searches with different results."""
    blocks = [
        call(n, f"clue number {n}", f"Document D{n:04d} of 19{n % 90 + 10}: " + " ".join(f"word{n * 7 + k}" for k in range(words)))
        for n in range(turns)
    ]
    return make_trace(blocks, trace_id=trace_id, **fields)


def huge_trace() -> Trace:
    """Letters longer than PaMER+'s evidence budget, one of which is asked for at the end."""
    blocks = [call(n, f"letter L{n:04d}", f"Letter L{n:04d} says {'word ' * 9_000}") for n in range(5)]
    small = [call(5, "desk", "A clerk."), call(6, "index", "It names L0001 first."), call(7, "more", "none")]
    return make_trace([*blocks, *small], trace_id="t-huge")


def estimated() -> MessageTokens:
    return MessageTokens(EstimatedCounter())


def timeline_of(trace: Trace) -> Timeline:
    return lay_out(trace, estimated())


def turns_of(
    trace: Trace, policy: str, known: tuple[Turn, ...] = (), *, workspace: Path = Path("unused"), parts: Parts | None = None
) -> list[Turn]:
    """All turns of a trace, without timings; only memories are stored."""
    resources = resources_of(workspace, parts)
    turns = [*known, *map(untimed, replay_turns(timeline_of(trace), parse_policy(policy), resources, known))]
    resources.save()
    return turns


def resources_of(workspace: Path = Path("unused"), parts: Parts | None = None) -> RunResources:
    """What a policy works with: estimated tokens, a hashing embedder and a probe that reads texts."""
    given = dataclasses.replace(parts or PARTS, tokens=estimated())
    return RunResources(Factory(load_profile("embedded"), Workspace(workspace), "cpu", parts=given), "session")


def untimed(turn: Turn) -> Turn:
    return replace(turn, seconds=0.0)
