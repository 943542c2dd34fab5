"""Named studies: a command's results, stored in the workspace with the command that reproduces them.

On disk: table `studies`, one row per study, results as JSON. A study's id is a hash of its kind, model, corpus and
settings, so that running the same study again replaces it instead of listing it twice.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from pamer_lab.errors import InputError
from pamer_lab.opening import parse_json, read_text
from pamer_lab.storage import TableSpec, equals
from pamer_lab.storage.files import write_whole
from pamer_lab.workspace import Workspace

Kind = Literal["train", "layerwise", "controls", "compact"]
"""`train`: capacity x hint, distillation and heads. `layerwise`: layers x poolings. `controls`: hidden states compared with
what can be observed without a model. `compact`: the compact-context conditions."""

ALL = "@workspace"
"""Used in place of trace names: all labelled traces of the workspace."""

MOST_BYTES = 200_000_000
"""Maximum size of a study's file, in bytes."""

STUDIES = TableSpec(
    name="studies",
    key=("study_id",),
    schema=pa.schema(
        [
            ("study_id", pa.string()),
            ("kind", pa.string()),
            ("name", pa.string()),
            ("created", pa.string()),
            ("command", pa.string()),
            ("model", pa.string()),
            ("corpus", pa.string()),
            ("body", pa.large_string()),
        ]
    ),
)


@dataclass(frozen=True)
class Study:
    """One study's results."""

    kind: Kind
    name: str
    command: str
    """The command line that reproduces these rows."""
    model: str
    corpus: dict[str, Any]
    """`Decisions.facts()`."""
    settings: dict[str, Any]
    rows: list[dict[str, Any]]
    comparisons: list[dict[str, Any]] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    """Chosen layers, split checks, costs."""
    decisions: list[dict[str, Any]] = field(default_factory=list)
    """`train`: the heads' votes at each decision point and how far they are from flipping. `compact`: the evaluated points with labels."""
    created: str = ""

    @property
    def study_id(self) -> str:
        named = json.dumps([self.kind, self.model, self.corpus["corpus"], self.settings], sort_keys=True)
        return f"{self.kind}-{hashlib.sha256(named.encode()).hexdigest()[:12]}"

    def to_json(self) -> dict[str, Any]:
        return {"study_id": self.study_id, **asdict(self)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Study":
        return cls(**{key: item for key, item in value.items() if key != "study_id"})


def save_study(workspace: Workspace, study: Study) -> str:
    """Store a study, replacing an earlier run of the same one; returns its id."""
    created = study.created or datetime.now(UTC).isoformat(timespec="seconds")
    body = json.dumps(study.to_json() | {"created": created})
    row = {
        "study_id": study.study_id,
        "kind": study.kind,
        "name": study.name,
        "created": created,
        "command": study.command,
        "model": study.model,
        "corpus": study.corpus["corpus"],
        "body": body,
    }
    workspace.database.upsert(STUDIES, [row])
    return study.study_id


def list_studies(workspace: Workspace) -> list[dict[str, Any]]:
    """All studies without their rows, newest first."""
    if not workspace.path.exists() or not workspace.database.exists(STUDIES):
        return []
    columns = [name for name in STUDIES.schema.names if name != "body"]
    return sorted(workspace.database.rows(STUDIES, columns=columns), key=lambda row: str(row["created"]), reverse=True)


def load_study(workspace: Workspace, study_id: str) -> Study:
    """One study; the error for an unknown id says what to do."""
    known = workspace.path.exists() and workspace.database.exists(STUDIES)
    found = workspace.database.rows(STUDIES, where=equals("study_id", study_id)) if known else []
    if not found:
        raise InputError(f"study {study_id!r} is not in the workspace {workspace.path}; run it first: pamer-lab layerwise TRACE...")
    return Study.from_json(json.loads(found[0]["body"]))


def write_study(study: Study, path: Path) -> None:
    """Write a study as a JSON file, with numbers rounded to six places so that equal runs give equal files."""
    write_whole(path, (json.dumps(_rounded(study.to_json()), indent=1) + "\n").encode(), parents=True)


def read_study(path: Path) -> Study:
    """A study from its JSON file."""
    try:
        return Study.from_json(parse_json(read_text(path, MOST_BYTES)))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"is not a study ({error})", path=str(path)) from error


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value
