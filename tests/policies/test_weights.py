"""`llmlingua-2` and `swe-pruner` with packages of the same interface as the real ones, and what is said where they are missing."""

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from pamer_lab.errors import InputError
from pamer_lab.models import pruners
from pamer_lab.policies.registry import parse_policy
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.recount import faults
from pamer_lab.workspace import Workspace
from tests.loopback import listening
from tests.runs.making import PARTS, call, make_trace, timeline_of, turns_of

LONG = "\n".join(f"line {n} says word{n}" for n in range(60))
TRACE = make_trace([call(n, f"word{n}", LONG if n < 3 else "short", said="Looking.") for n in range(6)], trace_id="t-pruned")

LINGUA = """
class PromptCompressor:
    def __init__(self, model_name="NousResearch/Llama-2-7b-hf", device_map="cuda", model_config={}, open_api_config={},
                 use_llmlingua2=False, llmlingua2_config={}):
        assert use_llmlingua2 and model_config["trust_remote_code"] is False and model_config["local_files_only"]
        self.model_name = model_name

    def compress_prompt_llmlingua2(self, context, rate=0.5, target_token=-1, use_context_level_filter=False, use_token_level_filter=True,
                                   target_context=-1, context_level_rate=1.0, context_level_target_token=-1, force_context_ids=[],
                                   return_word_label=False, word_sep="", label_sep=" ", token_to_word="mean", force_tokens=[],
                                   force_reserve_digit=False, drop_consecutive=False, chunk_end_tokens=[".", "\\n"]):
        assert force_tokens == ["\\n", "?", "!", "."]
        if "explode" in context[0]:
            raise RuntimeError("the device is gone")
        words = context[0].split()
        kept = words[: int(len(words) * rate)]
        return {"compressed_prompt": " ".join(kept) + (" digits" if force_reserve_digit else ""), "compressed_prompt_list": [],
                "origin_tokens": len(words), "compressed_tokens": len(kept), "ratio": "2.0x", "rate": "50%", "saving": ""}
"""
PRUNER = """
from pydantic import BaseModel

class PruneRequest(BaseModel):
    query: str
    code: str
    threshold: float = 0.5
    always_keep_first_frags: bool = False
    chunk_overlap_tokens: int = 50

class PruneResponse(BaseModel):
    score: float
    pruned_code: str
    token_scores: list
    kept_frags: list[int]
    origin_token_cnt: int
    left_token_cnt: int
    model_input_token_cnt: int
    error_msg: str | None = None

class SwePrunerForCodePruning:
    @classmethod
    def from_pretrained(cls, path):
        return cls()

    def prune(self, request, max_length=8192):
        asked = request.query.split('"')[-2]
        kept = [line for line in request.code.splitlines() if line.endswith(asked)]
        return PruneResponse(score=0.9, pruned_code="\\n".join(["(filtered lines)", *kept]), token_scores=[], kept_frags=[],
                             origin_token_cnt=9, left_token_cnt=3, model_input_token_cnt=99)
"""


@pytest.fixture(autouse=True)
def _unloaded() -> Iterator[None]:
    yield
    pruners.load_llmlingua.cache_clear()
    pruners.load_swe_pruner.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] in ("llmlingua", "swe_pruner")]:
        del sys.modules[name]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Both packages and a folder of weights each."""
    for package, file, text in (("llmlingua", "__init__.py", LINGUA), ("swe_pruner", "prune_wrapper.py", PRUNER)):
        folder = tmp_path / "packages" / package
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        (folder / file).write_text(text)
        weights = tmp_path / f"weights-{package}"
        weights.mkdir()
        (weights / "config.json").write_text("{}")
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    monkeypatch.setenv(pruners.LLMLINGUA_VARIABLE, str(tmp_path / "weights-llmlingua"))
    monkeypatch.setenv(pruners.SWE_PRUNER_VARIABLE, str(tmp_path / "weights-swe_pruner"))
    return tmp_path


@pytest.mark.parametrize("policy", ["llmlingua-2:0.3:keep=1", "swe-pruner:keep=1"])
def test_a_result_is_pruned_once_as_it_leaves_the_newest_blocks(installed: Path, policy: str) -> None:
    turns = turns_of(TRACE, policy)
    assert faults(timeline_of(TRACE), turns) == []
    assert [sum(item.kind == "edited" for item in turn.items) for turn in turns] == [0, 0, 1, 2, 3, 3]
    spent = [entry for turn in turns for entry in turn.spent]
    assert len(spent) == 3 and all(
        entry.operation == "pruning" and entry.local and entry.output_tokens < entry.input_tokens for entry in spent
    )
    for known in range(6):
        assert turns_of(TRACE, policy, tuple(turns[:known])) == turns


def test_llmlingua_gets_rate_and_digits(installed: Path) -> None:
    def text(policy: str) -> str:
        return next(item.text for item in turns_of(TRACE, policy)[5].items if item.kind == "edited")

    more, less = text("llmlingua-2:0.8"), text("llmlingua-2:0.2:digits=false")
    assert len(more) > len(less) and "digits" in more and "digits" not in less


def test_swe_pruner_is_asked_with_the_agents_words_and_arguments(installed: Path) -> None:
    edited = [item.text for item in turns_of(TRACE, "swe-pruner")[5].items if item.kind == "edited"]
    assert ["line 0 says word0" in edited[0], "line 1 says word1" in edited[1], "line 1 says word1" in edited[0]] == [True, True, False]


def test_a_pruner_that_fails_leaves_the_block_and_the_turn_says_so(installed: Path) -> None:
    trace = make_trace([call(n, "q", ("explode " if n == 1 else "fine ") * 200) for n in range(5)], trace_id="t-explodes")
    turns = turns_of(trace, "llmlingua-2")
    assert [bool(turn.error) for turn in turns] == [False, False, False, False, True]
    kept = {item.spans for item in turns[4].items if item.kind == "edited"}
    assert kept == {((0, 1),)} and turns[4].action == "pass"


class _Server(BaseHTTPRequestHandler):
    asked: list[dict[str, object]] = []  # noqa: RUF012 - one server per test

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append({"path": self.path, **request})
        answer = json.dumps({"pruned_code": "(filtered 59 lines)", "model_input_token_cnt": 700, "error_msg": None}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def test_a_running_server_is_enough_for_swe_pruner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with listening(HTTPServer(("127.0.0.1", 0), _Server)) as address:
        monkeypatch.setenv(pruners.SWE_PRUNER_VARIABLE, address)
        run = replay(TRACE, "swe-pruner:0.4", Workspace(tmp_path), ReplayOptions(parts=PARTS))
    asked = _Server.asked[0]
    assert (asked["path"], asked["threshold"], asked["chunk_overlap_tokens"], asked["code"]) == ("/prune", 0.4, 50, LONG)
    assert run.turns[-1].active_tokens < run.turns[-1].raw_tokens and "(filtered 59 lines)" in run.turns[-1].items[2].text


@pytest.mark.parametrize(("policy", "command"), [("llmlingua-2", "pip install llmlingua"), ("swe-pruner", "pip install swe-pruner")])
def test_what_is_missing_is_named_with_the_command_and_nothing_runs(tmp_path: Path, policy: str, command: str) -> None:
    missing = parse_policy(policy).missing()  # type: ignore[attr-defined]
    assert command in missing and "hf download" in missing
    with pytest.raises(InputError, match=command):
        replay(TRACE, policy, Workspace(tmp_path), ReplayOptions(parts=PARTS))


def test_other_weights_make_another_run(installed: Path) -> None:
    first = pruners.identity(pruners.llmlingua_model())
    (installed / "weights-llmlingua" / "config.json").write_text('{"layers": 2}')
    pruners.weights_fingerprint.cache_clear()
    assert pruners.identity(pruners.llmlingua_model()) != first
