"""Which requests a local server answers: those addressed to its own names, and none from other sites' pages.

For the dashboard and the live proxy alike. Knows header values only.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Names of this computer."""


def host_name(host: str) -> str:
    """The name in a Host header, without its port; empty where the header is not a plain name."""
    try:
        parts = urlsplit(f"//{host}")
        plain = parts.netloc == host and parts.username is None and parts.port is not False
    except ValueError:
        return ""
    return (parts.hostname or "").lower().rstrip(".") if plain else ""


def host_allowed(host: str, allowed: Iterable[str] = LOOPBACK) -> bool:
    """Whether a Host header names one of these hosts; `*` and `*.example.org` match several."""
    name = host_name(host)
    for entry in allowed:
        pattern = str(entry).strip().lower().strip("[]").rstrip(".")
        if name and (pattern in ("*", name) or (pattern.startswith("*.") and name.endswith(pattern[1:]))):
            return True
    return False


def own_origin(origin: str, host: str, allowed: Iterable[str] = ()) -> bool:
    """Whether a page of this origin is a page of this server: the same host and port, or an origin that is allowed by name."""
    if origin in {str(entry).strip() for entry in allowed}:
        return True
    scheme, _, place = origin.partition("://")
    return scheme in ("http", "https") and place.lower() == host.lower()
