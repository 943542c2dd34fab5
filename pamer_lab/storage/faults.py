"""What the store's engine says when the world fails, in words for people: what happened, and what to do.

Knows the wording of operating systems and of LanceDB; nothing of tables. `docs/operations.md` describes each case.
"""

import re

_PLACE = re.compile(r",? ?\S*\.rs:\d+:\d+")
"""Where in the engine's own source an error was made."""
_PREFIX = re.compile(r"^(?:lance error: |LanceError\(\w+\): |External error: |Generic \w+ error: )+")
LONGEST = 300
WORDS = (
    (("no space left", "os error 28", "quota exceeded", "os error 122"), "the disk is full: free some space and try again"),
    (
        ("read-only file system", "os error 30", "permission denied", "os error 13", "operation not permitted"),
        "it is read-only: change its permissions, or choose another folder with --workspace",
    ),
    (("too many open files", "os error 24"), "too many files are open: close other programs, or raise `ulimit -n`"),
    (
        ("not found", "no such file", "os error 2)", "does not exist"),
        "was it deleted or moved while the program was running? Reload the page or run the command again",
    ),
)
"""Signs in an error's text, in lower case, and what to do."""


def short(error: Exception) -> str:
    """The first line of an error, without the engine's own places."""
    text = str(error).strip()
    first = text.splitlines()[0] if text else type(error).__name__
    return _PREFIX.sub("", _PLACE.sub("", first))[:LONGEST]


def advice(error: Exception) -> str:
    """`; what to do` for a fault that is known; empty for another."""
    text = str(error).lower()
    return next((f"; {words}" for signs, words in WORDS if any(sign in text for sign in signs)), "")


def lost_race(error: Exception) -> bool:
    """Did another process commit first?"""
    text = str(error).lower()
    return "conflict" in text or "concurrent" in text


def half_made(error: Exception) -> bool:
    """Is another process just creating the table?"""
    text = str(error).lower()
    return "was not found" in text or "already exists" in text or lost_race(error)
