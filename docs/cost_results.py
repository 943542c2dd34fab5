"""Makes the results of docs/cost.md: `python docs/cost_results.py [--heads] NAME TRACE...`, with Chromium installed.

With each of two price tables it runs `pamer-lab replay TRACE... --policy LIST --prices PRICES --table FILE.md` and puts that table between
the marks NAME-PRICES of the page; the product's own chart of evidence against cost, with the first prices, to docs/images/cost-NAME.png.
The workspace is PAMER_LAB_HOME; what it has stored is not computed again. `--heads`: both
packaged sets of heads, against triggers, windows and summaries.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from pamer_lab.figures.cost import frontier  # noqa: E402
from tests.browser.driver import PATIENCE_MS, launch  # noqa: E402

PAGE = PROJECT / "docs" / "cost.md"
PRICES = ("relative-0.1", "no-cache")
EVERY = (
    "base,sliding-window:5,periodic-summary:5,periodic-summary:20,acon,comem,selfcompact-rules,threshold-when,random-when,pamer-no-recall,"
    "pamer,pamer:inject=append,pamer:top=1:inject=append,pamer:minimum=4096:inject=append,pamer:gate=priced,pamer:inject=append:gate=priced,"
    "pamer+,pamer+:inject=append,pamer+:minimum=4096:inject=append,pamer+:gate=priced,pamer+:inject=append:gate=priced"
)
HEADS = (
    "base,sliding-window:2,sliding-window:3,sliding-window:5,sliding-window:10,sliding-window:20,"
    "periodic-summary:2,periodic-summary:3,periodic-summary:5,periodic-summary:10,periodic-summary:20,"
    "threshold-when,threshold-when:inject=append,random-when,random-when:inject=append,"
    "pamer,pamer:inject=append,pamer+,pamer+:inject=append,"
    "pamer:vote=1,pamer:vote=1:inject=append,pamer+:vote=1,pamer+:vote=1:inject=append,pamer:heads=smollm2-real,pamer:inject=append:heads=smollm2-real,"
    "pamer+:heads=smollm2-real,pamer+:inject=append:heads=smollm2-real"
)
POLICIES = {"--heads": HEADS}
WIDTH, HEIGHT = 1200, 880
PICTURED = ("real", "heads")
"""The results that the page shows as pictures."""
MARGIN = {"l": 60, "r": 20, "t": 20, "b": 60}


def replay(traces: list[str], policies: str, prices: str) -> tuple[str, dict[str, Any]]:
    """The table that `pamer-lab replay` writes, and the points of its chart."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.md"
        asked = ["replay", *traces, "--policy", policies, "--prices", prices, "--table", str(table), "--workers", "0", "--json"]
        done = subprocess.run([sys.executable, "-m", "pamer_lab.cli", *asked], stdout=subprocess.PIPE, check=False)
        return table.read_text(), json.loads(done.stdout)["frontier"]


def put(name: str, table: str) -> None:
    """The table between its marks."""
    text = PAGE.read_text()
    changed, count = re.subn(
        rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", lambda found: f"{found[1]}\n{table}\n{found[2]}", text, flags=re.S
    )
    if not count:
        sys.exit(f"{PAGE.name} has no marks <!-- {name} --> and <!-- /{name} -->")
    PAGE.write_text(changed)


def draw(found: dict[str, Any], picture: Path) -> None:
    """The chart as the page draws it, on white."""
    figure = frontier(found)
    figure.update_layout(paper_bgcolor="white", plot_bgcolor="white", width=WIDTH, height=HEIGHT, margin=MARGIN)
    with sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page(viewport={"width": WIDTH + 16, "height": HEIGHT + 16})
        page.set_default_timeout(PATIENCE_MS)
        page.set_content(figure.to_html(include_plotlyjs=True, config={"displayModeBar": False}))
        page.locator(".main-svg").first.wait_for()
        page.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    name, *traces = [word for word in sys.argv[1:] if word not in POLICIES] or [""]
    if not traces:
        sys.exit(__doc__)
    policies = next((POLICIES[word] for word in sys.argv if word in POLICIES), EVERY)
    for prices in PRICES:
        table, found = replay(traces, policies, prices)
        put(f"{name}-{prices}", table)
        if prices == PRICES[0] and name in PICTURED:
            draw(found, PROJECT / "docs" / "images" / f"cost-{name}.png")
