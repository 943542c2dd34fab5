"""Counts as people write them, and as they are read from untrusted text; for messages, reasons and tables of every room."""

MOST_DIGITS = 18
"""Maximum digits of a number in text, so that it fits into 64 bits."""


def counted(count: int, thing: str, things: str = "") -> str:
    """`1 trace`, `12 traces`, `1,200 traces`."""
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def whole_number(text: str, *, most_digits: int = MOST_DIGITS) -> int | None:
    """A text as a whole number in the digits 0 to 9; None if it is not one, or too long. `str.isdigit` also accepts `²`."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= most_digits else None
