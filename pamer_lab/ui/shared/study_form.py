"""Making a study from a page: which labelled traces, what that would load and take, and following it while it runs.

The commands of the program do the work (`analysis.background`); the page puts their words together and looks on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pamer_lab.access import reviewer_mode
from pamer_lab.analysis.background import Job
from pamer_lab.contexts.registry import GROUPS
from pamer_lab.figures.numbers import counted, short
from pamer_lab.importing import DEMO_FOLDER, import_paths
from pamer_lab.models.frozen import is_here
from pamer_lab.models.profiles import EMBEDDED, PROFILES, Profile, load_profile
from pamer_lab.policies.availability import LOADING, PREFILL, frozen_name
from pamer_lab.probes.split import MINIMUM_QUESTIONS, SEEDS
from pamer_lab.probes.study import ALL, Kind
from pamer_lab.ui.shared.loaders import trace_rows, workspace
from pamer_lab.ui.shared.picker import trace_label
from pamer_lab.ui.shared.studies import jobs, listed_studies, open_study
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.words import HINTS

LOOK_EVERY = 1.0
"""Seconds between two looks at a study that runs."""
DEFAULT_SEEDS = ",".join(map(str, SEEDS))
LAYERS = {"All layers": "all", "Every fourth block and the final state": "fourth", "The final state only": "final"}
READ_TIMES = {"full": 1, "current": 1, "recent1": 2, "recent2": 3, "recent4": 5}
"""How often a trace's tokens are read for a context, at most."""
GROUP_TIMES = {"recent": 9, "raw": 15, "embedding": 15, "controls": 10, "budget": 8, "hidden": 2}
"""The same for the conditions of each group together, at every decision point."""
BLOCKS = 30
"""Blocks of the embedded model; for "every fourth" of another model its own number is asked."""


@dataclass(frozen=True)
class Corpus:
    """The labelled traces a study would stand on."""

    rows: tuple[dict[str, Any], ...]
    chosen: tuple[str, ...]
    """Ids the reader chose; empty means all labelled ones."""

    @property
    def words(self) -> list[str]:
        """As the command takes them."""
        return list(self.chosen) or [ALL]

    @property
    def questions(self) -> int:
        return len({row["question_id"] for row in self.rows})

    @property
    def tokens(self) -> int:
        return sum(row["tokens"] for row in self.rows)


def study_panel(kind: Kind, title: str, form: Callable[[Corpus, Profile], tuple[list[list[str]], str]]) -> None:
    """The whole panel; `form` asks what is special to the study and gives its commands and what it takes in words."""
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
        name = st.selectbox("Profile", list(PROFILES), key="study-profile", help=HINTS["profile"])
        profile = load_profile(name)
        commands, takes = form(corpus, profile)
        if not is_here(profile.frozen_model.model):
            remedy = "pamer-lab prepare" if profile.frozen_model.model == EMBEDDED else f"hf download {profile.frozen_model.model}"
            st.warning(f"The weights of {frozen_name(profile)} are not on this machine. Get them first: `{remedy}`")
            return
        st.markdown(takes)
        st.button("Start", key="start-study", type="primary", icon=":material/play_arrow:", on_click=_start, args=(commands,))


def _start(commands: Sequence[Sequence[str]]) -> None:
    jobs().start(commands)


def choose_corpus() -> Corpus | None:
    """Labelled traces of the workspace, all or chosen ones; None after saying why no study is possible."""
    labelled = {row["trace_id"]: row for row in trace_rows() if row["labels"]}
    chosen: list[str] = []
    if labelled:
        chosen = st.multiselect(
            f"Labelled traces of this workspace ({len(labelled):,})",
            list(labelled),
            key="study-traces",
            placeholder="all of them",
            format_func=lambda name: trace_label(labelled[name]),
            help=HINTS["labels"],
        )
    corpus = Corpus(tuple(labelled[name] for name in chosen or labelled), tuple(chosen))
    if corpus.questions >= MINIMUM_QUESTIONS:
        return corpus
    st.info(
        f"A study splits questions into training, validation and test, so it needs labelled traces of at least {MINIMUM_QUESTIONS} "
        f"questions; there {'is' if corpus.questions == 1 else 'are'} {corpus.questions}. Import labelled traces on the Traces page, label "
        "your own with `pamer-lab annotate`, or add the sample study's traces."
    )
    sample = DEMO_FOLDER.parent / "study"
    if sample.is_dir() and st.button("Add the sample study's traces to this workspace", help=HINTS["demo"]):
        with st.spinner("Reading the sample study's traces…"):
            import_paths([sample], workspace(), demo=True)
        st.rerun()
    return None


def layerwise_form(corpus: Corpus, profile: Profile) -> tuple[list[list[str]], str]:
    """Layers, context, hint, seeds; and whether controls follow."""
    one, two, three, four = st.columns(4, gap="medium", vertical_alignment="top")
    layers = LAYERS[one.selectbox("Layers", list(LAYERS), key="study-layers", help=HINTS["layer"])]
    context = two.selectbox("Context", list(READ_TIMES), key="study-context", help=HINTS["contexts"])
    hint = three.selectbox("Hint", ["none", "faithful"], key="study-hint", help=HINTS["hint"])
    seeds = four.text_input("Seeds", DEFAULT_SEEDS, key="study-seeds", help=HINTS["seed"])
    controls = st.checkbox("Controls of the same traces as well", value=True, key="study-controls", help=HINTS["controls"])
    shared = [*corpus.words, "--profile", profile.name]
    if seeds != DEFAULT_SEEDS:
        shared += ["--seeds", seeds]
    if layers == "fourth":
        blocks = BLOCKS if profile.frozen_model.model == EMBEDDED else 32
        layers = ",".join([*(f"block_{number}" for number in range(4, blocks + 1, 4)), "final"])
    commands = [["layerwise", *shared, "--layers", layers, "--context", context, "--hint", hint]]
    if controls:
        commands.append(["controls", *shared])
    # A full context is read once whatever the number of turns; a recent one is read anew at each turn.
    times = READ_TIMES[context] + (1 if controls and context != "full" else 0)
    loaded = [frozen_name(profile), *(["all-MiniLM-L6-v2" if profile.name == "embedded" else profile.embedding.model] if controls else [])]
    return commands, what_it_takes(corpus, loaded, times * corpus.tokens)


def compact_form(corpus: Corpus, profile: Profile) -> tuple[list[list[str]], str]:
    """Conditions by group, how many decision points, seeds."""
    one, two, three = st.columns([5, 2, 2], gap="medium", vertical_alignment="top")
    groups = one.multiselect(
        "Conditions",
        list(GROUPS),
        default=["recent", "raw"],
        key="study-conditions",
        format_func=GROUPS.__getitem__,
        help=HINTS["condition"],
    )
    sample = int(two.number_input("Decision points, about", 0, 100_000, 200, 50, key="study-sample", help="0 takes all of them."))
    seeds = three.text_input("Seeds", DEFAULT_SEEDS, key="study-seeds", help=HINTS["seed"])
    command = ["compact", *corpus.words, "--profile", profile.name, "--conditions", ",".join(groups) or "all"]
    command += ["--sample", str(sample)] if sample else []
    command += ["--seeds", seeds] if seeds != DEFAULT_SEEDS else []
    points = max(sum(row["turns"] - 1 for row in corpus.rows), 1)
    part = min(1.0, sample / points) if sample else 1.0
    times = 2 + part * sum(GROUP_TIMES.get(group, 0) for group in groups or GROUPS)
    embeds = {"embedding", "budget"} & set(groups or GROUPS)
    loaded = [frozen_name(profile), *(["all-MiniLM-L6-v2" if profile.name == "embedded" else profile.embedding.model] if embeds else [])]
    return [command], what_it_takes(corpus, loaded, times * corpus.tokens) + " The command says its own estimate before it computes."


def what_it_takes(corpus: Corpus, models: Sequence[str], tokens: float) -> str:
    """What will be loaded, how much is read, and how long that should take."""
    pace = measured_pace()
    speed = pace or PREFILL
    basis = "as in the last study here" if pace else "a first guess for two cores"
    return (
        f"**{counted(len(corpus.rows), 'trace')}** of {counted(corpus.questions, 'question')}: loads {' and '.join(models)}, reads at most "
        f"about {short(tokens)} tokens, **about {duration(LOADING + tokens / speed)}** at {speed:,.0f} tokens a second ({basis}). "
        "States that are in the workspace already are not computed again. It runs in a process of its own and can be stopped and continued."
    )


def measured_pace() -> float | None:
    """Tokens a second of the newest study here that computed something."""
    for row in listed_studies()[:5]:
        study = open_study(row["kind"], row["study_id"])
        costs = [(cost["tokens_computed"], cost["seconds"]) for cost in study.notes.get("features", [])]
        if "cost" in study.notes:  # of a compact study
            costs = [(study.notes["cost"]["tokens_computed"], study.notes["cost"]["seconds_taken"])]
        known = [(tokens, seconds) for tokens, seconds in costs if tokens > 1_000 and seconds > 0]
        if known:
            return float(sum(tokens for tokens, _ in known) / sum(seconds for _, seconds in known))
    return None


def duration(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _last(kind: Kind) -> None:
    """What became of the job that ended last, as far as it was about this page's kind."""
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
    """Progress and a way to stop; the whole page is drawn anew when it ends, with the new study open."""
    if not job.running:
        if job.study_ids:
            kind = job.commands[0][0]
            st.session_state[f"chosen:{kind}-study"] = job.study_ids[0]
            st.query_params[f"{kind}-study"] = job.study_ids[0]
        st.rerun()
    with st.container(border=True, key="following"):
        with st.container(horizontal=True, vertical_alignment="center"):
            step = f"Step {job.number + 1} of {len(job.commands)}: {job.commands[job.number][0]}"
            st.progress(
                job.share or 0.0, text=f"{step}. {'Stopping…' if job.stopping.is_set() else 'It goes on when you leave this page.'}"
            )
            st.button("Stop", key="stop-study", icon=":material/stop:", on_click=job.stop, disabled=job.stopping.is_set())
        st.code(job.words, language="bash", wrap_lines=True)
        st.caption(in_code(job.lines[-1] if job.lines else "Starting; the model is loaded first.", 200))
