"""Takes the pictures of the README and the tour from the running dashboard: `python docs/screenshots.py`, with Chromium installed.

With a folder as argument it writes every page at two sizes in light and dark there instead, for looking at.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.browser.driver import Visitor, dashboard, launch

IMAGES = Path(__file__).resolve().parent / "images"
PAGES = {
    "traces": "/",
    "trace": "/trace?block=7",
    "replay": "/replay",
    "growth": "/growth",
    "audit": "/audit",
    "signals": "/signals",
    "contexts": "/contexts",
    "published": "/published",
}
DRAWN = '.js-plotly-plot .main-svg, [data-testid="stDataFrame"] canvas'
"""What every page has once it is drawn: a chart or a table."""
SIZES = [(1440, 900), (1024, 768)]


def take(visitor: Visitor, folder: Path, suffix: str = "") -> None:
    """One picture of every page."""
    for name, path in PAGES.items():
        visitor.open(path)
        visitor.page.locator(DRAWN).first.wait_for()
        visitor.page.wait_for_timeout(3_000)
        visitor.page.screenshot(path=folder / f"{name}{suffix}.png")
    visitor.context.close()


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory() as workspace, dashboard(Path(workspace) / "lab") as address, sync_playwright() as playwright:
        browser = launch(playwright)
        if folder is None:
            IMAGES.mkdir(exist_ok=True)
            take(Visitor(browser, address, size=SIZES[0]), IMAGES)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            for size in SIZES:
                for dark in (False, True):
                    take(Visitor(browser, address, dark=dark, size=size), folder, f"-{size[0]}-{'dark' if dark else 'light'}")
        browser.close()


if __name__ == "__main__":
    main()
