"""Names and values drawn from the word tables.

Knows how each is put together, not whose it is nor whether it was used before.
"""

from pamer_lab.corpus.rng import Draw
from pamer_lab.corpus.tables import name_parts


def make_name(draw: Draw, pattern: str, suffixes: tuple[str, ...] = ()) -> str:
    """A name of the given pattern."""

    def part(table: str) -> str:
        return draw.pick(name_parts()[table])

    match pattern:
        case "person":
            return f"{part('first')} {part('surname')}"
        case "the-place":
            return f"the {part('place')} {draw.pick(suffixes)}"
        case "the-surname":
            return f"the {part('surname')} {draw.pick(suffixes)}"
        case "ship":
            return f"the {part('first')} {part('surname')}"
        case "peak":
            return f"Mount {part('surname')}" if draw.chance(50) else f"{part('surname')} Horn"
        case "work":
            return f"{part('work')} {part('place')}"
        case "service":
            return f"{part('service_first')}-{part('service_second')}"
        case "database":
            return f"{part('service_first')}_{part('database_second')}_db"
        case "job":
            return f"{part('job_first')}-{part('service_first')}-{part('job_last')}"
        case "queue":
            return f"{part('service_first')}.{part('queue_second')}"
        case _:
            return part("place")


def make_value(draw: Draw, kind: str) -> str:
    """A value of the given kind."""
    parts = name_parts()
    match kind:
        case "person":
            return make_name(draw, "person")
        case "place":
            return draw.pick(parts["place_before"]) + make_name(draw, "place")
        case "team":
            return f"team-{draw.pick(parts['service_first'])}{draw.between(2, 99)}"
        case "host":
            return f"{draw.pick(parts['service_first'])[:4]}{draw.between(10, 99)}.{draw.pick(parts['region'])}"
        case "version":
            return f"{draw.between(1, 9)}.{draw.between(0, 30)}.{draw.between(0, 30)}"
        case "port":
            return str(draw.between(2000, 9999))
        case "ticket":
            return f"INC-{draw.between(10000, 99999)}"
        case _:
            return f"{draw.pick(parts['service_first'])}.{draw.pick(parts['service_second'])}_v{draw.between(2, 99)}"
