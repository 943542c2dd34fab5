"""Tables: what their cells and numbers look like."""

from pamer_lab.ui.shared.widgets import whole_numbers


def test_columns_of_whole_numbers_get_separators_and_others_keep_their_own_form() -> None:
    rows = [{"Tokens": 12_345, "Share": 0.5, "Name": "7", "Yes": True}, {"Tokens": None, "Share": 1, "Late": 2}, {"None": None}]
    assert {name: column["type_config"]["format"] for name, column in whole_numbers(rows).items()} == dict.fromkeys(
        ("Tokens", "Late"), "localized"
    )
