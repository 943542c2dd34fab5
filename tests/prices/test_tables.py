import os
from pathlib import Path

import msgspec
import pytest

from pamer_lab.cli import LONGEST_LINE
from pamer_lab.errors import InputError
from pamer_lab.prices import DEFAULT, FOLDER, PACKAGED, PriceTable, find_prices, price_tables, read_table, write_table

GOOD = {"uncached": 1.0, "read": 0.1, "write": 1.25, "output": 5.0, "minimum_tokens": 0, "granularity_tokens": 1, "lifetime_seconds": 300}


def toml(**changes: object) -> str:
    given = GOOD | changes
    return "".join(f"{name} = {msgspec.json.encode(value).decode()}\n" for name, value in given.items() if value is not None)


@pytest.mark.parametrize("path", sorted(PACKAGED.glob("*.toml")), ids=lambda path: path.stem)
def test_a_packaged_table_has_a_source_and_a_date_and_prices_in_order(path: Path) -> None:
    table = read_table(path)
    assert table.name == path.stem and table.source and table.date[:2] == "20"
    assert table.read <= table.uncached <= table.write <= table.output


def test_the_main_providers_and_two_neutral_tables_are_there() -> None:
    names = {table.name for table in price_tables()[0]}
    assert {DEFAULT, "relative-0.1", "no-cache"} <= names
    assert {"anthropic", "openai", "google", "deepseek"} <= {name.partition("-")[0] for name in names}
    assert not find_prices("no-cache").caches and find_prices() == find_prices("relative-0.1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("uncached = ", "price table"),
        ("[]", "price table"),
        (toml(uncached=None), "uncached"),
        (toml(write=None), "write"),
        (toml(read=-0.1), "read"),
        (toml(lifetime_seconds=-1), "lifetime_seconds"),
        (toml(granularity_tokens=0), "granularity_tokens"),
        (toml(output="dear"), "output"),
        (toml().replace("5.0", "inf"), "output"),
        (toml(cached=1.0), "cached"),
        (toml(read="0.3"), "read"),
        (toml(read=True), "read"),
        (toml(date=True), "date"),
        (toml(read=1e308), "read"),
        (toml().replace("5.0", "nan"), "output"),
        (toml(minimum_tokens=10**23), "minimum_tokens"),
    ],
)
def test_a_wrong_table_is_one_sentence_with_its_file_and_key(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        find_prices(str(path))
    assert str(path) in caught.value.sentence and said in caught.value.reason and "\n" not in caught.value.sentence


@pytest.mark.parametrize(
    "text", [toml() + "note = " + "[" * 50_000, toml() + "note" + ".a" * 50_000 + " = 1", toml().replace("5.0", "9" * 5_000)]
)
def test_a_table_that_is_nested_or_has_endless_digits_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        find_prices(str(path))
    assert str(path) in caught.value.sentence and len(caught.value.sentence) < LONGEST_LINE


def test_a_table_is_a_file_and_no_pipe_device_link_to_one_or_giant(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "device.toml").symlink_to("/dev/zero")
    (tmp_path / "ring.toml").symlink_to("ring.toml")
    (tmp_path / "folder.toml").mkdir()
    with (tmp_path / "huge.toml").open("wb") as hole:
        hole.truncate(2**40)
    for name in ("pipe", "device", "ring", "folder", "huge"):
        with pytest.raises((InputError, OSError)) as caught:
            find_prices(str(tmp_path / f"{name}.toml"))
        assert isinstance(caught.value, InputError), name
    with pytest.raises(InputError):
        find_prices("/dev/zero")


def test_a_missing_file_and_an_unknown_name_are_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml"):
        find_prices(str(tmp_path / "none.toml"))
    with pytest.raises(InputError, match=r"relative-0\.1"):
        find_prices("cheapest")


def test_an_own_table_is_kept_in_the_workspace_and_found_by_its_name(tmp_path: Path) -> None:
    mine = PriceTable(name="own", currency="EUR", **GOOD)  # type: ignore[arg-type]
    path = write_table(mine, tmp_path)
    assert path.parent == tmp_path / FOLDER and find_prices("own", tmp_path) == mine
    with pytest.raises(InputError):
        write_table(msgspec.structs.replace(mine, name="../own"), tmp_path)


@pytest.mark.parametrize(("written", "date"), [('"2026-06"', "2026-06"), ("2026-06-01", "2026-06-01"), ("2026", "2026")])
def test_a_date_needs_no_quotes_and_a_byte_order_mark_is_no_fault(tmp_path: Path, written: str, date: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"\ufeff{toml()}date = {written}\n")
    table = find_prices(str(path))
    assert table.date == date and table.dated == f"mine ({date})"
    path.write_text(toml())
    assert "mine" in find_prices(str(path)).dated != "mine", "that there is no date is said"


def test_a_broken_table_in_the_workspace_is_left_out_with_a_sentence_and_the_others_work(tmp_path: Path) -> None:
    write_table(PriceTable(name="own", **GOOD), tmp_path)  # type: ignore[arg-type]
    (tmp_path / FOLDER / "wrong.toml").write_text("read = -1")
    tables, broken = price_tables(tmp_path)
    assert {"own", DEFAULT} <= {table.name for table in tables} and len(broken) == 1 and "wrong.toml" in broken[0]
    assert find_prices("own", tmp_path).name == "own" and find_prices("", tmp_path).name == DEFAULT
    with pytest.raises(InputError, match=r"wrong\.toml"):
        find_prices("wrong", tmp_path)
