"""Nothing a message says is lost on its way to tokens, with our rendering and with a template."""

from pathlib import Path

import numpy as np
import pytest

from pamer_lab.features.inputs import inputs_of
from pamer_lab.features.serialise import keeps_everything, serialiser_for, truncated, with_hint, with_probe_prompt
from pamer_lab.features.values import Request
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.trajectory.values import Message, ToolCall
from tests.features.conftest import load_tiny, make_trace

pytestmark = pytest.mark.weights


@pytest.fixture(params=["smollm", "qwen"])
def model(request: pytest.FixtureRequest, tiny_folders: dict[str, Path]) -> FrozenModel:
    found: FrozenModel = request.getfixturevalue("smollm") if request.param == "smollm" else load_tiny(tiny_folders["qwen"])
    return found


def test_no_message_content_is_lost(model: FrozenModel) -> None:
    trace = make_trace(6)
    serialiser = serialiser_for(model)
    text = model.tokenizer.decode(serialiser.tokens(trace.messages, trace.tools))
    assert serialiser.name.startswith("chatml" if model.layers == 30 else "template")
    assert keeps_everything(text, trace.messages, trace.tools)
    for message in trace.messages:
        assert message.content.strip() in text  # a template may trim white space at the ends
        for call in message.tool_calls:
            assert call.name in text
    for piece in ("port <3>", "limit", "ber.conf", "Searches the files.", "query"):
        assert piece in text


def test_an_input_the_template_refuses_is_rendered_in_chatml_without_loss(model: FrozenModel) -> None:
    messages = [
        Message("user", "hello"),
        Message("system", "a system message in the middle"),
        Message("assistant", "", (ToolCall("a", "run", "this is not JSON"),)),
        Message("tool", "fine", tool_call_id="a", name="run"),
    ]
    text = model.tokenizer.decode(serialiser_for(model).tokens(messages, ()))
    for piece in ("hello", "a system message in the middle", "this is not JSON", "fine"):
        assert piece in text


def test_a_template_that_drops_tool_calls_is_not_used(smollm: FrozenModel) -> None:
    assert smollm.tokenizer.chat_template
    assert serialiser_for(smollm).name.startswith("chatml")


def test_messages_tokenised_one_by_one_equal_the_whole_text(smollm: FrozenModel) -> None:
    from pamer_lab.blocks.render import GENERATION_PROMPT, render

    trace = make_trace(5)
    whole = smollm.tokenizer(render(trace.messages, trace.tools) + GENERATION_PROMPT, add_special_tokens=False)["input_ids"]
    assert serialiser_for(smollm).tokens(trace.messages, trace.tools).tolist() == whole


def test_the_hint_uses_the_recorded_number_and_else_counts_the_whole_active_request(smollm: FrozenModel) -> None:
    serialiser = serialiser_for(smollm)

    def texts(usage: bool, context: str) -> list[str]:
        trace = make_trace(4, usage=usage)
        request = Request(trace.messages, trace.tools, range(4), context, "faithful")
        return [smollm.tokenizer.decode(tokens) for _, tokens in inputs_of(request, smollm, serialiser)]

    assert f"[context tokens: {1001 + 16_384}]" in texts(True, "full")[1]
    trace = make_trace(4)
    size = serialiser.count(trace.messages[:-1], trace.tools) + 16_384
    for context in ("full", "recent1", "current"):
        assert f"[context tokens: {size}]" in texts(False, context)[3]
        assert texts(False, context)[3].endswith("<|im_start|>assistant\n")


def test_the_hint_stands_in_the_last_message_and_the_probe_prompt_before_the_system_text() -> None:
    messages = make_trace(3).messages[:4]
    assert with_hint(messages, 9)[-1].content.endswith("[context tokens: 9]")
    assert with_hint(messages, 9)[:-1] == messages[:-1]
    assert with_probe_prompt(messages, "Watch.")[0].content == "Watch.\n\nYou find facts."
    assert with_probe_prompt(messages[1:], "Watch.")[0] == Message("system", "Watch.")
    assert with_probe_prompt(messages, "") == messages


def test_truncation_keeps_the_first_tokens_and_the_newest_rest() -> None:
    tokens = np.arange(100, dtype=np.int32)
    assert truncated(tokens, 30, 10).tolist() == [*range(10), *range(80, 100)]
    assert truncated(tokens, 100, 10) is tokens
    assert truncated(tokens, 8, 10).tolist() == [0, 1, *range(94, 100)]
