"""The token in a real browser: who can name a path of this computer."""

from collections.abc import Callable

import pytest

from pamer_lab.ui.traces.adding import WAYS
from tests.browser.driver import Visitor

PATH_FIELD = '[data-testid="stTextInput"] input[placeholder^="/data"]'


def choose_path(visitor: Visitor) -> int:
    """How many fields for a path the home page shows."""
    visitor.page.get_by_role("radio", name=list(WAYS.values())[2]).or_(
        visitor.page.get_by_role("button", name=list(WAYS.values())[2])
    ).first.click()
    visitor.page.locator(f'{PATH_FIELD}, [data-testid="stAlert"]').first.wait_for()
    visitor.settle()
    return visitor.page.locator(PATH_FIELD).count()


@pytest.mark.browser
@pytest.mark.server
def test_only_a_browser_that_came_by_the_link_can_name_a_path(stranger: Callable[..., Visitor], link: str) -> None:
    guest, owner = stranger(), stranger()
    guest.open("/")
    assert choose_path(guest) == 0
    owner.page.goto(link)
    owner.settle()
    assert "token" not in owner.page.url
    assert choose_path(owner) == 1
    owner.open("/")
    assert choose_path(owner) == 1, "the cookie outlives a reload"
