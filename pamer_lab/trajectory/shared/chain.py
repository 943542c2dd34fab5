"""Lines that name their parent -> sessions, and each session in causal order.

Invariant: no line is lost except exact repeats (same `uuid`, same message), and a line never comes before its parent unless the
parents form a cycle.
"""

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.rows import Row, rows, warn_strays


def parent_of(row: dict[str, Any]) -> str:
    """The line this one follows; after a compaction the logical one, because a new chain starts there."""
    parent = row.get("parentUuid") or row.get("logicalParentUuid")
    return parent if isinstance(parent, str) else ""


def session_of(row: dict[str, Any]) -> str:
    """The session a line names; empty where it names none."""
    session = row.get("sessionId")
    return session if isinstance(session, str) else ""


def read_sessions(document: Document, name: str, read_session: Callable[[Draft, list[Row]], Draft]) -> Iterator[Draft]:
    """A draft per session of a file."""
    found = rows(document)
    groups = sessions(found)
    held = {where for group in groups for where, _ in group}
    for number, group in enumerate(groups):
        draft = Draft(name, where=f"session {number + 1}" if len(groups) > 1 else "", orphans="as_user")
        if number == 0:
            warn_strays(draft, document)
            for where, row in found:
                if where not in held:
                    draft.unread(get.text(row, "type") or "no type", where)
        yield read_session(draft, group)


def sessions(found: list[Row]) -> list[list[Row]]:
    """Lines grouped by session; sessions whose chains are joined (a resumed one) are one group.

    A message that names no session belongs to its parent's, else to the one named last before it.
    """
    owner: dict[str, str] = {}
    named: list[tuple[str, Row]] = []
    current = next((session for _, row in found if (session := session_of(row))), "")
    for item in found:
        row = item[1]
        current = session_of(row) or current
        if session_of(row) or isinstance(row.get("message"), dict):
            session = session_of(row) or owner.get(parent_of(row)) or current
            named.append((session, item))
            if isinstance(row.get("uuid"), str):
                owner.setdefault(row["uuid"], session)
    leader = {session: session for session, _ in named}

    def lead(session: str) -> str:
        while leader[session] != session:
            session = leader[session]
        return session

    if len(leader) > 1:
        for session, (_, row) in named:
            above = owner.get(parent_of(row))
            if above is not None and lead(above) != lead(session):
                leader[lead(session)] = lead(above)
    groups: dict[str, list[Row]] = {}
    for session, item in named:
        groups.setdefault(lead(session), []).append(item)
    return list(groups.values())


def in_causal_order(draft: Draft, group: list[Row]) -> list[Row]:
    """The lines with parents before children: file order where that already holds, else time decides between equals."""
    lines = _without_repetitions(group)
    place = {row["uuid"]: number for number, (_, row) in enumerate(lines) if isinstance(row.get("uuid"), str)}
    parents = [place.get(parent_of(row), -1) for _, row in lines]
    if all(parent < number for number, parent in enumerate(parents)):
        return lines
    children: dict[int, list[int]] = {}
    for number, parent in enumerate(parents):
        children.setdefault(parent, []).append(number)
    ready = [(_time(lines[number]), number) for number in children.get(-1, [])]
    heapify(ready)
    order: list[int] = []
    while ready:
        _, number = heappop(ready)
        order.append(number)
        for child in children.get(number, ()):
            heappush(ready, (_time(lines[child]), child))
    if left := sorted(set(range(len(lines))) - set(order)):
        draft.warn(lines[left[0]][0], f"{len(left)} lines name each other as parents; they are at the end, in file order")
    return [lines[number] for number in order + left]


def _time(item: Row) -> str:
    stamp = item[1].get("timestamp")
    return stamp if isinstance(stamp, str) else ""


def _without_repetitions(group: list[Row]) -> list[Row]:
    seen: dict[str, Any] = {}
    kept: list[Row] = []
    for item in group:
        uuid = item[1].get("uuid")
        if isinstance(uuid, str):
            if uuid in seen and seen[uuid] == item[1].get("message"):
                continue
            seen.setdefault(uuid, item[1].get("message"))
        kept.append(item)
    return kept
