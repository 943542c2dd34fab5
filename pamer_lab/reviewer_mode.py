"""Reviewer mode: everything can be read, nothing can be written but reviews, no model is loaded and no path is read.

It is on when `PAMER_LAB_READONLY` is set (to anything but 0, false, no or off), or when the workspace's `config.toml`
says `readonly = true`; either is enough. Knows how the mode is switched on and how a refusal reads. Writes are refused where
the work is done: in the storage (every table that is not marked for reviewers), at the model loaders, at the importer and
before each file written into the workspace; pages and commands only hide what would be refused.
"""

import os
from pathlib import Path

from pydantic import ValidationError

from pamer_lab.config import Settings, default_workspace
from pamer_lab.errors import InputError
from pamer_lab.opening import parse_toml, read_text

READONLY_VARIABLE = "PAMER_LAB_READONLY"
CONFIG_FILE = "config.toml"
_OFF = frozenset({"", "0", "false", "no", "off"})


class LabSettings(Settings):
    """What a workspace's `config.toml` may set."""

    readonly: bool = False
    """Reviewer mode for this workspace."""
    roots: tuple[str, ...] = ()
    """Folders of this computer that pages may read; none: see `workspace/roots.py`."""


class ReviewerModeError(InputError):
    """Raised when reviewer mode refuses to write, to load a model or to read a path."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not possible in reviewer mode, which allows writing reviews only")


def lab_settings(folder: Path) -> LabSettings:
    """The settings of the workspace in `folder`; the defaults if it has no file."""
    path = folder / CONFIG_FILE
    try:
        return LabSettings.model_validate(parse_toml(read_text(path)))
    except (FileNotFoundError, NotADirectoryError):
        return LabSettings()
    except ValidationError as error:  # before ValueError, which it is too
        first = error.errors()[0]
        raise InputError(f"{first['msg']}; correct or remove it", path=str(path), where=".".join(map(str, first["loc"]))) from error
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({error})", path=str(path)) from error


def reviewer_mode(folder: Path | None = None) -> bool:
    """Whether reviewer mode is on for the workspace in `folder` (by default the one that is in use)."""
    if os.environ.get(READONLY_VARIABLE, "").strip().lower() not in _OFF:
        return True
    return lab_settings(folder or default_workspace()).readonly


def refuse_in_reviewer_mode(what: str, folder: Path | None = None) -> None:
    """Raise `ReviewerModeError` where the mode is on; `what` begins the sentence, such as "Importing traces"."""
    if reviewer_mode(folder):
        raise ReviewerModeError(what)
