"""Settings, one model per stage; an unknown key is refused, never dropped.

Knows the environment variables and nothing of what the settings do.
"""

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict

WORKSPACE_VARIABLE = "PAMER_LAB_HOME"
CACHE_VARIABLE = "PAMER_LAB_CACHE"
MAX_FILE_VARIABLE = "PAMER_LAB_MAX_FILE_MB"


class Settings(BaseModel):
    """Base of every settings model."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ReadLimits(Settings):
    """How much of a stranger's file we are willing to read."""

    max_bytes: int = 200_000_000
    """Bytes of a file, after decompression."""
    max_members: int = 500_000
    """Records of a JSONL file, members of a zip."""

    @classmethod
    def from_environment(cls) -> "ReadLimits":
        megabytes = os.environ.get(MAX_FILE_VARIABLE, "")
        return cls(max_bytes=int(megabytes) * 1_000_000) if megabytes.isdigit() else cls()


def default_workspace() -> Path:
    """The workspace folder when none was named."""
    return Path(os.environ.get(WORKSPACE_VARIABLE) or ".pamer-lab")


def cache_folder() -> Path:
    """Where prepared models live; shared by all workspaces of this user."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named) if named else Path.home() / ".cache" / "pamer-lab"
