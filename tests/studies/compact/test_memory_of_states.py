"""Hidden banks by hand, and the recurrent network: causal, and able to use what only the sequence says."""

import numpy as np

from pamer_lab.probes.metrics import auroc
from pamer_lab.probes.readout import Floats
from pamer_lab.probes.split import TEST, split_by_question
from pamer_lab.probes.training import Training
from pamer_lab.studies.compact.gru import fit_steps
from pamer_lab.studies.compact.hidden_bank import HiddenBank, Recurrent, recent, similarity, uniform
from pamer_lab.studies.compact.points import Counts, DecisionPoint, decision_points
from pamer_lab.studies.compact.values import Blocks, Condition, Steps
from pamer_lab.studies.decisions import Decisions
from tests.studies.compact.making import resources, sized

OLDER = np.array([[1, 0], [0, 1], [2, 0.1], [-1, 0], [1, 1], [3, 0]], dtype=np.float32)


class Given:
    """States that are written down: block `j` has the state `rows[j]`."""

    def __init__(self, rows: Floats, turns: list[int]) -> None:
        self.rows, self.points = rows, tuple(decision_points(sized(*[1] * len(rows)), turns))
        self.counts: Counts = resources().counts

    def vectors(self, condition: Condition) -> Floats:
        return np.stack([self.rows[point.last] for point in self.points])

    def stored(self) -> Blocks:
        return Blocks(self.rows, np.array([0, len(self.rows)]), np.array([(0, point.t) for point in self.points]))


def test_picks_by_hand() -> None:
    base = np.array([1, 0], dtype=np.float32)
    assert list(uniform(base, OLDER, 3)) == [0, 2, 5]
    assert list(uniform(base, OLDER, 9)) == [0, 1, 2, 3, 4, 5]
    assert list(recent(base, OLDER, 2)) == [4, 5]
    assert list(similarity(base, OLDER, 3)) == [0, 2, 5]  # cosines 1, 0.9988 and 1
    assert list(similarity(base, OLDER, 1)) == [5]  # of equals the newer


def test_a_bank_is_the_base_beside_the_mean_of_older_states_and_the_base_twice_at_the_start() -> None:
    material = Given(OLDER, [1, 3, 6])
    found = HiddenBank("recent", 2).represent(material).features
    assert np.allclose(found, [[1, 0, 1, 0], [2, 0.1, 0.5, 0.5], [3, 0, 0, 0.5]])
    assert found.shape == (3, 4)
    nearest = HiddenBank("similarity", 1).represent(Given(OLDER, [4])).features
    assert np.allclose(nearest, [[-1, 0, 0, 1]]), "nearest to the newest state"
    hybrid = Recurrent(bank=HiddenBank("recent", 2)).represent(material)
    assert np.array_equal(hybrid.features, found)
    assert hybrid.blocks.places.tolist() == [[0, 1], [0, 3], [0, 6]]


def _decisions(traces: int, turns: int, labels: np.ndarray) -> Decisions:
    keys = tuple((f"t{trace}", t) for trace in range(traces) for t in range(1, turns + 1))
    both = np.stack([labels, labels])
    return Decisions(keys, tuple(f"q{trace}" for trace, _ in keys), both, np.ones_like(both), "")


def test_the_recurrent_network_reads_what_only_earlier_states_say_and_never_later_ones() -> None:
    traces, turns, width = 40, 6, 4
    rng = np.random.default_rng(0)
    sequences = rng.normal(size=(traces, turns, width)).astype(np.float32)
    labels = (sequences[:, 0, 0] > 0).repeat(turns)  # only the first block tells
    places = np.array([(trace, t) for trace in range(traces) for t in range(1, turns + 1)])
    features = np.array([sequences[trace, t - 1] for trace, t in places])
    decisions = _decisions(traces, turns, labels)
    split = split_by_question(decisions.questions, 0)
    training = Training(width=16, batch=32, learning_rate=5e-3)
    starts = np.arange(0, traces * turns + 1, turns)
    steps = Steps(features, Blocks(sequences.reshape(-1, width), starts, places), 16)
    logits = fit_steps(decisions, [split], steps, training=training)[0, 0]
    late = split.rows(TEST) & (places[:, 1] >= 3)
    assert float(auroc(logits[late], labels[late])) > 0.85
    changed = sequences.copy()
    tested = np.unique(places[split.rows(TEST), 0])
    changed[tested, 4:] += 5.0
    other = Steps(features, Blocks(changed.reshape(-1, width), starts, places), 16)
    again = fit_steps(decisions, [split], other, training=training)[0, 0]
    early = places[:, 1] <= 4
    assert np.allclose(again[early], logits[early], atol=1e-5)


def test_points_of_a_trace_share_their_history() -> None:
    found: list[DecisionPoint] = decision_points(sized(1, 2, 3), [1, 2, 3])
    assert [point.last for point in found] == [0, 1, 2]
    assert all(len(point.messages) == 1 + 2 * point.t for point in found)
