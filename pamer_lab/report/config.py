"""A report's configuration as a file: running it again gives the same tables.

Traces, runs, studies and published tables are named by id. An unknown key is an error, and a configuration survives a JSON round trip.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from pamer_lab.config import Settings
from pamer_lab.errors import InputError
from pamer_lab.opening import read_file
from pamer_lab.redaction import Redaction

Focus = Literal["context", "audit", "transcript"]
"""What a replay section opens with: the context chart, the selections of PaMER+, or the blocks of the trace."""

FORMAT = "pamer-lab-report"


class RunChoice(Settings):
    """One run, identified by what produces it."""

    trace_id: str
    policy: str
    profile: str = "embedded"
    turn_limit: int = Field(default=0, ge=0)
    """Only the first turns; 0 means all."""
    heads: str = ""
    """Name of the heads that voted; empty if none did, or for the default heads of the profile's model."""
    run_id: str = ""
    """The run that these settings gave when the configuration was written; empty: the run they give now."""


class ReplaySection(Settings):
    """One trace and its runs; without runs the trace alone."""

    kind: Literal["replay"] = "replay"
    trace_id: str
    runs: tuple[RunChoice, ...] = ()
    focus: Focus = "context"
    policy: str = ""
    """The policy that is open first; empty: the most active one."""
    turn: int | None = None
    """The turn (or block) that is open first."""


class GrowthSection(Settings):
    """Many traces under several policies."""

    kind: Literal["growth"] = "growth"
    runs: tuple[RunChoice, ...]
    baseline: str = ""
    """The policy others are compared with; empty: the first."""


class StudySection(Settings):
    """The rows of a study."""

    kind: Literal["study"] = "study"
    study_id: str = ""
    """A study of the workspace."""
    sample: str = ""
    """Or the name of a result that comes with the package."""


class PublishedSection(Settings):
    """A table of the paper."""

    kind: Literal["published"] = "published"
    table: str


class ArenaSection(Settings):
    """The results of an arena."""

    kind: Literal["arena"] = "arena"
    arena_id: str
    against: str = "base"
    """The policy that others are compared with in pairs."""


Section = Annotated[ReplaySection | GrowthSection | StudySection | PublishedSection | ArenaSection, Field(discriminator="kind")]


class ReportConfig(Settings):
    """A report."""

    format: Literal["pamer-lab-report"] = "pamer-lab-report"
    title: str = ""
    """Empty: made from the first section."""
    sections: tuple[Section, ...] = Field(min_length=1)
    text: bool = True
    """Whether the text of traces, summaries and recalled memories is in the file."""
    redact: Redaction = "keys"
    prices: str = ""
    """Name of the price table of costs; empty: the default."""
    max_mb: float = Field(default=10.0, gt=0.5)
    """Largest size of the HTML file in MB; long texts are shortened in the middle to stay below it."""


def read_config(path: str | Path) -> ReportConfig:
    """A configuration from its JSON file."""
    try:
        return ReportConfig.model_validate_json(read_file(path))
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", path=str(path)) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"is not a report configuration ({first['msg']})", path=str(path), where=where) from error


def config_json(config: ReportConfig) -> str:
    """The configuration as a file."""
    return config.model_dump_json(indent=1) + "\n"
