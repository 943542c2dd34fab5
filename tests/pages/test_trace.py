"""The transcript page: reading, paging, search, links and what they need."""

import json

import msgspec
import pytest

from pamer_lab.blocks.calls import tool_tokens
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.trajectory.values import Label, Message, ToolCall
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_demo
from tests.pages.conftest import Visit, charts, chat, holds, linked, put, says, table_of, texts
from tests.runs.making import make_trace

PAGE = "pages/trace.py"
BODIES = 24


def only(workspace: Workspace) -> str:
    return str(workspace.trace_rows()[0]["trace_id"])


def test_the_demo_opens_when_nothing_is_chosen(visit: Visit) -> None:
    app = visit(PAGE)
    assert not app.exception
    assert says(app, 12)
    assert ":gray-badge[demo]" in texts(app)
    assert "growth" in charts(app)
    assert app.query_params["trace"].startswith("t-")


@pytest.mark.usefixtures("no_demo")
def test_an_empty_workspace_points_to_the_traces_page(visit: Visit) -> None:
    app = visit(PAGE)
    assert not app.exception
    assert len(app.info) == 1 and "traces" in linked(app)


def test_a_link_to_a_missing_trace_says_which_one_it_needs(visit: Visit) -> None:
    app = visit(PAGE, trace="t-0123456789abcdef")
    assert not app.exception
    assert "t-0123456789abcdef" in app.error[0].value
    assert len(app.code) == 0


def test_a_link_opens_its_block(visit: Visit, workspace: Workspace) -> None:
    put(workspace, run=chat(80))
    app = visit(PAGE, trace=only(workspace), block="60")
    assert app.code[0].value == "answer 60"
    assert says(app, "Block", 60)


def test_a_link_to_a_block_that_is_not_there_says_so(visit: Visit, workspace: Workspace) -> None:
    put(workspace, run=chat(5))
    app = visit(PAGE, trace=only(workspace), block="99")
    assert holds(app.warning[0].value, 99, 5)
    assert app.code[0].value != "answer 4" and says(app, "Block", 0)


def test_pages_hold_a_bounded_number_of_bodies_and_lead_through_all_blocks(visit: Visit, workspace: Workspace) -> None:
    put(workspace, run=chat(100))
    app = visit(PAGE, trace=only(workspace))
    seen: set[str] = set()
    for _ in range(20):
        assert len(app.code) <= BODIES
        seen |= {code.value for code in app.code}
        if app.button(key="Next page").disabled:
            break
        app.button(key="Next page").click().run()
    assert {f"answer {number}" for number in range(100)} <= seen
    app.button(key="Previous page").click().run()
    assert not says(app, "Block", 99)


def test_search_finds_text_off_the_page_and_steps_through_hits(visit: Visit, workspace: Workspace) -> None:
    put(workspace, run=chat(120))
    app = visit(PAGE, trace=only(workspace))
    app.text_input(key="q").set_value("ANSWER 9").run()
    assert says(app, 1, 11, 9)
    assert "⟦answer 9⟧" in app.code[0].value
    app.button(key="Next hit").click().run()
    assert says(app, 2, 11, 90)
    assert app.code[1].value == "answer 90"
    app.button(key="Previous hit").click().run()
    assert says(app, 1, 11, 9)
    app.text_input(key="q").set_value("no such words").run()
    assert not app.exception and not says(app, 1, 11, 9) and "⟦" not in "".join(code.value for code in app.code)


def test_a_search_link_opens_at_its_hit(visit: Visit, workspace: Workspace) -> None:
    put(workspace, run=chat(120))
    app = visit(PAGE, trace=only(workspace), q="answer 11", hit="3")
    assert says(app, 3, 11, 111)
    assert says(app, "Block", 111)


def test_a_long_body_is_capped_until_all_of_it_is_asked_for(visit: Visit, workspace: Workspace) -> None:
    words = "x" * 5_000 + "END"
    put(workspace, run=json.dumps([{"role": "user", "content": words}, {"role": "assistant", "content": "yes"}]).encode())
    app = visit(PAGE, trace=only(workspace))
    assert len(app.code[0].value) == 2_000
    app.toggle[0].set_value(True).run()
    assert app.code[0].value == words


def test_a_body_too_long_for_one_page_comes_in_parts(visit: Visit, workspace: Workspace) -> None:
    put(workspace, run=json.dumps([{"role": "user", "content": "y" * 250_000}, {"role": "assistant", "content": "yes"}]).encode())
    app = visit(PAGE, trace=only(workspace))
    app.toggle[0].set_value(True).run()
    assert len(app.code[0].value) == 100_000
    assert says(app, 1, 3)


def test_calls_stand_with_their_results_and_thinking_is_folded(visit: Visit, workspace: Workspace) -> None:
    import_demo(workspace)
    demo = next(row for row in workspace.trace_rows() if row["name"].startswith("hand-made"))
    app = visit(PAGE, trace=demo["trace_id"], block="10")
    shown = texts(app)
    assert shown.count("] ` write_file `") == 2, "the call and its result"
    assert says(app, "▲", "recall", 0)
    assert not any("stood only in the agreement" in code.value for code in app.code)
    app.text_input(key="q").set_value("stood only in the agreement").run()
    assert sum("stood only in the agreement" in code.value for code in app.code) == 2, "the excerpt, and the thinking unfolded"
    assert "⟦stood only in the agreement⟧" in app.code[0].value


def test_hidden_characters_are_shown_and_markup_stays_text(visit: Visit, workspace: Workspace) -> None:
    hostile = "<script>alert(1)</script> ![x](https://evil.example/a.png) \x1b[31mred \u202eevil"
    put(workspace, run=json.dumps([{"role": "user", "content": hostile}, {"role": "assistant", "content": "yes"}]).encode())
    app = visit(PAGE, trace=only(workspace))
    assert app.code[0].value == "<script>alert(1)</script> ![x](https://evil.example/a.png) ␛[31mred ⟨U+202E⟩evil"
    assert "evil" not in texts(app)


def test_changing_the_trace_starts_at_its_first_block(visit: Visit, workspace: Workspace) -> None:
    put(workspace, long=chat(60), short=chat(3))
    rows = {row["name"]: row["trace_id"] for row in workspace.trace_rows()}
    app = visit(PAGE, trace=rows["long.json"], block="50")
    app.selectbox(key="picked_trace").set_value(rows["short.json"]).run()
    assert not app.exception
    assert app.query_params["trace"] == rows["short.json"]
    assert says(app, "Block", 0)
    assert not app.warning, "the old block is not taken for a link's"


def test_warnings_and_facts_are_there_on_demand(visit: Visit, workspace: Workspace) -> None:
    glued = chat(2) + b"\n" + b'{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}' * 2
    assert put(workspace, run=glued).traces[0]["warnings"]
    app = visit(PAGE, trace=only(workspace))
    assert any(holds(expander.label, 1) for expander in app.expander)


def test_labels_that_come_after_the_first_look_stand_in_the_charts_and_the_outline(visit: Visit, workspace: Workspace) -> None:
    put(workspace, run=chat(6))
    app = visit(PAGE, trace=only(workspace))
    assert "triangle-down" not in app.get("plotly_chart")[0].proto.spec
    trace = msgspec.structs.replace(workspace.trace(only(workspace)).trace, labels=(Label(3, "compression", origin="side-file"),))
    workspace.add_traces([trace], profile_tokens(load_profile("embedded")))
    app.run()
    assert "triangle-down" in app.get("plotly_chart")[0].proto.spec
    outline = table_of(app, "outline")
    assert any("▼" in str(cell) for cell in outline.iloc[3])


def test_hits_are_listed_and_the_outline_has_a_sign_at_the_open_block(visit: Visit, workspace: Workspace) -> None:
    put(workspace, run=chat(30))
    app = visit(PAGE, trace=only(workspace), q="answer 2", block="12")
    app.session_state["hit-list"] = True
    app.run()
    listed = table_of(app, "hits")
    assert listed["Block"].tolist() == [str(number) for number in (2, *range(20, 30))] and "⟦answer 2⟧" in listed["Text"][0]
    signs = [bool(sign) for sign in table_of(app, "outline")[" "]]
    assert signs.index(True) == 12 and signs.count(True) == 1


def test_an_edit_is_a_diff_a_shell_call_a_command_and_tools_have_their_share(visit: Visit, workspace: Workspace) -> None:
    edit = ToolCall("c1", "Edit", json.dumps({"file_path": "a.py", "old_string": "x = 1", "new_string": "x = <b>2</b>"}))
    shell = ToolCall("c2", "Bash", json.dumps({"command": "ls -la", "timeout": 9}))
    blocks = [
        [Message("assistant", "", (edit,)), Message("tool", "ok", tool_call_id="c1", name="Edit")],
        [Message("assistant", "", (shell,)), Message("tool", "a.py " * 50, tool_call_id="c2", name="Bash")],
    ]
    workspace.add_traces([make_trace(blocks, trace_id="t-calls")], profile_tokens(load_profile("embedded")))
    app = visit(PAGE, trace="t-calls")
    shown = {code.value: code.language for code in app.code}
    assert shown["- x = 1\n+ x = <b>2</b>"] == "diff" and shown["ls -la"] == "bash"
    assert "a.py" in texts(app) and '{"timeout":9}' in texts(app)
    (bash, *_) = tool_tokens(workspace.trace("t-calls").trace, workspace.trace("t-calls").message_tokens)
    assert bash["tool"] == "Bash" and f"{bash['share_pct']:.1f} %" in texts(app)
