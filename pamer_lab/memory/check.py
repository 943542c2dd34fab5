"""`memory check`: verifies stored memories and repairs damaged ones. Reads every memory and every raw block."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pamer_lab.errors import StorageError
from pamer_lab.memory.records import Memory, RawBlock, is_intact
from pamer_lab.memory.schema import BLOCKS, MEMORIES, memories_of
from pamer_lab.memory.session import assemble
from pamer_lab.storage import Database, equals, is_in

ORPHAN_AGE = timedelta(hours=1)
BATCH = 500
"""Raw blocks read and hashed at a time, to bound memory."""


@dataclass
class Findings:
    """What a check found; empty lists mean that there are no problems."""

    memories: int = 0
    blocks: int = 0
    orphans: list[str] = field(default_factory=list)
    """Raw blocks that no memory names."""
    missing: list[str] = field(default_factory=list)
    """`memory id: raw block` for raw blocks that a memory names and that are missing or damaged."""
    mismatched: list[str] = field(default_factory=list)
    """Raw blocks and memories whose content does not match their hash."""
    duplicates: list[str] = field(default_factory=list)
    """Memories that have another's number or cover a block that an earlier one covers."""
    damaged: list[str] = field(default_factory=list)
    """Memories that are damaged in any other way, and unreadable tables, with the reason."""
    unreadable: list[str] = field(default_factory=list)
    """Tables that cannot be read."""
    repaired: list[str] = field(default_factory=list)
    """What was done, as sentences."""

    @property
    def clean(self) -> bool:
        """Whether every memory is complete and correct; orphans are harmless leftovers."""
        return not (self.missing or self.mismatched or self.duplicates or self.damaged or self.unreadable)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"clean": self.clean}


def check(database: Database) -> Findings:
    """Look at everything; change nothing."""
    return _examine(database)[0]


def repair(database: Database, *, orphan_age: timedelta = ORPHAN_AGE) -> Findings:
    """Check, repair, and report what was done; other processes need not stop.

    - A memory that is damaged, duplicated, or lacks raw blocks is deleted: its blocks become active again, because the caller
      still sends them; nothing is invented to take its place.
    - A raw block that does not match its hash is deleted, and with it the memories that name it.
    - A raw block that no memory names is deleted once it is older than `ORPHAN_AGE`, since a younger one may belong to a memory
      that is just being written.
    - A table that cannot be read goes back to its newest readable version, or is set aside if there is none.
    """
    before, _, _ = _examine(database)
    for name in before.unreadable:
        before.repaired.append(database.recover(MEMORIES if name == MEMORIES.name else BLOCKS))
    found, bad, broken = _examine(database)
    if broken:
        database.delete(BLOCKS, is_in("raw_hash", sorted(broken)))
        before.repaired.append(f"deleted {len(broken)} raw blocks that did not match their hash")
    for memory in bad:
        where = f"{equals('session_id', memory.session_id)} AND {equals('sequence', memory.sequence)}"
        database.delete(MEMORIES, f"{where} AND {equals('memory_id', memory.memory_id)}")
        before.repaired.append(f"deleted memory {memory.memory_id} of session {memory.session_id!r}; its blocks are active again")
    if found.orphans or bad:
        before.repaired.extend(_sweep(database, orphan_age))
    return before


def _sweep(database: Database, orphan_age: timedelta) -> Iterator[str]:
    """Delete old orphans, and restore any that a memory has come to reference."""
    findings, _, _ = _examine(database)
    rows = [row for batch in _batches(findings.orphans) for row in database.rows(BLOCKS, where=is_in("raw_hash", batch))]
    limit = datetime.now(UTC) - orphan_age
    old = [row for row in rows if row["written_at"] is None or row["written_at"] <= limit]
    if not old:
        return
    for batch in _batches([row["raw_hash"] for row in old]):
        database.delete(BLOCKS, is_in("raw_hash", batch))
    named = {block.raw_hash for memory in _memories(database) for block in memory.blocks}
    if needed := [row for row in old if row["raw_hash"] in named]:
        database.insert(BLOCKS, needed)
    yield f"deleted {len(old) - len(needed)} raw blocks that no memory refers to"


def _examine(database: Database) -> tuple[Findings, list[Memory], set[str]]:
    """Findings, the memories that are not sound, and the raw blocks that are not intact."""
    findings = Findings()
    hashes, broken = _blocks(database, findings)
    try:
        stored = _memories(database)
    except StorageError as error:
        findings.unreadable.append(MEMORIES.name)
        findings.damaged.append(str(error))
        return findings, [], broken
    findings.memories, findings.blocks = len(stored), len(hashes)
    named = {block.raw_hash for memory in stored for block in memory.blocks}
    findings.orphans = sorted(hashes - named)
    findings.mismatched += sorted(broken)
    bad: list[Memory] = []
    if not findings.unreadable:
        by_session: dict[str, list[Memory]] = {}
        for memory in stored:
            by_session.setdefault(memory.session_id, []).append(memory)
        for session_id, memories in by_session.items():
            bad += _unsound(session_id, memories, hashes - broken, findings)
    return findings, bad, broken


def _unsound(session_id: str, memories: list[Memory], intact: set[str], findings: Findings) -> list[Memory]:
    """The session's memories that a load would discard, sorted into the findings by their reason."""
    sound = assemble(session_id, memories, intact)
    kept = {id(memory) for memory in sound.memories}
    bad = [memory for memory in memories if id(memory) not in kept]
    for memory, reason in zip(bad, sound.discarded, strict=True):
        missing = [block.raw_hash for block in memory.blocks if block.raw_hash not in intact]
        findings.missing += [f"{memory.memory_id}: {name}" for name in missing]
        if "checksum" in reason:
            findings.mismatched.append(memory.memory_id)
        elif "another memory" in reason or "earlier memory" in reason:
            findings.duplicates.append(memory.memory_id)
        elif not missing:
            findings.damaged.append(reason)
    return bad


def _blocks(database: Database, findings: Findings) -> tuple[set[str], set[str]]:
    """Hashes of all archived blocks, and of those whose body does not match its hash."""
    hashes: set[str] = set()
    broken: set[str] = set()
    if not database.exists(BLOCKS):
        return hashes, broken
    try:
        names = database.arrow(BLOCKS, columns=["raw_hash"])["raw_hash"].to_pylist()
        for batch in _batches(sorted(set(names))):
            for row in database.rows(BLOCKS, where=is_in("raw_hash", batch), columns=["raw_hash", "body"]):
                hashes.add(row["raw_hash"])
                if not is_intact(RawBlock(row["raw_hash"], row["body"] or b"")):
                    broken.add(row["raw_hash"])
    except StorageError as error:
        findings.unreadable.append(BLOCKS.name)
        findings.damaged.append(str(error))
    return hashes, broken


def _memories(database: Database) -> list[Memory]:
    return memories_of(database.arrow(MEMORIES)) if database.exists(MEMORIES) else []


def _batches(names: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), BATCH):
        yield names[start : start + BATCH]
