"""The difference of two texts: complete for short ones, bounded for long ones, nothing unseen in it."""

from pamer_lab.ui.replay.turn_texts import LONGEST, MOST_LINES, difference


def test_each_stretch_is_a_line_and_both_texts_can_be_read_from_it() -> None:
    first, second = "The museum was founded in 1901 by Ada Holt", "The museum was built in 1901"
    shown = difference(first, second)
    assert shown.splitlines() == ["  The museum was", "- founded", "+ built", "  in 1901", "- by Ada Holt"]
    for signs, text in ((" -", first), (" +", second)):
        assert " ".join(line[2:] for line in shown.splitlines() if line[0] in signs) == text


def test_long_stretches_and_long_texts_are_bounded_and_say_so() -> None:
    assert "… 60 words …" in difference("x " * (60 + LONGEST), "y")
    shown = difference(" ".join(f"a{n} same{n}" for n in range(9_000)), " ".join(f"b{n} same{n}" for n in range(9_000)))
    assert len(shown.splitlines()) <= MOST_LINES + 1
    assert shown.splitlines()[-1].strip().startswith("…")
    assert len(difference("z" * 1_000_000, "")) < 300


def test_unseen_characters_become_visible() -> None:
    assert difference("a\u202eb", "a\x1bb") == "- a⟨U+202E⟩b\n+ a␛b"
