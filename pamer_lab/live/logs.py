"""The log files of live sessions: one append-only file per session, readable while it grows.

A frame is its length, a checksum and MessagePack. A writer holds the session's lock and appends only after the last frame it has read; if
it finds newer frames, it reads them first, and it cuts off what a killed writer left unfinished. Invariant: every reader sees an appended
frame complete and exactly once. The folder and its files are readable only by their owner.
"""

import os
import re
import secrets
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
from filelock import FileLock

from pamer_lab.live.record import Frame, Opened, Record
from pamer_lab.opening import regular

FOLDER = "live"
_HEAD = struct.Struct("<II")
_DECODER = msgspec.msgpack.Decoder(Frame)
_ENCODER = msgspec.msgpack.Encoder()
SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,79}")
"""Session names that can be used as file names."""


class GrownError(Exception):
    """Raised when another process has added frames or restarted the file; read it, then decide again."""


class Logs:
    """The session files of one workspace."""

    def __init__(self, workspace: Path) -> None:
        self.folder = workspace / FOLDER

    def names(self) -> list[str]:
        """Session names, the most recently changed first."""
        if not self.folder.is_dir():
            return []
        own = (path for path in self.folder.glob("*.log") if SAFE.fullmatch(path.stem) and regular(path))
        files = [(path.stat().st_mtime, path.stem) for path in own]
        return [name for _, name in sorted(files, reverse=True)]

    def path(self, name: str) -> Path:
        if not SAFE.fullmatch(name):
            raise ValueError(f"{name[:80]!r} is not the name of a session")
        return self.folder / f"{name}.log"

    def size(self, name: str) -> int:
        try:
            return self.path(name).stat().st_size
        except OSError:
            return 0

    def read(self, name: str, record: Record | None = None, start: int = 0) -> tuple[Record | None, int]:
        """Add the frames from position `start` on to a session; returns it and the end of the last complete frame."""
        try:
            with self.path(name).open("rb") as stream:
                stream.seek(start)
                data = stream.read()
        except FileNotFoundError:
            return record, start
        at = 0
        while at + _HEAD.size <= len(data):
            length, check = _HEAD.unpack_from(data, at)
            body = data[at + _HEAD.size : at + _HEAD.size + length]
            if not length or len(body) < length or zlib.crc32(body) != check:
                break  # unfinished, or the zeros that a crash of the machine leaves
            frame = _DECODER.decode(body)
            if record is None and isinstance(frame, Opened):
                record = Record(frame)
            elif record is not None:
                record.add(frame)
            at += _HEAD.size + length
        return record, start + at

    def create(self, name: str, frame: Opened) -> int:
        """Create a session's file with its first frame; `FileExistsError` if the name is taken. Returns where the frame ends."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock(name):
            descriptor = os.open(self.path(name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            return self._write(descriptor, 0, [frame])

    def append(self, name: str, known: int, frames: Sequence[Frame]) -> int:
        """Append frames at position `known`; `GrownError` if another process was first. Returns where they end."""
        with self._lock(name):
            size = self.path(name).stat().st_size
            if size < known or (size > known and self.read(name, None, known)[1] > known):
                raise GrownError(name)  # a smaller file is a different one: ours was deleted
            return self._write(os.open(self.path(name), os.O_WRONLY), known, frames)

    def _write(self, descriptor: int, place: int, frames: Sequence[Frame]) -> int:
        packed = [_ENCODER.encode(frame) for frame in frames]
        data = b"".join(_HEAD.pack(len(body), zlib.crc32(body)) + body for body in packed)
        try:
            os.ftruncate(descriptor, place)
            written = 0
            try:
                while written < len(data):
                    written += os.pwrite(descriptor, data[written:], place + written)
            except OSError:
                os.ftruncate(descriptor, place)
                raise
        finally:
            os.close(descriptor)
        return place + len(data)

    def _lock(self, name: str) -> FileLock:
        return FileLock(self.folder / f"{name}.lock", timeout=10, mode=0o600)

    def salt(self) -> bytes:
        """The workspace's random salt, created once: hashes of credentials mean nothing elsewhere."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / "salt"
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            os.write(descriptor, secrets.token_bytes(16))
            os.close(descriptor)
        except FileExistsError:
            pass
        with path.open("rb") as stream:
            return stream.read(16)
