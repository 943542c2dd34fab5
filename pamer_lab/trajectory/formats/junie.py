"""Junie (JetBrains) sessions: one event per line; the agent's actions are blocks that are logged again while they grow.

The last version of a block counts, in the position of its first. A block with a command, files or a tool is a call with its result. The
log shows what the user saw: it lacks the prompts sent to the model and some arguments.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import NO_ARGUMENTS, json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.rows import head, rows, warn_strays
from pamer_lab.trajectory.shared.usage import add_usage, usage_in
from pamer_lab.trajectory.values import ToolCall, Usage

NAME = "junie-events"
TOOLS = {
    "Terminal": "terminal",
    "ViewFiles": "view_files",
    "FileChanges": "file_changes",
    "TestRun": "test_run",
    "Mcp": "mcp",
    "Tool": "tool",
}
ARGUMENTS = ("command", "files", "changes", "arguments", "toolCall", "name", "text")
NOTES = {
    "SystemMessageEvent",
    "CancelAgentEvent",
    "TaskContinueStopped",
    "AgentTaskFailedEvent",
    "AgentFailureEvent",
    "AgentPatchCreatedEvent",
}
NOTES |= {"UserMessagesDroppedFromHistory", "AskRequestUpdatedEvent", "AskAsyncRequestUpdatedEvent", "ChoiceRequestUpdatedEvent"}
QUIET = frozenset(
    "TaskStartedEvent TaskState UserMessagesCommittedToHistory SendToAgentEvent SkillsStatusEvent AgentCurrentStatusUpdatedEvent "
    "AgentPlanUpdatedEvent AvailablePullRequestsEvent CurrentDirectoryUpdatedEvent EnvironmentVariablesUpdatedEvent "
    "ContextWindowReportEvent TipSuggestionCreatedEvent ShowPlanProgressEvent NextPromptSuggestionEvent AgentStartedEvent "
    "AuthorizationAvailabilityEvent SuggestPlanEvent AgentStateUpdatedEvent".split()
)
"""Events about the session and the screen, which the model does not see or which repeat others."""


def detect(document: Document) -> bool:
    found = head(document)
    return any((_kind(row) == "UserPromptEvent" and "prompt" in row) or bool(_agent_event(row).get("kind")) for row in found)


def _agent_event(row: dict[str, Any]) -> dict[str, Any]:
    return get.obj(get.obj(row, "event"), "agentEvent") if _kind(row) == "SessionA2uxEvent" else {}


def _kind(row: dict[str, Any]) -> str:
    """An event's kind without the package name that the IDE plugin puts before it."""
    return get.text(row, "kind").rpartition(".")[2]


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME, orphans="as_user")
    warn_strays(draft, document)
    blocks: dict[str, dict[str, Any]] = {}
    """Step -> the newest value of each field; the place is that of its first line."""
    for where, row in rows(document):
        event = _agent_event(row) or row
        kind = _kind(event)
        known = kind.endswith("BlockUpdatedEvent")
        key = get.text(event, "stepId") if known else ""
        block = blocks.setdefault(key or where, {"where": where, "at": row.get("timestampMs"), "kinds": []})
        block["kinds"].append(kind)
        block |= {name: value for name, value in event.items() if value not in (None, "", []) and name != "where"}
    log = Log(draft)
    spent: Usage | None = None
    for block in blocks.values():
        spent = _add(log, block, spent)
        log.stamp(block["at"])
    draft.usage = add_usage(draft.usage, spent)
    yield log.finish()


def _add(log: Log, block: dict[str, Any], spent: Usage | None) -> Usage | None:
    """Write one block; returns the usage that has not been given to a turn yet."""
    where, kinds = block["where"], block["kinds"]
    kind = kinds[-1]
    if kind in ("UserPromptEvent", "UserResponseEvent"):
        log.say("user", get.text(block, "prompt"), where)
    elif kind == "UserAsyncResponseEvent":
        log.say("user", json_text(block.get("entries") or block.get("response") or ""), where)
    elif kind == "LlmResponseMetadataEvent":
        log.close()
        for used in get.objects(block, "modelUsage") or [block]:
            sent = "inputTokens cacheInputTokens cacheCreateTokens"
            usage = usage_in(used, sent=sent, given="outputTokens", cached="cacheInputTokens", cost=used.get("cost"))
            spent = add_usage(spent, usage)
            log.draft.model = log.draft.model or get.text(used, "model")
        return spent
    elif kind == "SessionTitleSetEvent" or kind == "AgentTaskNameUpdatedEvent":
        log.draft.meta["title"] = block.get("name")
    elif kind == "CustomAgentBlockUpdatedEvent":
        log.mark("subagent", "", **get.facts(block, "name", "status"))
    elif kind in NOTES:
        rest = {name: value for name, value in block.items() if name not in ("where", "at", "kinds", "kind", "timestampMs")}
        log.mark("note", get.text(block, "text", "message", "patch") or json_text(rest), event=kind)
    elif kind.endswith("BlockUpdatedEvent"):
        return _done(log, block, {name.removesuffix("BlockUpdatedEvent") for name in kinds}, spent)
    else:
        log.draft.passed(kind or "no kind", where, QUIET)
    return spent


def _done(log: Log, block: dict[str, Any], kinds: set[str], spent: Usage | None) -> Usage | None:
    """Write what the agent thought, said or did in one step; returns like `_add`."""
    where = block["where"]
    tool = next((name for key, name in TOOLS.items() if key in kinds), "")
    if "AgentThought" in kinds:
        log.open(where).thinking.append(get.text(block, "text"))
    elif not tool and kinds <= {"Markdown", "Result"}:
        log.close()
        log.agent(get.text(block, "result").removeprefix("<!-- ANSWER -->") or get.text(block, "text"), where)
    elif tool:
        given = get.facts(block, *ARGUMENTS)
        arguments = json_text({name: value for name, value in given.items() if value is not None}) if any(given.values()) else NO_ARGUMENTS
        own = get.text(block, "stepId") or where
        log.call(ToolCall(own, get.text(block, "toolName") or tool, arguments), where)
        status = get.text(block, "status")
        output = block.get("output") or block.get("details")
        log.answer(own, output, where, failed=status in ("FAILED", "CANCELED", "REJECTED"), rest={"status": status})
    else:
        log.draft.unread(min(kinds), where)
        return spent
    if log.last is not None and log.last.usage is None and spent is not None:
        log.last.usage, log.draft.usage = spent, add_usage(log.draft.usage, spent)
        return None
    return spent
