"""Sessions that coding agents keep on this computer: where each tool puts them, which exist, and importing the chosen ones.

Knows the tools' folders and file names; the readers know the formats. Every chosen session goes through the scan for secrets before it is
stored. Invariant: only files below a tool's own folders are opened, and no link leads out of them.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path

import msgspec
import orjson

from pamer_lab.blocks import MessageTokens
from pamer_lab.config import ReadLimits
from pamer_lab.errors import InputError
from pamer_lab.opening import below, read_file, regular
from pamer_lab.redaction import Redaction, Scan, own_scan
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode
from pamer_lab.trajectory import Rejection, Trace, iter_traces, read_bytes
from pamer_lab.workspace.ingest import Imported, store_items
from pamer_lab.workspace.store import Workspace

MOST = 50
"""Sessions listed unless another number is asked for; the newest come first."""
MOST_FILES = 100_000
"""Maximum number of files examined in each of a tool's folders."""
FIRST_WORDS = 80
"""Characters of the first prompt that a list shows."""
OPENCODE_STORAGE = "storage/session/"
"""Where opencode kept sessions as small files before it had a database."""


@dataclass(frozen=True)
class AgentTool:
    """Where one tool keeps its sessions."""

    folders: tuple[str, ...]
    """Usual folders; `$NAME/…` where a variable may name another one."""
    patterns: tuple[str, ...]
    """Names of session files below a folder, as shell patterns that also match `/`."""


_APPLICATIONS = ("~/.config", "~/Library/Application Support", "$APPDATA")
"""Where Linux, macOS and Windows keep what programs store for a user."""
_VS_CODE = [f"{folder}/{name}/User" for folder in _APPLICATIONS for name in ("Code", "Code - Insiders", "VSCodium")]
TOOLS: dict[str, AgentTool] = {
    "claude-code": AgentTool(("$CLAUDE_CONFIG_DIR/projects", "~/.claude/projects", "~/.config/claude/projects"), ("*.jsonl",)),
    "codex": AgentTool(
        ("$CODEX_HOME/sessions", "~/.codex/sessions", "~/.codex/archived_sessions"),
        ("*rollout-*.jsonl", "*rollout-*.json"),
    ),
    "opencode": AgentTool(
        ("$XDG_DATA_HOME/opencode", "~/.local/share/opencode", "~/Library/Application Support/opencode"),
        ("opencode*.db", f"{OPENCODE_STORAGE}*.json"),
    ),
    "gemini": AgentTool(("~/.gemini/tmp",), ("*/chats/session-*.json", "*/chats/session-*.jsonl", "*/chats/*/*.jsonl")),
    "copilot": AgentTool(
        (
            "$COPILOT_HOME/session-state",
            "~/.copilot/session-state",
            "~/.copilot/history-session-state",
            *(f"{folder}/{name}" for folder in _VS_CODE for name in ("workspaceStorage", "globalStorage/emptyWindowChatSessions")),
        ),
        ("*events.jsonl", "*.jsonl", "session_*.json", "*/chatSessions/*.json", "????????-????-????-????-????????????.json"),
    ),
    "cursor": AgentTool(
        ("~/.cursor/projects", *(f"{folder}/Cursor/User/globalStorage" for folder in _APPLICATIONS)),
        ("*/agent-transcripts/*.jsonl", "state.vscdb"),
    ),
    "qwen": AgentTool(("$QWEN_HOME/projects", "~/.qwen/projects", "~/.qwen/tmp"), ("*/chats/*.jsonl", "*/chats/*.json")),
    "goose": AgentTool(
        (
            "$XDG_DATA_HOME/goose/sessions",
            "~/.local/share/goose/sessions",
            "~/.config/goose/sessions",
            "~/Library/Application Support/Block/goose/sessions",
            "$APPDATA/Block/goose/data/sessions",
        ),
        ("sessions.db", "*.jsonl"),
    ),
}


@dataclass(frozen=True)
class Session:
    """One session that was found."""

    path: str
    index: int
    """Number of the session within its file; a database holds many."""
    root: str
    """The tool's folder that it is below."""
    modified: str
    """When its file was last written, UTC."""
    bytes: int
    """Size of its file."""
    turns: int
    first: str
    """The first words of the user."""
    format: str
    trace_id: str
    fault: str = ""
    """Why it cannot be imported; empty if it can."""


@dataclass(frozen=True)
class Found:
    """The folders searched, and the sessions found there."""

    folders: tuple[str, ...]
    """The tool's folders that exist."""
    sessions: tuple[Session, ...]
    left: int
    """Older files that were not read."""


def tool_folders(name: str, allowed: Sequence[Path] | None = None) -> list[Path]:
    """The folders of a tool that exist, without links; with `allowed`, only those in or below one of these."""
    found: list[Path] = []
    for folder in _tool(name).folders:
        path = Path(os.path.expandvars(folder)).expanduser()
        if "$" in str(path) or not path.is_absolute() or not path.is_dir():
            continue
        real = Path(os.path.realpath(path))
        if real not in found and (allowed is None or _is_below(real, allowed)):
            found.append(real)
    return found


def all_folders() -> list[str]:
    """The usual folders of all tools, for the roots that pages may read."""
    return [folder for tool in TOOLS.values() for folder in tool.folders if not folder.startswith("$")]


def _tool(name: str) -> AgentTool:
    if name not in TOOLS:
        raise InputError(f"{name!r} is not a tool whose sessions can be found; known tools: {', '.join(TOOLS)}")
    return TOOLS[name]


def _is_below(path: Path, roots: Sequence[Path]) -> bool:
    try:
        below(path, roots)
    except InputError:
        return False
    return True


def find_sessions(name: str, *, most: int = MOST, allowed: Sequence[Path] | None = None, limits: ReadLimits | None = None) -> Found:
    """The newest sessions of a tool, each read once for its turns and first words."""
    limits = limits or ReadLimits.from_environment()
    folders = tool_folders(name, allowed)
    files = sorted(((file, root) for root in folders for file in _files(root, _tool(name).patterns)), key=_age)
    sessions: list[Session] = []
    read = 0
    for file, root in files:
        if len(sessions) >= most:
            break
        sessions += [_session(item, file, root) for item in _items(file, root, limits)]
        read += 1
    return Found(tuple(map(str, folders)), tuple(sessions[:most]), len(files) - read + max(0, len(sessions) - most))


def _files(root: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    """Session files below a folder; links are neither followed nor taken."""
    seen = 0
    for folder, _, names in os.walk(root, followlinks=False):
        for name in sorted(names):
            seen += 1
            if seen > MOST_FILES:
                return
            path = Path(folder) / name
            inner = path.relative_to(root).as_posix()
            if any(fnmatch(inner, pattern) for pattern in patterns) and not path.is_symlink() and regular(path):
                yield path


def _age(item: tuple[Path, Path]) -> tuple[float, str]:
    try:
        return (-item[0].stat().st_mtime, str(item[0]))
    except OSError:
        return (0.0, str(item[0]))


def _items(file: Path, root: Path, limits: ReadLimits) -> Iterator[Trace | Rejection]:
    if OPENCODE_STORAGE in file.relative_to(root).as_posix():
        yield from _stored_session(file, root, limits)
    else:
        yield from iter_traces([file], limits, roots=(root,))


def _stored_session(file: Path, root: Path, limits: ReadLimits) -> Iterator[Trace | Rejection]:
    """A session that opencode kept as small files: its messages, and the parts of each, put together as in its export."""
    storage = root / "storage"
    try:
        info = orjson.loads(read_file(file, limits.max_bytes, roots=(root,)))
        messages = []
        for body in _small_files(storage / "message" / file.stem, root, limits):
            own = body.get("id") if isinstance(body, dict) else None
            parts = _small_files(storage / "part" / str(own), root, limits) if isinstance(own, str) and own.isidentifier() else []
            messages.append({"info": body, "parts": parts})
    except InputError as error:
        yield Rejection(str(file), error.where, error.reason)
        return
    except (orjson.JSONDecodeError, OSError) as error:
        yield Rejection(str(file), "", f"cannot be read ({error})")
        return
    reading = read_bytes(orjson.dumps({"info": info, "messages": messages}), str(file), limits)
    yield from reading.traces
    yield from reading.rejected


def _small_files(folder: Path, root: Path, limits: ReadLimits) -> list[object]:
    if folder.is_symlink() or not folder.is_dir():
        return []
    names = sorted(path for path in folder.iterdir() if path.suffix == ".json")[: limits.max_archive_members]
    return [orjson.loads(read_file(path, limits.max_bytes, roots=(root,))) for path in names]


def _session(item: Trace | Rejection, file: Path, root: Path) -> Session:
    facts = file.stat()
    modified = datetime.fromtimestamp(facts.st_mtime, UTC).isoformat(timespec="minutes")
    place = (str(file), item.source.index if isinstance(item, Trace) and item.source else 0, str(root), modified, facts.st_size)
    if isinstance(item, Rejection):
        return Session(*place, 0, "", "", "", item.reason)
    return Session(*place, item.turns, _first_words(item), item.format, item.trace_id)


def _first_words(trace: Trace) -> str:
    """The beginning of the first prompt, without keys; messages that start with a tag, as agents insert them, are skipped if possible."""
    said = [" ".join(message.content.split()) for message in trace.messages if message.role == "user"]
    text = next((text for text in said if text and not text.startswith("<")), next(iter(said), ""))
    text = own_scan("keys").clean(text[: 4 * FIRST_WORDS], "first words")
    return text if len(text) <= FIRST_WORDS else text[: FIRST_WORDS - 1] + "…"


def choose(found: Sequence[Session], words: str) -> list[Session]:
    """Sessions of a list by `all`, by numbers from 1 (`1,3-5`), or by trace id."""
    if words.strip() == "all":
        return [session for session in found if not session.fault]
    kept: dict[int, Session] = {}
    ids = {session.trace_id: number for number, session in enumerate(found) if session.trace_id}
    for word in words.replace(" ", "").split(","):
        first, _, last = word.partition("-")
        if word in ids:
            kept[ids[word]] = found[ids[word]]
        elif first.isdecimal() and (last.isdecimal() or word == first) and 1 <= int(first) <= int(last or first) <= len(found):
            kept |= {number: found[number] for number in range(int(first) - 1, int(last or first))}
        else:
            raise InputError(f"{word[:60]!r} names none of the {len(found)} sessions; give numbers such as 1,3-5, trace ids, or all")
    return [kept[number] for number in sorted(kept)]


def import_sessions(
    sessions: Iterable[Session],
    workspace: Workspace,
    *,
    redact: Redaction = "keys",
    tokens: MessageTokens | None = None,
    store: bool = True,
) -> tuple[Imported, Scan]:
    """Scan the sessions for secrets, replace what `redact` names, and store them; without `store`, only scan them."""
    refuse_in_reviewer_mode("Reading sessions of this computer", workspace.path)
    scan = own_scan(redact)
    items = (_scanned(item, scan) for item in _chosen_items(sessions))
    if store:
        return store_items(items, workspace, tokens=tokens), scan
    return Imported(rejected=[item for item in items if isinstance(item, Rejection)]), scan


def _chosen_items(sessions: Iterable[Session]) -> Iterator[Trace | Rejection]:
    limits = ReadLimits.from_environment()
    wanted: dict[tuple[str, str], set[int]] = {}
    for session in sessions:
        wanted.setdefault((session.path, session.root), set()).add(session.index)
    for (path, root), numbers in wanted.items():
        for item in _items(Path(path), Path(root), limits):
            if isinstance(item, Rejection) or item.source is None or item.source.index in numbers:
                yield item


def _scanned(item: Trace | Rejection, scan: Scan) -> Trace | Rejection:
    """The trace with every text cleaned; its source, id and format stay."""
    if isinstance(item, Rejection):
        return item
    plain = msgspec.to_builtins(item)
    kept = {key: plain.pop(key) for key in ("source", "trace_id", "format") if key in plain}
    clean = scan.walk(plain, f"session {item.trace_id}")
    return item if clean == plain else msgspec.convert({**clean, **kept}, Trace)
