from hypothesis import given
from hypothesis import strategies as st

from pamer_lab.memory.details import ARROW, DETAIL_CHARACTERS, NAMES, SAYS, StepDetail, read_detail

WORDS = st.text(alphabet="abcXYZ07.-_ 中\n|>", max_size=200) | st.sampled_from([ARROW, SAYS, NAMES, f"a{ARROW}b{NAMES}c"])
LISTS = st.lists(WORDS, max_size=30).map(tuple)


@given(calls=WORDS, says=LISTS, line=WORDS, names=LISTS)
def test_any_parts_give_one_line_within_its_budget(calls: str, says: tuple[str, ...], line: str, names: tuple[str, ...]) -> None:
    text = StepDetail(calls, says, line, names).text()
    assert text.strip() and "\n" not in text and len(text) <= DETAIL_CHARACTERS


def test_the_parts_are_read_back_and_what_does_not_fit_is_left_out() -> None:
    detail = StepDetail('read({"path":"a.py"})', ("Clara Reuter",), "It is by Wanda Hughes.", ("ORD-7", "12,345"))
    assert read_detail(detail.text()) == detail
    many = StepDetail("read()", (), "A line.", tuple(f"name-{number:03d}" for number in range(90)))
    parts = read_detail(many.text())
    assert parts is not None and parts.names == many.names[: len(parts.names)] and 10 < len(parts.names) < 90


def test_marks_inside_the_parts_do_not_move_the_borders() -> None:
    parts = read_detail(StepDetail(f"run(a{ARROW}b)", ("Ada",), f"x{ARROW}y{NAMES}z", ("ORD-7",)).text())
    assert parts is not None and parts.says == ("Ada",) and parts.names == ("ORD-7",)


def test_a_line_in_another_form_has_no_parts() -> None:
    assert read_detail("The agent read a file and found nothing.") is None
