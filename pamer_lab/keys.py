"""Keys of servers: where they come from, and how they stay out of every text.

They come from environment variables only; Streamlit puts the top-level entries of its `secrets.toml` there. Knows names and values of the
environment and nothing else. What always holds: no key is returned but by `api_key`, and `without_keys` leaves none in a text.
"""

import os
import re

_NAME = re.compile(r"(?i)(?:api_?key|token|secret|passw(?:or)?d)$")
LEAST_VALUE = 8
"""Characters that a value must have to be looked for; shorter ones are no keys, and would be found everywhere."""
NO_KEY = "none"
"""Sent to servers that ask for no key."""


def api_key(variable: str) -> str:
    """The key in an environment variable."""
    return os.environ.get(variable) or NO_KEY


def own_keys() -> tuple[str, ...]:
    """Values of all variables that are named like keys, longest first."""
    values = {value.strip() for name, value in os.environ.items() if _NAME.search(name)}
    return tuple(sorted((value for value in values if len(value) >= LEAST_VALUE), key=lambda value: (-len(value), value)))


def without_keys(text: str) -> str:
    """The text with every own key cut out."""
    for value in own_keys():
        text = text.replace(value, "[key]")
    return text
