"""Studies as pages read them: the choice of a study, its corpus in a line, its details, and the job that makes a new one.

Studies of the workspace come first, newest first; the sample study is last, marked as a demo. Caches are keyed by
the table's version.
"""

from pathlib import Path
from typing import Any

import orjson
import streamlit as st

from pamer_lab.analysis.background import StudyJobs
from pamer_lab.analysis.published import sample_names, sample_study
from pamer_lab.analysis.signals import matching_controls
from pamer_lab.figures.text import counted, one_line
from pamer_lab.probes.split import leaks
from pamer_lab.report.config import StudySection
from pamer_lab.studies.decisions import TARGETS
from pamer_lab.studies.study import STUDIES, Kind, Study, list_studies, load_study
from pamer_lab.trajectory.labels import HINDSIGHT
from pamer_lab.ui.shared.downloads import download
from pamer_lab.ui.shared.loaders import table_version, workspace
from pamer_lab.ui.shared.share import Sections, share
from pamer_lab.ui.shared.state import choose, chosen
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.widgets import table
from pamer_lab.ui.shared.words import HINTS

SAMPLE = "sample"
"""The URL's name for the study that comes with PaMER Lab."""
FULL_HISTORY, RECORDED_HISTORY = "full history", "recorded history"
"""Which history a study read, in words."""


@st.cache_resource(max_entries=4, show_spinner=False)
def _jobs(path: str) -> StudyJobs:
    return StudyJobs(Path(path))


def jobs() -> StudyJobs:
    """Studies in the background; one at a time for all sessions of this server."""
    return _jobs(str(workspace().path))


def studies_version() -> tuple[int, int]:
    """Changes whenever a study is stored."""
    return table_version(STUDIES)


@st.cache_data(max_entries=4, show_spinner=False)
def _listed(path: str, at: tuple[int, int]) -> list[dict[str, Any]]:
    return list_studies(workspace())


def listed_studies() -> list[dict[str, Any]]:
    """All studies of the workspace without their rows, newest first."""
    return _listed(str(workspace().path), studies_version())


@st.cache_resource(max_entries=8, show_spinner="Opening the study…")
def _study(path: str, at: tuple[int, int], kind: Kind, name: str) -> Study:
    return sample_study(kind) if name == SAMPLE else load_study(workspace(), name)


def open_study(kind: Kind, name: str) -> Study:
    return _study(str(workspace().path), studies_version(), kind, name)


@st.cache_resource(max_entries=8, show_spinner=False)
def _controls(path: str, at: tuple[int, int], study_id: str, corpus: str, _study: Study) -> Study | None:
    return matching_controls(_study, workspace())


def controls_of(study: Study) -> Study | None:
    """Controls of the same corpus and model, if there are any."""
    return _controls(str(workspace().path), studies_version(), study.study_id, study.corpus["corpus"], study)


def study_key(study: Study) -> tuple[str, str]:
    """Changes whenever what is drawn of a study does."""
    return (study.study_id, study.created)


def pick_study(kind: Kind) -> tuple[str, Study] | None:
    """The study to show and its name in the URL; None, with a message, if there is none."""
    known = {row["study_id"]: row for row in listed_studies() if row["kind"] == kind}
    names = [*known, *([SAMPLE] if kind in sample_names() else [])]
    key = f"{kind}-study"
    wanted = chosen(key)
    if wanted and wanted not in names:
        st.error(f"The study {in_code(wanted, 60)} in this link is not in this workspace.")
        st.markdown("A study's name is a hash of its traces, model and settings. Run the same command on the same traces to create it.")
        names and st.button("Show another study", on_click=lambda: choose(key, names[0]))
        return None
    if not names:
        return None
    st.session_state[f"picked-{key}"] = wanted or names[0]
    picked: str = st.selectbox(
        "Study",
        names,
        format_func=lambda name: "Sample study · demo" if name == SAMPLE else _label(known[name]),
        key=f"picked-{key}",
        on_change=lambda: choose(key, st.session_state[f"picked-{key}"]),
        label_visibility="collapsed",
    )
    choose(key, picked)
    return picked, open_study(kind, picked)


def study_head(title: str, kind: Kind) -> tuple[str, Study] | None:
    """The title of a study's page with the choice of a study and the share button; returns what was chosen."""
    head, picker, link = st.columns([5, 9, 2], vertical_alignment="bottom")
    head.title(title)
    with picker:
        picked = pick_study(kind)
    with link:
        share(study_sections(kind, picked))
    return picked


def study_sections(kind: Kind, picked: tuple[str, Study] | None) -> Sections | None:
    """What a share file of the shown study contains."""
    if picked is None:
        return None
    name = picked[0]
    return lambda: [StudySection(sample=kind) if name == SAMPLE else StudySection(study_id=name)]


def _label(row: dict[str, Any]) -> str:
    made = str(row["created"]).replace("T", " ")[:16]
    return f"{one_line(row['name'], 60)} · {one_line(row['model'], 40)} · {made} · corpus {row['corpus'][:8]}"


def study_line(name: str, study: Study) -> None:
    """The study in one line: its corpus and model, and whether its splits leak."""
    corpus = study.corpus
    checks = study.notes.get("splits", [])
    leaking = leaks(checks)
    asked, positives = corpus["asked"], corpus["positives"]
    rates = ", ".join(f"{target} {positives[target]:,} of {asked[target]:,} positive" for target in TARGETS if target in asked)
    parts = [
        f"**{counted(corpus['decision_points'], 'decision')}** of {counted(corpus['traces'], 'trace')}, "
        f"{counted(corpus['questions'], 'question')}",
        f"hindsight labels: {rates}" if any(name.startswith(HINDSIGHT) for name in study.notes.get("labels", [])) else rates,
        history_words(study),
        counted(len(checks), "seed"),
        in_code(study.model, 40),
        f"corpus {in_code(corpus['corpus'][:12])}",
    ]
    if checks and not leaking:
        parts.append(f":green-badge[✓ no leaks in {len(checks)} of {len(checks)} splits]")
    else:
        parts.append(f":red-badge[✕ leak: {leaking} of {len(checks)} splits share questions]")
    if name == SAMPLE:
        parts.append(":gray-badge[demo]")
    st.markdown(" · ".join(parts), help=f"{HINTS['decision']} {HINTS['seed']} {HINTS['leak']}")


def history_words(study: Study) -> str:
    """Which history the study's states are from."""
    if study.settings.get("history") != "recorded":
        return FULL_HISTORY
    return f"{RECORDED_HISTORY} in {study.corpus['recorded_traces']:,} of {counted(study.corpus['traces'], 'trace')}"


def study_details(study: Study) -> None:
    """The command, settings and splits of a study, on demand."""
    panel = st.expander("Settings and command of this study", key="study-details", on_change="rerun")
    if not panel.open:
        return
    with panel:
        st.code(study.command, language="bash", wrap_lines=True)
        known = {
            "Study": study.study_id,
            "Created": study.created.replace("T", " ") or "included with PaMER Lab",
            "Corpus (SHA-256 of traces and labels)": study.corpus["corpus"],
            **{f"Setting: {key}": str(value) for key, value in study.settings.items()},
            **{f"Split, {str(check).partition(':')[0]}": str(check).partition(":")[2].strip() for check in study.notes.get("splits", [])},
        }
        table([{"What": key, "Value": value} for key, value in known.items()])
        for cost in study.notes.get("features", []):
            st.caption(
                f"Hidden states, {in_code(str(cost['inputs']), 120)}: {cost['tokens_computed']:,} tokens computed, "
                f"{counted(cost['cache_hits'], 'decision')} cached, {cost['seconds']:,.1f} s."
            )
        body = orjson.dumps(study.to_json(), option=orjson.OPT_INDENT_2).decode()
        download("All rows as JSON", body, f"{study.study_id}.json", "application/json", key="study-json", quiet=False)
