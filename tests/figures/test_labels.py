from hypothesis import given, settings
from hypothesis import strategies as st

from pamer_lab.analysis.published import names, table
from pamer_lab.figures.labels import POSITIONS, box_of, label_positions, ranges, to_pixels

NUMBER = st.floats(-1e6, 1e6)


def overlap(points: list[tuple[float, float]], texts: list[str]) -> float:
    """Area where labels cover each other."""
    pixels = to_pixels(points, (1_000, 340), ranges(points))
    boxes = [box_of(name, at, text) for name, at, text in zip(label_positions(points, texts), pixels, texts, strict=True)]
    return sum(one.shared(other) for number, one in enumerate(boxes) for other in boxes[number + 1 :])


def test_the_published_methods_do_not_write_over_each_other() -> None:
    shown = table("method_comparison")
    assert "method_comparison" in names()
    rows = [row for row in shown.rows if row.get("tokens") is not None and row.get("average") is not None]
    points, texts = [(row["tokens"], row["average"]) for row in rows], [row["label"] for row in rows]
    assert len(points) > 10 and overlap(points, texts) == 0


def test_two_points_at_one_place_get_different_positions() -> None:
    assert len(set(label_positions([(0, 0), (0, 0), (5, 5)], ["one", "two", "three"]))) >= 2


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(NUMBER, NUMBER), max_size=12))
def test_every_label_gets_a_place_and_always_the_same(points: list[tuple[float, float]]) -> None:
    texts = [f"label {number}" for number in range(len(points))]
    found = label_positions(points, texts)
    assert len(found) == len(points) and set(found) <= set(POSITIONS) and found == label_positions(points, texts)


def test_a_label_without_a_free_position_is_left_out() -> None:
    crowd = [(float(number % 3), float(number // 3)) for number in range(9)]
    texts = ["a long name of a point"] * 9
    found = label_positions(crowd, texts, size=(200, 80), only_free=True, priority=range(9, 0, -1))
    assert found[0] in POSITIONS and found.count("") > 3
    assert "" not in label_positions(crowd, texts, size=(200, 80))
