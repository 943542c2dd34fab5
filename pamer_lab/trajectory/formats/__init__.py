"""The formats we read, one module each, in the order they are tried.

Adding a format is one file and one line in `ORDER` (`docs/adding-a-format.md` shows it): specific ones come before general
ones, and `generic` is last.
"""

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Protocol

from pamer_lab.errors import NotThisFormat
from pamer_lab.trajectory.document import SUFFIXES, Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.parsing import Record
from pamer_lab.trajectory.shared.rows import SHAPE_ERRORS


class Format(Protocol):
    """The interface of a format module; it may also list the `SUFFIXES` of its files, if they are not `.json` or `.jsonl`."""

    NAME: str

    def detect(self, document: Document) -> bool:
        """Whether the document is of this format, by a cheap look at its content."""

    def read(self, document: Document) -> Iterator[Draft]:
        """One draft per trace, in file order; raising `NotThisFormat` passes the document on to the next format."""


ORDER = (
    "native",
    "qwen_code",
    "iflow",
    "claude_code",
    "cursor",
    "agent_stream",
    "claude_stream",
    "codex_rollout",
    "codex_exec",
    "nemo_gym",
    "generate_text",
    "ui_messages",
    "gemini_contents",
    "atif",
    "inspect_log",
    "langgraph",
    "tau_bench",
    "tau2_bench",
    "mini_swe_agent",
    "acm_run",
    "openhands_v1",
    "openhands_v0",
    "openhands_completion",
    "workbuddy",
    "request_log",
    "swe_agent",
    "verifiers_results",
    "opencode",
    "acp_updates",
    "goose",
    "cursor_store",
    "sqlite_chat",
    "copilot_events",
    "copilot_vscode",
    "copilot_replay",
    "amp",
    "augment",
    "junie",
    "crewai_log",
    "cline_sdk",
    "continue_session",
    "windsurf",
    "antigravity",
    "grok_build",
    "openclaw_telemetry",
    "recorder",
    "letta_file",
    "letta_evals",
    "adk_session",
    "sharegpt",
    "moatless",
    "bfcl",
    "kimi",
    "kiro",
    "toolbench",
    "alfworld",
    "agentbench",
    "browser_use",
    "codex_tui",
    "droid_session",
    "pi_session",
    "langfuse",
    "monocle",
    "chatgpt_export",
    "claude_ai_export",
    "chat_tree",
    "agent_tars",
    "exgentic",
    "cua_steps",
    "pydantic_ai",
    "smolagents",
    "autogen",
    "spans",
    "preferences",
    "call_log",
    "message_lists",
    "react_steps",
    "chat_pairs",
    "json_rows",
    "refusals",
    "anthropic_messages",
    "openai_chat",
    "event_log",
    "generic",
)


def formats() -> Iterator[Format]:
    """All format modules in the order they are tried, each imported when its turn comes."""
    return (import_module(f"{__name__}.{name}") for name in ORDER)  # type: ignore[misc]


def read_suffixes() -> list[str]:
    """Suffixes of the files that a folder import reads; a file named directly is read whatever its suffix."""
    own = {suffix for candidate in formats() for suffix in getattr(candidate, "SUFFIXES", ())}
    return sorted(SUFFIXES | own)


def claimants(document: Document) -> Iterator[Format]:
    """The formats that recognise this document, most specific first; the next is tried if one finds nothing to read."""
    return (candidate for candidate in formats() if _knows(candidate, document))


def read_inside(document: Document, records: list[Record], without: str) -> Iterator[Draft]:
    """Drafts of values that a file stores as text in its rows, read by the first format that recognises them, except `without`."""
    opened = replace(document, kind="jsonl" if len(records) > 1 else "json", records=tuple(records))
    for candidate in claimants(opened):
        if without != candidate.NAME:
            for draft in candidate.read(opened):
                draft.warn(draft.where or "file", "its messages were JSON text inside a row")
                yield draft
            return
    raise NotThisFormat("the text in its rows is not a conversation in a known format")


def _knows(candidate: Format, document: Document) -> bool:
    """Detection looks at untrusted values; a format that fails on an odd value does not recognise the document."""
    try:
        return candidate.detect(document)
    except SHAPE_ERRORS:
        return False
