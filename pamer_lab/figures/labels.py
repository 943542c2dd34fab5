"""Positions for the labels of a scatter chart so that they do not cover each other; knows nothing but plotly's names of positions.

Greedy: crowded points come first, and each label takes the position that covers least of what is already placed.
Invariant: every label gets a position, and the same points give the same positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

POSITIONS = (
    *("top center", "bottom center", "middle right", "middle left"),
    *("top right", "top left", "bottom right", "bottom left"),
)
"""Plotly's names, in the order they are preferred."""
LETTER = 5.6
"""Pixels of a letter at the size of our labels, on average."""
LINE = 13.0
MARK = 7.0
"""Half the width of a mark, with some air."""


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def shared(self, other: "Box") -> float:
        """Area that both cover."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return wide * high if wide > 0 and high > 0 else 0.0


def placed(points: Sequence[tuple[float, float]], texts: Sequence[str], *, width: float = 1_000, height: float = 340) -> list[str]:
    """A position for each label; `width` and `height` are the drawing area's, in pixels."""
    pixels = to_pixels(points, width, height)
    marks = [Box(x - MARK, y - MARK, x + MARK, y + MARK) for x, y in pixels]
    frame = Box(0, -LINE, width, height + LINE)
    near = [sum(abs(x - a) < 90 and abs(y - b) < 30 for a, b in pixels) for x, y in pixels]
    taken: list[Box] = []
    found = [POSITIONS[0]] * len(points)
    for number in sorted(range(len(points)), key=lambda number: (-near[number], number)):
        if not texts[number]:
            continue
        others = [mark for place, mark in enumerate(marks) if place != number]
        options = [(name, box_of(name, pixels[number], texts[number])) for name in POSITIONS]
        name, box = min(options, key=lambda option: (round(_cost(option[1], [*taken, *others], frame), 3), POSITIONS.index(option[0])))
        found[number] = name
        taken.append(box)
    return found


def box_of(position: str, at: tuple[float, float], text: str) -> Box:
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


def to_pixels(points: Sequence[tuple[float, float]], width: float, height: float) -> list[tuple[float, float]]:
    if not points:
        return []
    xs, ys = [x for x, _ in points], [y for _, y in points]
    wide, high = max(xs) - min(xs) or 1.0, max(ys) - min(ys) or 1.0
    # Plotly leaves about a twentieth free at each side.
    return [((0.05 + 0.9 * (x - min(xs)) / wide) * width, (0.95 - 0.9 * (y - min(ys)) / high) * height) for x, y in points]
