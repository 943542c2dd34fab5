"""Price tables as data: each with its source and date, none presented as current.

A table gives prices per million tokens for input that a provider's prompt cache serves (`read`), stores (`write`) or neither (`uncached`),
and for output, plus the cache's minimum, granularity and lifetime. Packaged tables are TOML files in `tables/`; a user's own are TOML files
named on the command line or kept in `prices/` of the workspace.
"""

import re
from datetime import date
from pathlib import Path

import msgspec

from pamer_lab.errors import InputError, UnknownNameError
from pamer_lab.opening import parse_toml, read_text
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode
from pamer_lab.storage.files import write_whole
from pamer_lab.storage.shared_files import publish, refresh

PACKAGED = Path(__file__).parent / "tables"
PACKAGED_NAMES = tuple(sorted(path.stem for path in PACKAGED.glob("*.toml")))
FOLDER = "prices"
"""Folder of a workspace with the user's own tables."""
DEFAULT = "relative-0.1"
MILLION = 1_000_000
MOST = 1_000_000_000
"""Largest number in a table: no price comes near it, and no sum of costs overflows."""
BYTE_ORDER_MARK = "\ufeff"
"""What some editors write before a UTF-8 text."""
_NAME = re.compile(r"[a-z0-9][a-z0-9.+-]{0,59}")


class PriceTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a provider bills, and how its prompt cache works."""

    name: str = ""
    """The file's name without its ending."""
    uncached: float
    """Input that is neither read from the cache nor stored in it; also the input of auxiliary calls."""
    read: float
    """Input served from the cache."""
    write: float
    """Input stored in the cache; equal to `uncached` where storing is free."""
    output: float
    minimum_tokens: int
    """Shortest prefix that is cached. 0: any."""
    granularity_tokens: int
    """Prefixes are cached in multiples of this many tokens. 1: any length."""
    lifetime_seconds: float
    """How long a prefix stays cached after its last use. 0: nothing is cached."""
    source: str = "your own table"
    date: str = ""
    """When the source said so: a year, month or day. Prices change; this is not when they were last valid."""
    currency: str = "USD"
    note: str = ""

    @property
    def caches(self) -> bool:
        return self.lifetime_seconds > 0

    @property
    def dated(self) -> str:
        """Name and date, wherever the table is named."""
        return f"{self.name} ({self.date or 'no date'})"

    @property
    def described(self) -> str:
        """Name, date and source in a line, for captions."""
        return f"{self.name} ({', '.join(part for part in (self.date, self.source) if part)})"


NUMBERS = "uncached read write output minimum_tokens granularity_tokens lifetime_seconds".split()


def read_table(path: Path) -> PriceTable:
    """The table in a TOML file; any fault is an `InputError`."""
    try:
        found = parse_toml(read_text(path).removeprefix(BYTE_ORDER_MARK))
        if isinstance(found.get("date"), date) or type(found.get("date")) is int:  # dates and years need no quotes in TOML
            found["date"] = str(found["date"])
        table = msgspec.convert(found, PriceTable)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", path=str(path)) from error
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(f"is not a price table ({error}). It takes {', '.join(NUMBERS)}; see docs/cost.md", path=str(path)) from error
    for name in NUMBERS:
        value = getattr(table, name)
        if not 0 <= value <= MOST:
            raise InputError(f"has {name} = {value}; it must be a number from 0 to {MOST:,}", path=str(path))
    if table.granularity_tokens < 1:
        raise InputError("has granularity_tokens = 0; it must be 1 or more", path=str(path))
    return msgspec.structs.replace(table, name=path.stem)


def price_tables(workspace: Path | None = None) -> tuple[list[PriceTable], list[str]]:
    """All tables that can be read, and a sentence for each that cannot."""
    tables, broken = [], []
    for path in _files(workspace).values():
        try:
            tables.append(read_table(path))
        except InputError as error:
            broken.append(error.sentence)
    return tables, broken


def find_prices(text: str = "", workspace: Path | None = None) -> PriceTable:
    """The table that a user names: a file, or the name of a table; an empty text means the default."""
    if text.endswith(".toml") or "/" in text:
        return read_table(Path(text))
    files = _files(workspace)
    if (text or DEFAULT) not in files:
        raise UnknownNameError("price table", text, list(files))
    return read_table(files[text or DEFAULT])


def _files(workspace: Path | None) -> dict[str, Path]:
    """Files by the name of their table: the packaged ones, then the workspace's own, which replace packaged ones of the same name."""
    if workspace:
        refresh(workspace)
    folders = [PACKAGED, *([workspace / FOLDER] if workspace else [])]
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.toml"))}


def write_table(table: PriceTable, workspace: Path) -> Path:
    """Save a user's own table in a workspace, all or nothing."""
    refuse_in_reviewer_mode("Changing prices", workspace)
    if not _NAME.fullmatch(table.name):
        raise InputError(f"a table's name may contain lower-case letters, digits, dots and dashes, not {table.name[:60]!r}")
    path = workspace / FOLDER / f"{table.name}.toml"
    fields = {name: value for name, value in msgspec.structs.asdict(table).items() if name != "name"}
    write_whole(path, "".join(f"{name} = {msgspec.json.encode(value).decode()}\n" for name, value in fields.items()).encode(), parents=True)
    publish(workspace, path)
    return path
