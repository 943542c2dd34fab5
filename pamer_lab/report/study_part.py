"""A study and a published table as plain data; a study keeps its seeds, from which the page derives means and sds again."""

from typing import Any

from pamer_lab.analysis.published import table
from pamer_lab.analysis.samples import sample_study
from pamer_lab.report.config import PublishedSection, StudySection
from pamer_lab.studies.study import load_study
from pamer_lab.workspace import Workspace

LEFT_OUT = frozenset({"margins"})
"""What only the lab's own pages use: packed scores of every test decision."""


def study_part(section: StudySection, workspace: Workspace) -> dict[str, Any]:
    """The section's data; decisions of single heads stay in the workspace."""
    study = sample_study(section.sample) if section.sample else load_study(workspace, section.study_id)
    value = study.to_json()
    value["rows"] = [{key: item for key, item in row.items() if key not in LEFT_OUT} for row in study.rows]
    return {
        "kind": "study",
        "study": {key: value[key] for key in ("study_id", "kind", "name", "command", "model", "corpus", "settings", "rows", "comparisons")},
        "notes": {key: item for key, item in study.notes.items() if isinstance(item, str | int | float | dict)},
        "demo": bool(section.sample),
    }


def published_part(section: PublishedSection) -> dict[str, Any]:
    """A table as the paper prints it."""
    shown = table(section.table)
    return {
        "kind": "published",
        "name": shown.name,
        "title": shown.title,
        "caption": shown.caption,
        "place": shown.place,
        "note": shown.note,
        "columns": [
            {"key": column.key, "title": column.title, "unit": column.unit, "digits": column.digits, "better": column.better}
            for column in shown.columns
        ],
        "rows": list(shown.rows),
    }
