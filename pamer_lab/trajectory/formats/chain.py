"""Lines that name their parent -> sessions, and each session in causal order.

Not a format itself. What always holds: no line is lost but exact repetitions of one (same `uuid`, same message); a line
never stands before its parent unless the parents form a ring.
"""

from heapq import heapify, heappop, heappush
from typing import Any

from pamer_lab.trajectory.formats.rows import Row


def parent_of(row: dict[str, Any]) -> str:
    """The line this one follows; after a compaction the logical one, because the chain starts anew there."""
    parent = row.get("parentUuid") or row.get("logicalParentUuid")
    return parent if isinstance(parent, str) else ""


def sessions(found: list[Row]) -> list[list[Row]]:
    """Lines grouped by session; sessions whose chains are joined (a resumed one) are one group."""
    leader: dict[str, str] = {}
    owner: dict[str, str] = {}
    for _, row in found:
        session = row.get("sessionId")
        if isinstance(session, str) and session:
            leader.setdefault(session, session)
            if isinstance(row.get("uuid"), str):
                owner.setdefault(row["uuid"], session)

    def lead(session: str) -> str:
        while leader[session] != session:
            session = leader[session]
        return session

    if len(leader) > 1:
        for _, row in found:
            session, above = row.get("sessionId"), owner.get(parent_of(row))
            if above and isinstance(session, str) and session:
                first, second = lead(above), lead(session)
                if first != second:
                    leader[second] = first
    groups: dict[str, list[Row]] = {}
    for item in found:
        session = item[1].get("sessionId")
        if isinstance(session, str) and session:
            groups.setdefault(lead(session), []).append(item)
    return list(groups.values())


def in_causal_order(group: list[Row]) -> tuple[list[Row], list[str]]:
    """The lines with parents before children (file order where that already holds, else time decides between equals),
    and the places of lines whose parents form a ring."""
    lines = _without_repetitions(group)
    place = {row["uuid"]: number for number, (_, row) in enumerate(lines) if isinstance(row.get("uuid"), str)}
    parents = [place.get(parent_of(row), -1) for _, row in lines]
    if all(parent < number for number, parent in enumerate(parents)):
        return lines, []
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
    left = sorted(set(range(len(lines))) - set(order))
    return [lines[number] for number in order + left], [lines[number][0] for number in left]


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
