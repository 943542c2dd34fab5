"""A run whose head says what no run says, as a workspace of an older version may hold it: pages show it as text."""

import re

import msgspec
import pytest
from streamlit.testing.v1 import AppTest

from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.store import RunStore
from pamer_lab.workspace import Workspace
from tests.pages.conftest import Visit
from tests.runs.making import PARTS, SMALL, long_trace

EVIL = "x`y ![y](https://outside.example/b.png) <img src=x> :red[z]"


def live(app: AppTest) -> str:
    """All markdown of a page without its code spans, hints included."""
    kinds = (app.title, app.subheader, app.markdown, app.caption, app.info, app.success, app.warning, app.error)
    said = [text for kind in kinds for element in kind for text in (str(element.value), str(getattr(element.proto, "help", "")))]
    return "\n".join(re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", text) for text in said)


@pytest.mark.parametrize("page", ["pages/replay.py", "pages/audit.py", "pages/growth.py", "pages/traces.py"])
def test_names_in_a_runs_head_are_never_read_as_markdown(visit: Visit, workspace: Workspace, page: str) -> None:
    policy = f"pamer+{SMALL}"
    run = replay(long_trace(12, trace_id="t-evil"), policy, workspace, ReplayOptions(device="cpu", parts=PARTS))
    named = {"tokenizer": EVIL, "tokens_kind": EVIL} | ({"policy": EVIL} if page == "pages/audit.py" else {})
    RunStore(workspace).put_head(msgspec.structs.replace(run.head, **named))
    app = visit(page, trace="t-evil", policies=[policy], more="Tokens and cost")  # type: ignore[arg-type]
    assert not app.exception
    for word in ("outside.example", "<img", ":red["):
        assert word not in live(app)
    if page in ("pages/replay.py", "pages/audit.py"):
        assert any("outside.example" in element.value for element in (*app.caption, *app.markdown))
