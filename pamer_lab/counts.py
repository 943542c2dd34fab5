"""Counts as people write them; for messages, reasons and tables of every room."""


def counted(count: int, thing: str, things: str = "") -> str:
    """`1 trace`, `12 traces`, `1,200 traces`."""
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"
