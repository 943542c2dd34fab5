"""Settings, one model per stage; an unknown key is refused, never dropped.

Knows the environment variables and nothing of what the settings do.
"""

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict

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
    """The workspace folder when none was named."""
    return Path(os.environ.get(WORKSPACE_VARIABLE) or ".pamer-lab")


def cache_folder() -> Path:
    """Where prepared models live; shared by all workspaces of this user."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named) if named else Path.home() / ".cache" / "pamer-lab"


def user_folder() -> Path:
    """What this user decided for all workspaces."""
    named = os.environ.get("XDG_CONFIG_HOME")
    return (Path(named) if named else Path.home() / ".config") / "pamer-lab"
