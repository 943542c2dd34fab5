"""Settings, one model per stage; an unknown key is refused, never dropped.

Knows the environment variables and nothing of what the settings do.
"""

import hashlib
import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict

from pamer_lab.errors import InputError

WORKSPACE_VARIABLE = "PAMER_LAB_HOME"
CACHE_VARIABLE = "PAMER_LAB_CACHE"
MAX_FILE_VARIABLE = "PAMER_LAB_MAX_FILE_MB"
ROOTS_VARIABLE = "PAMER_LAB_ROOTS"
TOKEN_VARIABLE = "PAMER_LAB_TOKEN"  # noqa: S105 - the name of a setting
MOST_DIGITS = 7
"""Digits of a file limit in megabytes that are taken seriously; a longer number counts as not given."""


class Settings(BaseModel):
    """Base of every settings model."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ReadLimits(Settings):
    """How much of a stranger's file we are willing to read."""

    max_bytes: int = 200_000_000
    """Bytes of a file, after decompression."""
    max_members: int = 500_000
    """Records of a JSONL file."""
    max_archive_members: int = 50_000
    """Members of a zip, files of one upload, files below one folder."""
    max_upload_bytes: int = 1_000_000_000
    """Bytes of all files of one upload together, as they were sent."""

    @property
    def max_values(self) -> int:
        """JSON values of a file. Ordinary traces hold one value in 40 bytes or more; a file made of `[]` holds one in three, and
        each takes 60 bytes or more of memory once it is parsed."""
        return self.max_bytes // 20

    @classmethod
    def from_environment(cls) -> "ReadLimits":
        megabytes = os.environ.get(MAX_FILE_VARIABLE, "")
        if not megabytes.isdecimal() or not 0 < len(megabytes) <= MOST_DIGITS:
            return cls()
        size = int(megabytes) * 1_000_000
        return cls(max_bytes=size, max_upload_bytes=max(size, cls().max_upload_bytes))


def app_folder() -> Path:
    """The folder of `app.py`, `pages/`, `.streamlit/` and `sample_traces/`: the checkout, or the copy that the wheel installs."""
    package = Path(__file__).resolve().parent
    installed = package / "_app"
    return installed if installed.is_dir() else package.parent


def default_workspace() -> Path:
    """The workspace folder when none was named; for a workspace in an object store, its local folder."""
    return local_folder(os.environ.get(WORKSPACE_VARIABLE) or ".pamer-lab")


SCHEMES = ("s3", "gs", "az")
"""Object stores that LanceDB reads and writes."""
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""LanceDB would take an address with any other bucket name for a folder on this machine."""
_FOLDER = re.compile(r"(?!\.\.?$)[^#%\\]+")
"""A part of an address that is taken literally; others could make two addresses one place, or put data elsewhere."""
ADDRESS_FILE = "object-store.txt"
"""In the local folder of a workspace that is in an object store: its address."""


def local_folder(place: str | Path) -> Path:
    """The folder of a workspace: itself, or for one in an object store what this machine keeps for it (locks, cached reads, copies
    of heads and profiles), which can be deleted at any time."""
    address = object_store(str(place))
    if not address:
        return _folder_of(str(place)) if str(place).startswith("file://") else Path(place)
    name = re.sub(r"[^A-Za-z0-9]+", "-", address)[:80].strip("-")
    folder = local_folders() / f"{name}-{hashlib.sha256(address.encode()).hexdigest()[:12]}"
    marker = folder / ADDRESS_FILE
    try:
        if not marker.exists():
            folder.mkdir(parents=True, exist_ok=True)
            marker.write_text(address, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror}); set {CACHE_VARIABLE} to a writable folder", path=str(folder)) from error
    return folder


def _folder_of(address: str) -> Path:
    """The folder that a `file://` address names on this machine."""
    parts = urlsplit(address)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment or not parts.path.strip("/"):
        raise InputError(
            "a file:// workspace must be a folder on this machine, without host, credentials or options, such as file:///path/to/workspace"
        )
    return Path(unquote(parts.path))


def object_store(text: str) -> str:
    """The address, without a slash at its end, if a text names a place in an object store; empty for a folder.

    Credentials belong in the environment: an address that carries any is refused, and not repeated.
    """
    scheme, separator, rest = text.partition("://")
    if not separator and (begun := text.partition(":")[0].lower()) in (*SCHEMES, "file") and text[len(begun) :][:1] == ":":
        raise InputError(f"an address has two slashes behind the colon, such as {begun}://…; a folder of that name is written ./{begun}:…")
    if not separator or scheme == "file":
        return ""
    if scheme not in SCHEMES:
        known = ", ".join(f"{name}://" for name in (*SCHEMES, "file"))
        raise InputError(f"a workspace is a folder or one of {known}, not {scheme[:20]}://")
    if "@" in rest or "?" in rest:
        raise InputError("a workspace's address must not contain credentials or options; set them in the environment (docs/scale.md)")
    bucket, *folders = rest.rstrip("/").split("/")
    if not _BUCKET.fullmatch(bucket):
        raise InputError(f"{scheme}:// needs a bucket of letters, digits, '.', '_' and '-', such as {scheme}://bucket/workspace")
    if not all(_FOLDER.fullmatch(name) and name.isprintable() for name in folders):
        raise InputError(f"folders of {scheme}://{bucket} have a name that is not '.' or '..', without #, %, \\ and line breaks")
    return "/".join((f"{scheme}:/", bucket, *folders))


def address_of(folder: Path) -> str:
    """The object store that a local folder belongs to; empty where the folder is the workspace itself.

    Only folders in this user's own cache count: a folder that somebody else made never sends its data anywhere.
    """
    marker = folder / ADDRESS_FILE
    if folder.parent.resolve() != local_folders().resolve() or not marker.is_file():
        return ""
    return object_store(marker.open(encoding="utf-8").readline().strip())


def local_folders() -> Path:
    """Where the local folders of workspaces in object stores are."""
    return cache_folder() / "workspaces"


def cache_folder() -> Path:
    """Where prepared models live; shared by all workspaces of this user."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named) if named else Path.home() / ".cache" / "pamer-lab"


def user_folder() -> Path:
    """The folder of this user's settings for all workspaces."""
    named = os.environ.get("XDG_CONFIG_HOME")
    return (Path(named) if named else Path.home() / ".config") / "pamer-lab"
