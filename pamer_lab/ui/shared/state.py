"""State in the URL: a link opens the same view in a fresh browser.

Bound widgets (`bind="query-params"`) keep their own value in the URL; this module does it for everything else, such as the trace's id.
Streamlit clears URL and widgets on a page change, so the session remembers its last choices.
Invariant: the URL wins over the session, and no trace text enters a URL.
"""

from collections.abc import Sequence

import streamlit as st

from pamer_lab.counts import whole_number

NUMBERS = "block hit horizon kept least point scale shift turn vote".split()
"""Parameters that hold a number."""
MOST_CHARACTERS = 16
"""Maximum length of a number in a URL; Python refuses to read very long ones, and Streamlit's widgets fail on them."""


ARRIVED = "arrived"
"""Session key: `fresh` in the first run of a session, `clicked` in later ones, or what a page was first asked for by its address."""


def note_arrival() -> None:
    """Call before a page is drawn, once per run. An address without parameters asks for nothing, so its page is shown as after a click."""
    known = st.session_state.get(ARRIVED)
    if known in (None, "fresh"):
        st.session_state[ARRIVED] = "fresh" if known is None and st.query_params else "clicked"


def only_followed_a_link(*asked: object) -> bool:
    """Whether the session began with this page's address and nobody has chosen anything else since.

    Links come from anywhere, so what they ask for is shown and offered; nothing is computed and stored before a click. `asked`: what
    the page was asked for. A run that no click caused, such as one after a switch of the theme, asks for the same.
    """
    if st.session_state.get(ARRIVED) == "fresh":
        st.session_state[ARRIVED] = asked
    return st.session_state.get(ARRIVED) == asked


def drop_long_numbers() -> list[str]:
    """Take numbers that are too long, or too large for any widget, out of the URL; returns their names."""
    dropped = [name for name in NUMBERS if name in st.query_params and not _bearable(st.query_params[name])]
    for name in dropped:
        del st.query_params[name]
    return dropped


def _bearable(text: str) -> bool:
    try:
        return len(text) <= MOST_CHARACTERS and abs(float(text)) < 10**MOST_CHARACTERS
    except ValueError:
        return len(text) <= MOST_CHARACTERS  # not a number: the widget ignores it


def chosen(name: str) -> str:
    """The value in the URL; else what this session chose last; else nothing."""
    return st.query_params.get(name) or str(st.session_state.get(f"chosen:{name}", ""))


def remember(name: str, value: str) -> None:
    """Set what the other pages open with, without changing this page's URL."""
    st.session_state[f"chosen:{name}"] = value


def choose(name: str, value: str) -> None:
    """Put a value into the URL and remember it for the other pages."""
    remember(name, value)
    if st.query_params.get(name) != value:
        st.query_params[name] = value


def settle(name: str, allowed: Sequence[str] | range, otherwise: str | int, *, of: str = "") -> None:
    """Give a widget its value before it is drawn: what it has, else what the URL says, else what it last had, else `otherwise`.

    For widgets whose default depends on the data: a bound widget leaves its default out of the URL, and a link would lose it. If a value
    means something only for one trace, `of` is its id.
    """
    last = f"{name}:{of}"
    if st.session_state.get(name) not in allowed:
        text = chosen(last) if name not in st.query_params else st.query_params[name]
        asked = _number(text) if isinstance(allowed, range) else text
        st.session_state[name] = asked if name not in st.session_state and asked in allowed else otherwise
    remember(last, str(st.session_state[name]))


def start_anew(name: str) -> None:
    """Drop a widget's value here and in the URL, before another trace is shown in which it means nothing."""
    st.session_state.pop(name, None)
    st.query_params.pop(name, None)


def out_of_range(name: str, limit: int) -> int | None:
    """The number a link asks for when it is not below `limit`; a bound widget would drop it silently.

    Once the widget has a value, the number in the URL is the page's own, perhaps of the trace before.
    """
    asked = _number(st.query_params.get(name, "") if name not in st.session_state else "")
    return asked if asked >= limit else None


def _number(asked: str) -> int:
    """The number in an address; -1 if there is none, or if it has too many digits for a widget."""
    number = whole_number(asked, most_digits=MOST_CHARACTERS)
    return -1 if number is None else number
