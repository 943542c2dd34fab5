"""A table that cannot be read: back to its newest readable version, or set aside. Nothing is deleted.

Only for a database in a local folder; an object store's own versioning has to help otherwise.
"""

from pathlib import Path

import lancedb

from pamer_lab.errors import StorageError
from pamer_lab.storage.specs import TableSpec


def recover(uri: str, spec: TableSpec) -> str:
    """Discard versions until one is readable, or move the table away if none is; returns what was done."""
    folder = Path(uri) / f"{spec.name}.lance"
    if not folder.is_dir():
        raise StorageError(f"table {spec.name!r} at {uri} cannot be recovered; restore it from a backup")
    try:
        for manifest in sorted((folder / "_versions").glob("*.manifest")):  # LanceDB names them newest first
            if _reads(uri, spec):
                return f"table {spec.name!r} was restored to its newest readable version"
            manifest.rename(manifest.with_suffix(".broken"))
        aside = next(place for number in range(1000) if not (place := folder.with_name(f"{folder.stem}.broken-{number}")).exists())
        folder.rename(aside)
    except OSError as error:
        raise StorageError(f"table {spec.name!r} at {uri} cannot be recovered ({error})") from error
    return f"table {spec.name!r} had no readable version and was moved to {aside.name}"


def _reads(uri: str, spec: TableSpec) -> bool:
    """Can the newest version be read completely, by a connection with an empty cache?"""
    try:
        lancedb.connect(uri).open_table(spec.name).search().to_arrow()
        return True
    except Exception:
        return False
