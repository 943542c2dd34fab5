"""What a replay would load and how long it would take, before it starts or for the rest of it; nothing is loaded.

Heads read the prefix once and, at every turn, the newest blocks that their policy retains; what other runs read or embed is not counted
again. Reading and embedding use this machine's pace (`features/pace.py`). A turn takes as long as in the most similar run or trial
(`known.py`, `trial.py`), else a first guess; a policy that embeds uses only a run on the same trace, else a guess plus the time of its
texts. A commit takes as long as recent ones (`commits.py`), else as in the trial.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import ClassVar, Literal

from pamer_lab.controller.heads_probe import HeadsProbe
from pamer_lab.errors import LabError
from pamer_lab.factory import Factory
from pamer_lab.features.pace import Pace, depth_of, embedding_pace, loaded_pace, pace_of, remember
from pamer_lab.models.speed import Watch, stretch
from pamer_lab.policies.availability import is_light, loads
from pamer_lab.policies.interface import Embeds, Policy, Resources
from pamer_lab.policies.registry import parse_policy
from pamer_lab.policies.resources import factory_of
from pamer_lab.runs.commits import usual_commit
from pamer_lab.runs.inputs import Inputs, retained, texts
from pamer_lab.runs.known import REFERENCE_TOKENS, ByPolicy, Known, by_size, guessed_turn, most_like, of_run, of_trial
from pamer_lab.runs.samples import is_sample
from pamer_lab.runs.store import RunStore, newest
from pamer_lab.runs.trial import Trial, trials, try_policies
from pamer_lab.runs.values import RunInfo
from pamer_lab.storage import equals, starts
from pamer_lab.workspace import TraceSize

OTHERS = 200
"""Pairs of policy and trace, in addition to each policy's longest trace, that are considered for a trial."""
ALIKE = 50
"""Maximum number of a policy's runs that are read for its time per turn."""
LOADED = 0.5
"""Seconds of loading up to which the models count as already loaded."""

Basis = Literal["measured", "guessed", "mixed"]
"""`measured`: every number comes from earlier work on this machine. `guessed`: none does, only the matrix product was measured.
`mixed`: some do."""


@dataclass(frozen=True)
class Cost:
    """How long one run takes, or the rest of it."""

    read_tokens: int
    """Tokens whose states must be computed; zero if another run of the same batch or workspace reads them."""
    turns: int
    read_seconds: float
    turn_seconds: float
    """Seconds of one turn, embedding included."""
    embed_seconds: float = 0.0
    """Part of `turn_seconds`: embedding texts that are not stored yet."""
    store_seconds: float = 0.0
    """Seconds of the commits at the end of a short run; 0 if unknown."""
    known: bool = False
    """Whether there is an earlier run or trial of the policy or its class; without one, `turn_seconds` is a first guess."""
    sure: bool = False
    """Whether that was the same policy on the same trace, or embedding has a measured pace; the run's own turns then correct nothing."""

    @property
    def seconds(self) -> float:
        return self.read_seconds + self.turns * self.turn_seconds + (self.store_seconds if self.turns else 0.0)


@dataclass(frozen=True)
class Estimate:
    """How long it takes to replay traces through policies."""

    runs: int
    turns: int
    """Turns of all runs together."""
    models: tuple[str, ...]
    """Names of the models that are loaded."""
    read_tokens: int
    """Tokens that the frozen model reads."""
    seconds: float
    """Seconds at the machine's current load."""
    least: float
    """Seconds if no other program were running; less than `seconds` only if others run now."""
    basis: Basis
    policies: dict[str, float]
    """Seconds of each policy's runs, without loading."""


def estimate(todo: Mapping[str, Sequence[str]], factory: Factory, *, turn_limit: int = 0) -> Estimate:
    """Estimate replaying each policy's traces, all turns or the first `turn_limit`; for unfinished runs, only the rest."""
    asked = Estimator(factory, turn_limit)
    asked.try_unknown(todo)
    costs = asked.costs(todo)
    models = dict.fromkeys(name for policy in todo for name in loads(parse_policy(policy), factory))
    reads = sum(cost.read_tokens for cost in costs.values())
    known = [asked.known(parse_policy(policy), trace_ids[0]) is not None for policy, trace_ids in todo.items() if trace_ids] + (
        [asked.pace.basis == "measured"] if reads else []
    )
    loading = asked.pace.loading if models else 0.0
    turning = sum(cost.seconds - cost.read_seconds for cost in costs.values())
    reading = sum(cost.read_seconds for cost in costs.values())
    return Estimate(
        runs=len(costs),
        turns=sum(cost.turns for cost in costs.values()),
        models=tuple(models),
        read_tokens=reads,
        seconds=reading + turning + loading,
        least=reading / (asked.pace.busy if reads else 1.0) + (turning + loading) / stretch(),
        policies={name: sum(cost.seconds for (policy, _), cost in costs.items() if policy == name) for name in todo},
        basis="measured" if all(known) else "mixed" if any(known) else "guessed",
    )


class Estimator:
    """Costs of runs of one profile and workspace."""

    loaded: ClassVar[float] = 0.0
    """Seconds that this process has spent on loading models, until they are remembered."""

    def __init__(self, factory: Factory, turn_limit: int = 0) -> None:
        self.factory, self.turn_limit = factory, turn_limit
        self._store = RunStore(factory.workspace)
        self.inputs = Inputs(factory, self._runs_of)
        self._by_trace: dict[str, list[RunInfo]] = {}
        self._by_policy: dict[str, list[Known]] = {}
        self._seconds: dict[str, float] = {}

    @cached_property
    def pace(self) -> Pace:
        return pace_of(self.factory.profile, self.factory.workspace.path, self.factory.device)

    def depth(self, policy: Policy) -> int:
        """Number of blocks up to the layer that a policy's heads read."""
        try:
            layer = factory_of(policy, self.factory).heads.heads.layer
        except LabError:  # none fit: the policy cannot run, and asking costs nothing
            layer = "final"
        return depth_of(self.factory.profile, layer)

    @cached_property
    def _tried(self) -> ByPolicy:
        """Trials in this workspace with this profile, newest last."""
        return ByPolicy(
            self._of_trials([trial for trial in trials(self.factory.workspace.path) if trial.profile == self.factory.profile.name])
        )

    def _of_trials(self, found: Sequence[Trial]) -> list[Known]:
        return [of_trial(trial, self._commit) for trial in found]

    @cached_property
    def _commit(self) -> float:
        return usual_commit(self.factory.workspace.path)

    def _measured(self, heads: Sequence[RunInfo]) -> list[Known]:
        """The times per turn of those runs that were timed on this machine with this profile."""
        profile = self.factory.profile.name
        timed = [
            head for head in heads if head.taken and (head.status == "done" or head.totals.get("main_input"))
        ]  # not those without turns
        return [of_run(head, self._commit) for head in timed if head.profile == profile and not is_sample(head)]

    def _alike(self, policy: Policy) -> list[Known]:
        """Some runs of the same policy, or of its class if there are none."""
        if policy.name not in self._by_policy:
            ways = [equals("policy", policy.name), starts("policy", policy.name.partition(":")[0])]
            found = (self._measured(self._store.some_heads(self.factory.profile.name, where, ALIKE)) for where in ways)
            self._by_policy[policy.name] = next((known for known in found if known), [])
        return self._by_policy[policy.name]

    def _runs_of(self, trace_id: str) -> list[RunInfo]:
        if trace_id not in self._by_trace:
            self._load_runs([trace_id])
        return self._by_trace[trace_id]

    def _load_runs(self, trace_ids: Iterable[str]) -> None:
        """Read the runs of many traces at once."""
        wanted = [trace_id for trace_id in trace_ids if trace_id not in self._by_trace]
        self._by_trace |= {trace_id: [] for trace_id in wanted}
        for head in self._store.heads(trace_ids=wanted):
            self._by_trace[head.trace_id].append(head)

    def known(self, policy: Policy, trace_id: str, tokens: float = 0.0) -> Known | None:
        """The run or trial most similar to this policy on this trace, whose blocks have `tokens` tokens on average."""
        found = [*self._tried.like(policy), *self._alike(policy), *self._measured(self._runs_of(trace_id))]
        return most_like(found, policy, trace_id, tokens)

    def try_unknown(self, todo: Mapping[str, Sequence[str]]) -> None:
        """Try policies that need no model on traces where nothing is known of them: first the longest of each, then others for a while."""
        asked = {trace_id for names in todo.values() for trace_id in names}
        self._load_runs(asked)
        sizes = self.factory.workspace.trace_sizes(asked)
        policies = {name: policy for name in todo if is_light(policy := parse_policy(name), self.factory)}
        ranked = sorted(asked, key=lambda trace_id: -sizes[trace_id].turns)
        first = {name: max(todo[name], key=lambda trace_id: sizes[trace_id].turns) for name in policies if todo[name]}
        asked_of = {name: set(todo[name]) - {trace_id} for name, trace_id in first.items()}
        others = islice(((name, trace_id) for trace_id in ranked for name in first if trace_id in asked_of[name]), OTHERS)

        def unknown(pairs: Iterable[tuple[str, str]]) -> list[tuple[Policy, str]]:
            return [(policies[name], trace_id) for name, trace_id in pairs if not self._knows(policies[name], trace_id)]

        self._tried.add(self._of_trials(try_policies(unknown(first.items()), unknown(others), self.factory)))

    def _knows(self, policy: Policy, trace_id: str) -> bool:
        """Whether the policy ran or was tried on this very trace."""
        found = self.known(policy, trace_id)
        return found is not None and found.is_of(policy, trace_id)

    def turn_seconds(self, policy: Policy, trace_id: str, size: TraceSize) -> float:
        """Expected seconds of one turn; they include embedding only if measured on this very trace. Half of a time measured on another
        trace is scaled by block size."""
        tokens = size.later_tokens / max(size.turns, 1)
        found = self.known(policy, trace_id, tokens)
        if found is None or (isinstance(policy, Embeds) and not found.is_of(policy, trace_id)):
            return guessed_turn(policy) * by_size(tokens, REFERENCE_TOKENS)
        return self._seconds_of(found) * (by_size(tokens, found.tokens) if found.trace_id != trace_id else 1.0)

    def _seconds_of(self, known: Known) -> float:
        """Seconds of one turn; a run's are read from the store only once, since one run often serves many traces."""
        if known.seconds:
            return known.seconds * (stretch() / known.stretch if known.stretch else 1.0)
        if known.run_id not in self._seconds:
            self._seconds[known.run_id] = self._store.seconds_per_turn(known.run_id)
        return self._seconds[known.run_id]

    def costs(self, todo: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], Cost]:
        """Policy and trace -> how long the run takes; shared states count for the first run that reads them."""
        asked = {trace_id for names in todo.values() for trace_id in names}
        self._load_runs(asked)
        sizes = self.factory.workspace.trace_sizes(asked)
        found: dict[tuple[str, str], Cost] = {}
        read: set[tuple[str, int]] = set()
        embedded: defaultdict[str, set[str]] = defaultdict(set)
        for name, trace_ids in todo.items():
            policy = parse_policy(name)
            for trace_id in trace_ids:
                cost = self.cost(policy, trace_id, sizes[trace_id], self._stored(policy, trace_id), embedded[trace_id])
                if (trace_id, retained(policy)) in read:
                    cost = replace(cost, read_tokens=0, read_seconds=0.0)
                found[name, trace_id] = cost
                read |= {(trace_id, retained(policy))} if policy.needs_models else set()
                embedded[trace_id] |= texts(policy)
        return found

    def load(self, policy: Policy, resources: Resources) -> None:
        """Load a policy's models before its run is timed; a frozen model that was never measured here is measured now."""
        watch, folder = Watch(), self.factory.workspace.path
        probe = resources.probe if policy.needs_models else None
        _ = resources.embedder if "embedder" in policy.needs else None
        if (seconds := watch.alone()) > LOADED:
            Estimator.loaded += seconds
        if isinstance(probe, HeadsProbe) and self.inputs.reads(policy):
            if Estimator.loaded:
                remember(folder, probe.states.model, loading=Estimator.loaded)
                Estimator.loaded = 0.0
            if self.pace.basis == "guessed":
                blocks = loaded_pace(probe.states.model, folder, self.depth(policy))
                self.pace = replace(self.pace, blocks=blocks, basis="measured")

    def _stored(self, policy: Policy, trace_id: str) -> int:
        """Turns of an unfinished run that are already stored."""
        begun = newest(self._runs_of(trace_id), [policy.name], self.factory.profile.name).get(policy.name)
        return self._store.stored_count(begun.run_id) if begun and begun.status != "done" else 0

    def cost(self, policy: Policy, trace_id: str, size: TraceSize, stored: int = 0, embedded: Set[str] = frozenset()) -> Cost:
        """How long a run takes that has `stored` turns and their states already. `embedded`: texts that other runs embed."""
        turns = min(size.turns, self.turn_limit) if self.turn_limit else size.turns
        there = max(stored, self.inputs.turns_read(policy, trace_id))
        tokens = self.inputs.tokens(policy, size, turns - there) if there < turns else 0
        known = self.known(policy, trace_id, size.later_tokens / max(size.turns, 1))
        ran = known is not None and known.is_of(policy, trace_id)
        embedding, basis = (0.0, "guessed") if ran else self._embedding(policy, trace_id, size, embedded)
        return Cost(
            read_tokens=tokens,
            turns=max(turns - stored, 0),
            read_seconds=self.pace.seconds(tokens, self.depth(policy)) if tokens else 0.0,
            turn_seconds=self.turn_seconds(policy, trace_id, size) + embedding,
            embed_seconds=embedding,
            store_seconds=known.storing if known else 0.0,
            known=known is not None,
            sure=ran or (embedding > 0 and basis == "measured"),
        )

    def _embedding(self, policy: Policy, trace_id: str, size: TraceSize, embedded: Set[str]) -> tuple[float, str]:
        """Seconds per turn for embedding texts that no other run embeds, and whether the pace was measured or guessed."""
        named = self.inputs.embeds(policy, trace_id, size)
        if not named:
            return 0.0, "guessed"
        there = embedded | self.inputs.embedded(trace_id)
        characters = sum(count for name, count in named.items() if name not in there)
        pace, basis = embedding_pace(self.factory.profile, self.factory.workspace.path)
        return characters / pace, basis
