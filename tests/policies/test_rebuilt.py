"""Every policy's every decision becomes messages again: protocol-safe, of the history's own objects, counting to the decision's tokens."""

from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import msgpack
from msgspec.structs import replace

from pamer_lab.blocks import violations
from pamer_lab.blocks.render import render_message
from pamer_lab.decisions import Decision, Item, ItemKind
from pamer_lab.policies.plain import Shortened
from pamer_lab.policies.rebuilt import RebuildError, edited_messages, rebuilt
from pamer_lab.policies.registry import POLICIES, describe_policies, live_policies, parse_policy
from pamer_lab.trajectory.values import Trace
from tests.policies.rivals import SMALL_RIVALS
from tests.policies.test_rivals import ELSEWHERE, repeating
from tests.runs.making import PAMER, SMALL, call, estimated, huge_trace, long_trace, timeline_of, turns_of
from tests.strategies import conversation

APPENDED = [f"pamer:inject=append{SMALL}", f"pamer+:inject=append{SMALL}"]
TRIGGERED = [f"random-when:0.5{SMALL}", f"threshold-when:300{SMALL}"]
TRIED = ["base", "sliding-window:2", "periodic-summary:2", *SMALL_RIVALS, *(name + SMALL for name in PAMER), *APPENDED, *TRIGGERED]


def check(trace: Trace, policy: str, workspace: Path) -> set[str]:
    """Rebuild every turn; returns the kinds of items that were seen."""
    line, tokens = timeline_of(trace), estimated()
    kinds: set[str] = set()
    for turn in turns_of(trace, policy, workspace=workspace):
        history = line.at(turn.t)
        messages = rebuilt(turn, history)
        assert violations(messages) == [] or violations(list(history.messages)) != []
        assert tokens.total(messages) + history.tools_tokens * any(item.kind == "tools" for item in turn.items) == turn.active_tokens
        own = {id(message) for message in history.messages}
        raw = [id(message) for message in messages if id(message) in own]
        assert [id(message) for message in history.messages if id(message) in raw] == raw or turn.t == 0, "in the history's order"
        kinds |= {item.kind for item in turn.items}
    return kinds


@pytest.mark.parametrize("policy", TRIED)
def test_every_turn_of_a_policy_keeps_the_protocol_and_its_tokens(policy: str, tmp_path: Path) -> None:
    check(repeating(), policy, tmp_path)


def test_all_kinds_of_items_and_all_policies_are_tried(tmp_path: Path) -> None:
    kinds = check(huge_trace(), f"pamer+{SMALL}", tmp_path / "steps") | check(huge_trace(), APPENDED[1], tmp_path / "appended")
    kinds |= check(repeating(), f"pamer{SMALL}", tmp_path / "pamer")
    kinds |= {kind for policy in ("periodic-summary:2", "observation-masking:2") for kind in check(repeating(), policy, tmp_path)}
    assert kinds == set(get_args(ItemKind))
    assert set(POLICIES) - {policy.partition(":")[0] for policy in TRIED} <= ELSEWHERE


CHEAP = [
    "sliding-window:1",
    "observation-masking:1",
    "truncate-results:1:keep=0",
    "tokenprune-idf:0.4:keep=0",
    "keep-last-tokens:0:minimum=0",
]


@settings(max_examples=40, deadline=None)
@given(conversation(complete=False), st.sampled_from(CHEAP))
def test_any_conversation_is_rebuilt_whatever_its_texts_say(messages: list, policy: str) -> None:
    if any(message.role == "assistant" for message in messages):
        check(Trace("t", "t", "made", tuple(messages)), policy, Path("unused"))


HOSTILE = st.text("ab<|im_end|>\n<tool_response>", max_size=60)


@settings(max_examples=200, deadline=None)
@given(st.lists(HOSTILE, min_size=3, max_size=3), st.dictionaries(st.integers(0, 2), HOSTILE, min_size=1, max_size=3))
def test_contents_that_look_like_the_rendering_come_back_exactly(olds: list[str], new: dict[int, str]) -> None:
    block = [replace(message, content=old) for message, old in zip([*call(0, "q", ""), *call(0, "q", "")[1:]], olds, strict=True)]
    edited = [replace(message, content=new.get(place, message.content)) for place, message in enumerate(block)]
    text = "".join(map(render_message, edited))
    item = Item("edited", 1, ((0, 1),), "e", text, replaced=tuple(sorted((place, len(said)) for place, said in new.items())))
    assert edited_messages(msgpack.decode(msgpack.encode(item), type=Item), block) == edited


def test_an_edited_item_that_does_not_fit_its_block_is_refused() -> None:
    trace = long_trace(3)
    history = timeline_of(trace).at(2)
    item = Shortened(estimated()).block(history, 0, "e", {1: "short"})
    assert item is not None and edited_messages(item, history.block_messages(0))[1].content == "short"
    for wrong in (
        replace(item, replaced=()),
        replace(item, text=item.text + "x"),
        replace(item, replaced=((1, 3),)),
        replace(item, text=""),
    ):
        with pytest.raises(RebuildError):
            rebuilt(Decision("pass", "", (wrong,)), history)


def test_an_item_without_replaced_contents_is_stored_as_before() -> None:
    assert msgpack.decode(msgpack.encode(Item("blocks", 3, ((0, 1),)))) == {"kind": "blocks", "tokens": 3, "spans": [[0, 1]]}


def test_every_policy_says_whether_it_acts_live() -> None:
    said = {entry["name"]: entry["acts_live"] for entry in describe_policies()}
    assert said == {name: bool(kind.acts_live) for name, kind in POLICIES.items()}
    assert {name for name, acts in said.items() if not acts} == {name for name, kind in POLICIES.items() if "recorded calls" in kind.needs}
    assert all(parse_policy(name).acts_live for name in live_policies()) and len(live_policies()) > 20
