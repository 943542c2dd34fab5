"""The form for studies: labelled traces, settings, estimated cost, and progress while one runs.

The command line does the work (`analysis.background`); the page writes the command.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pamer_lab.analysis.background import Job
from pamer_lab.features.store import every_fourth
from pamer_lab.figures.text import counted, duration, one_line, short
from pamer_lab.models.frozen import chosen_model, is_here, model_name, remedy
from pamer_lab.models.profiles import EMBEDDED, Profile, known_profiles, load_profile
from pamer_lab.probes.split import MINIMUM_QUESTIONS, SEEDS
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.studies.compact.estimate import estimate, layerwise_conditions
from pamer_lab.studies.compact.registry import choose, groups
from pamer_lab.studies.compact.values import Condition
from pamer_lab.studies.study import ALL, Kind
from pamer_lab.trajectory.labels import HINDSIGHT
from pamer_lab.ui.shared.following import LOOK_EVERY, progress_bar, waiting_list
from pamer_lab.ui.shared.heads_select import ask_to_confirm
from pamer_lab.ui.shared.loaders import catalogue, table_version, workspace
from pamer_lab.ui.shared.picker import trace_label
from pamer_lab.ui.shared.studies import jobs
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.words import BASES, HINTS
from pamer_lab.workspace import TRACES
from pamer_lab.workspace.catalogue import Filters
from pamer_lab.workspace.ingest import DEMO_FOLDER, import_paths

DEFAULT_SEEDS = ",".join(map(str, SEEDS))
LAYERS = {"All layers": "all", "Every fourth layer and the final state": "fourth", "The final state only": "final"}
CONTEXTS = ["full", "current", "recent1", "recent2", "recent4"]


@dataclass(frozen=True)
class Corpus:
    """The labelled traces of a study."""

    rows: tuple[dict[str, Any], ...]
    chosen: tuple[str, ...]
    """Ids the reader chose; empty means all labelled ones."""
    labels: str = ""
    """The origin whose labels count, if there are several."""

    @property
    def words(self) -> list[str]:
        """The arguments for the command."""
        return [*(self.chosen or [ALL]), *(["--labels", self.labels] if self.labels else [])]

    @property
    def questions(self) -> int:
        return len({row["question_id"] for row in self.rows})

    @property
    def tokens(self) -> int:
        return sum(row["tokens"] for row in self.rows)

    def share(self, sample: int) -> float:
        """The share of decision points in a sample of this size; 0 means all."""
        points = max(sum(row["turns"] - 1 for row in self.rows), 1)
        return min(1.0, sample / points) if sample else 1.0


def study_panel(kind: Kind, title: str, form: Callable[[Corpus, Profile], tuple[list[list[str]], str]]) -> None:
    """The panel; `form` asks for the study's own settings and returns its commands and a cost estimate in words."""
    if reviewer_mode():
        return
    job = jobs().current
    if job is not None:
        _follow(job)
        return
    _last(kind)
    panel = st.expander(title, key="make-study", on_change="rerun", icon=":material/science:")
    if not panel.open:
        return
    with panel:
        corpus = choose_corpus()
        if corpus is None:
            return
        name = st.selectbox("Profile", known_profiles(workspace().path), key="study-profile", help=HINTS["profile"])
        profile = load_profile(name, workspace().path)
        ask_to_confirm(profile)
        commands, takes = form(corpus, profile)
        model = chosen_model(profile.frozen_model)
        if not is_here(model):
            st.warning(f"The weights of {model_name(model)} are not on this machine. Download them first: `{remedy(model)}`")
            return
        st.markdown(takes)
        st.button("Start", key="start-study", type="primary", icon=":material/play_arrow:", on_click=_start, args=(commands,))


def _start(commands: Sequence[Sequence[str]]) -> None:
    jobs().start(commands)


@st.cache_resource(max_entries=2, show_spinner="Reading where labels come from…")
def _origins(path: str, at: tuple[int, int]) -> dict[str, frozenset[str]]:
    """By labelled trace, the origins of its labels."""
    ids = [row["trace_id"] for row in catalogue(Filters(labelled=True)).rows]
    return {name: frozenset(label.origin for label in own) for name, own in workspace().labels(ids).items()}


def choose_corpus() -> Corpus | None:
    """Labelled traces of the workspace; None, with a message, if there are too few for a study."""
    labelled = {row["trace_id"]: row for row in catalogue(Filters(labelled=True)).rows}
    chosen: list[str] = []
    if labelled:
        chosen = st.multiselect(
            f"Labelled traces of this workspace ({len(labelled):,})",
            list(labelled),
            key="study-traces",
            placeholder="all",
            format_func=lambda name: trace_label(labelled[name]),
            help=HINTS["labels"],
        )
    origins = {name: _origins(str(workspace().path), table_version(TRACES))[name] for name in chosen or labelled}
    known = sorted(set().union(*origins.values()))
    origin = ""
    if any(name.partition(":")[0] == HINDSIGHT for name in known) and len(known) > 1:
        origin = st.selectbox("Labels", known, key="study-labels", format_func=lambda name: one_line(name, 60), help=HINTS["label-origin"])
    corpus = Corpus(tuple(labelled[name] for name, own in origins.items() if not origin or origin in own), tuple(chosen), origin)
    if corpus.questions >= MINIMUM_QUESTIONS:
        return corpus
    st.info(
        f"A study splits questions into training, validation and test sets, so it needs labelled traces of at least {MINIMUM_QUESTIONS} "
        f"questions; there {'is' if corpus.questions == 1 else 'are'} {corpus.questions}. Import labelled traces on the Traces page, label "
        "your own with `pamer-lab annotate`, or add the traces of the sample study."
    )
    sample = DEMO_FOLDER.parent / "study"
    if sample.is_dir() and st.button("Add the sample study's traces", help=HINTS["demo"]):
        with st.spinner("Reading the sample study's traces…"):
            import_paths([sample], workspace(), demo=True)
        st.rerun()
    return None


def layerwise_form(corpus: Corpus, profile: Profile) -> tuple[list[list[str]], str]:
    """Layers, context, hint, seeds; and whether controls follow."""
    one, two, three, four = st.columns(4, gap="medium", vertical_alignment="top")
    layers = LAYERS[one.selectbox("Layers", list(LAYERS), key="study-layers", help=HINTS["layer"])]
    context = two.selectbox("Context", CONTEXTS, key="study-context", help=HINTS["contexts"])
    hint = three.selectbox("Hint", ["none", "faithful"], key="study-hint", help=HINTS["hint"])
    seeds = four.text_input("Seeds", DEFAULT_SEEDS, key="study-seeds", help=HINTS["seed"])
    controls = st.checkbox("Run controls on the same traces", value=True, key="study-controls", help=HINTS["controls"])
    shared = [*corpus.words, "--profile", profile.name]
    if seeds != DEFAULT_SEEDS:
        shared += ["--seeds", seeds]
    if layers == "fourth":
        layers = ",".join(every_fourth(profile.frozen_model.model)) or "all"
    commands = [["layerwise", *shared, "--layers", layers, "--context", context, "--hint", hint]]
    if controls:
        commands.append(["controls", *shared])
    conditions = layerwise_conditions(context, controls=controls)
    return commands, what_it_takes(corpus, profile, conditions, embeds=controls)


def compact_form(corpus: Corpus, profile: Profile) -> tuple[list[list[str]], str]:
    """Conditions by group, how many decision points, seeds."""
    one, two, three = st.columns([5, 2, 2], gap="medium", vertical_alignment="top")
    chosen = one.multiselect(
        "Conditions",
        list(groups()),
        default=["recent", "raw"],
        key="study-conditions",
        format_func=lambda name: groups()[name].heading,
        help=HINTS["condition"],
    )
    sample = int(two.number_input("Decision points (approx.)", 0, 100_000, 200, 50, key="study-sample", help="0 uses all of them."))
    seeds = three.text_input("Seeds", DEFAULT_SEEDS, key="study-seeds", help=HINTS["seed"])
    command = ["compact", *corpus.words, "--profile", profile.name, "--conditions", ",".join(chosen) or "all"]
    command += ["--sample", str(sample)] if sample else []
    command += ["--seeds", seeds] if seeds != DEFAULT_SEEDS else []
    conditions = choose(",".join(chosen) or "all")
    embeds = any("embedder" in one.needs for one in conditions)
    takes = what_it_takes(corpus, profile, conditions, share=corpus.share(sample), embeds=embeds)
    return [command], takes + " The command prints its own estimate first."


def what_it_takes(corpus: Corpus, profile: Profile, conditions: Sequence[Condition], *, share: float = 1.0, embeds: bool = False) -> str:
    """Which models are loaded, how many tokens are read, and the estimated time."""
    found = estimate(conditions, corpus.tokens, profile, workspace(), share=share)
    basis = BASES[found.basis]
    embedding = "all-MiniLM-L6-v2" if profile.embedding.model == EMBEDDED else profile.embedding.model
    models = [model_name(chosen_model(profile.frozen_model)), *([embedding] if embeds else [])]
    return (
        f"**{counted(len(corpus.rows), 'trace')}** of {counted(corpus.questions, 'question')}: loads {' and '.join(models)}, reads up to "
        f"about {short(found.tokens)} tokens, **about {duration(found.seconds)}** at {found.speed:,.0f} tokens a second ({basis}). "
        "Cached states are reused. The study runs in its own process; you can stop and continue it."
    )


def _last(kind: Kind) -> None:
    """The result of the last job, if it was of this page's kind."""
    job = jobs().latest
    if job is None or job.commands[0][0] != kind:
        return
    if job.error:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.warning(f"The study ended early: {in_code(job.error, 400)}")
            st.button("Continue", key="continue-study", icon=":material/play_arrow:", on_click=_start, args=(job.commands,))
    elif job.study_ids:
        st.success(f"The study {in_code(job.study_ids[0], 60)} is finished.")


@st.fragment(run_every=LOOK_EVERY)
def _follow(job: Job) -> None:
    """Progress and a way to stop; the page is redrawn when it ends, with the new study open."""
    if not job.running:
        if job.study_ids:
            kind = job.commands[0][0]
            st.session_state[f"chosen:{kind}-study"] = job.study_ids[0]
            st.query_params[f"{kind}-study"] = job.study_ids[0]
        st.rerun()
    with st.container(border=True, key="following"):
        step = f"Step {job.number + 1} of {len(job.commands)}: {job.commands[job.number][0]}"
        state = "Stopping…" if job.stopping.is_set() else "It continues if you leave this page."
        progress_bar(job, f"{step}. {state}", key="stop-study")
        st.code(job.words, language="bash", wrap_lines=True)
        latest = job.progress.line if job.progress else job.said
        st.caption(in_code(latest or "Starting: loading the model.", 200))
        waiting_list(jobs().waiting, lambda other: in_code(other.words, 200))
