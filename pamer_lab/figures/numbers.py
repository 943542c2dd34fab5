"""Numbers as people read them: `12.4K`, `26.0 %`, without meaningless digits."""

import math


def short(value: float) -> str:
    """Thousands as `12.4K`, millions as `1.2M`; below a thousand the number itself."""
    size = abs(value)
    if size < 1_000:
        return f"{value:,.0f}"
    if size < 999_950:
        return f"{value / 1_000:.1f}K"
    return f"{value / 1_000_000:.1f}M"


def share(part: float, whole: float) -> str:
    """A share as `26.0 %`; a share of nothing is said to be none."""
    return f"{100 * part / whole:.1f} %" if whole else "none"


def counted(count: int, thing: str, things: str = "") -> str:
    """`1 trace`, `12 traces`."""
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def duration(seconds: float) -> str:
    """`40 s`, `3 min`; never less than a second."""
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def round_ticks(largest: float) -> list[float]:
    """Three to six round values from 0 up to `largest`, for an axis."""
    if largest <= 0:
        return [0]
    power = 10 ** math.floor(math.log10(largest))
    step = max(1, next(factor * power for factor in (0.2, 0.5, 1, 2) if largest / (factor * power) <= 5))
    return [number * step for number in range(int(largest / step) + 1)]
