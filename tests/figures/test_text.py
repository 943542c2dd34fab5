"""Untrusted text: nothing hidden, no markup.

Numbers as people read them.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pamer_lab.figures.text import counted, duration, in_figure, layer_words, one_line, round_ticks, share, short, time_range, visible


def test_plain_text_of_any_script_is_unchanged() -> None:
    text = "Grüße, 日本語, שלום, مرحبا, 👩‍🔬\n\ttab"
    assert visible(text) == text


def test_unseen_characters_become_seen() -> None:
    assert visible("a\x1b[1mb\x00c\x7fd") == "a␛[1mb␀c␡d"
    assert visible("\u202eabc\u2066\u200b\ufeff") == "⟨U+202E⟩abc⟨U+2066⟩⟨U+200B⟩⟨U+FEFF⟩"
    assert visible("\U000e0041") == "⟨U+E0041⟩"
    assert visible("\ud800") == "⟨U+D800⟩"


def test_line_ends_are_one_kind_and_a_lone_return_is_shown() -> None:
    assert visible("a\r\nb\rc") == "a\nb␍c"


@given(st.text())
def test_what_is_shown_can_always_be_sent_and_seen(text: str) -> None:
    shown = visible(text)
    shown.encode()
    assert not set(shown) & set(map(chr, [*range(9), *range(11, 32), 0x7F, 0x202E, 0x2066]))


def test_figures_get_no_markup() -> None:
    assert in_figure("<a href='x'>b</a>") == "&lt;a href=&#x27;x&#x27;&gt;b&lt;/a&gt;"


def test_one_line_says_when_it_is_cut() -> None:
    assert one_line("short\ntext") == "short text"
    assert one_line("x" * 100, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (999, "999"), (1_000, "1.0K"), (12_400, "12.4K"), (999_949, "999.9K"), (999_950, "1.0M"), (-61_200, "-61.2K")],
)
def test_thousands_are_short(value: float, text: str) -> None:
    assert short(value) == text


def test_shares_have_one_decimal_and_a_share_of_nothing_is_none() -> None:
    assert share(26, 100) == "26.0 %"
    assert share(1, 0) == "none"


def test_one_thing_is_not_many() -> None:
    assert counted(1, "trace") == "1 trace"
    assert counted(2_000, "trace") == "2,000 traces"


@pytest.mark.parametrize("largest", [1, 3, 7, 12, 95, 100, 999, 2_345, 69_003, 1_000_000])
def test_ticks_are_few_round_and_within_the_data(largest: int) -> None:
    ticks = round_ticks(largest)
    assert 2 <= len(ticks) <= 6
    assert ticks[0] == 0 and ticks[-1] <= largest
    assert all(tick == int(tick) for tick in ticks)


def test_a_time_is_a_range_where_other_programs_make_it_longer() -> None:
    assert [time_range(seconds, seconds) for seconds in (0.5, 40)] == ["under 1 s", "about 40 s"]
    assert time_range(38, 40) == time_range(40, 40) and time_range(0.2, 0.9) == time_range(0.5, 0.5)
    assert time_range(40, 180).startswith("40 s to 3 min") and time_range(0.4, 3).startswith("1 s to 3 s")


def test_durations_are_in_the_unit_that_reads_best() -> None:
    assert [duration(seconds) for seconds in (0.2, 40, 180, 17_700)] == ["1 s", "40 s", "3 min", "4.9 h"]
    assert [layer_words(name) for name in ("block_17", "final", "one layer")] == ["layer 17", "final layer", "one layer"]
