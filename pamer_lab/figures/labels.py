"""Positions for the labels of a scatter chart so that they do not cover each other; knows nothing but plotly's names of positions.

Greedy: each label takes the position that covers least of what is already placed.
Invariant: the same points give the same positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

POSITIONS = ("top center", "bottom center", "middle right", "middle left", "top right", "top left", "bottom right", "bottom left")
"""Plotly's names, in the order they are preferred."""
LETTER = 5.6
"""Average width of a letter of our labels, in pixels."""
LINE = 13.0
MARK = 7.0
"""Half the width of a mark plus a margin, in pixels."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def shared(self, other: "Box") -> float:
        """Area that both boxes cover."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return wide * high if wide > 0 and high > 0 else 0.0


def label_positions(
    points: Sequence[Point],
    texts: Sequence[str],
    *,
    size: Point = (1_000, 340),
    area: tuple[Point, Point] | None = None,
    marks: Sequence[Point] = (),
    priority: Sequence[float] = (),
    only_free: bool = False,
) -> list[str]:
    """A position for each label; `only_free` gives "" to a label that would cover something.

    `size` is that of the drawing area in pixels and `area` its ranges (by default those of the points), `marks` are further points
    that no label should cover. Labels with a higher `priority` choose first; by default those in crowded areas.
    """
    bounds = area or ranges(points)
    pixels = to_pixels(points, size, bounds)
    own, others = [_mark(at) for at in pixels], [_mark(at) for at in to_pixels(marks, size, bounds)]
    frame = Box(0, -LINE, size[0], size[1] + LINE)
    priority = priority or [sum(abs(x - a) < 90 and abs(y - b) < 30 for a, b in pixels) for x, y in pixels]
    taken: list[Box] = []
    found = [POSITIONS[0]] * len(points)
    for number in sorted(range(len(points)), key=lambda number: (-priority[number], number)):
        if not texts[number]:
            continue
        covered = [*taken, *others, *own[:number], *own[number + 1 :]]
        costs = {name: round(_cost(box_of(name, pixels[number], texts[number]), covered, frame), 3) for name in POSITIONS}
        best = min(POSITIONS, key=lambda name: (costs[name], POSITIONS.index(name)))
        found[number] = "" if only_free and costs[best] else best
        if found[number]:
            taken.append(box_of(best, pixels[number], texts[number]))
    return found


def _mark(at: Point) -> Box:
    return Box(at[0] - MARK, at[1] - MARK, at[0] + MARK, at[1] + MARK)


def box_of(position: str, at: Point, text: str) -> Box:
    """What a label covers."""
    wide, (x, y) = LETTER * len(text), at
    vertical, side = position.split()
    left = x - wide / 2 if side == "center" else x + MARK if side == "right" else x - MARK - wide
    top = y - LINE / 2 if vertical == "middle" else y - MARK - LINE if vertical == "top" else y + MARK
    return Box(left, top, left + wide, top + LINE)


def _cost(box: Box, taken: Sequence[Box], frame: Box) -> float:
    """Area covered twice, and area outside the chart, which would be cut off."""
    outside = (box.right - box.left) * (box.bottom - box.top) - box.shared(frame)
    return sum(box.shared(other) for other in taken) + outside


def ranges(points: Sequence[Point]) -> tuple[Point, Point]:
    """Plotly's default axis ranges for these points: about a twentieth is free at each side."""

    def wider(values: Sequence[float]) -> Point:
        low, high = min(values, default=0.0), max(values, default=1.0)
        room = (high - low or 1.0) / 18
        return low - room, high + room

    return wider([x for x, _ in points]), wider([y for _, y in points])


def to_pixels(points: Sequence[Point], size: Point, area: tuple[Point, Point]) -> list[Point]:
    (left, right), (bottom, top) = area
    return [((x - left) / (right - left) * size[0], (top - y) / (top - bottom) * size[1]) for x, y in points]
