"""A planted key: no store, log, share file or error message may hold it, even where a server sends it back."""

import base64
import json
import logging
import zipfile
from pathlib import Path
from typing import Any

import lancedb
import pytest

from pamer_lab.cli import main
from pamer_lab.controller import FixedProbe
from pamer_lab.errors import InputError, ModelError
from pamer_lab.factory import Parts
from pamer_lab.models.chat import ChatClient
from pamer_lab.models.embedder import EmbeddingClient, HashingEmbedder
from pamer_lab.models.profiles import ChatSettings, EmbeddingSettings, load_profile
from pamer_lab.models.trust import trust
from pamer_lab.redaction import api_key, own_keys, without_keys
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.workspace import Workspace
from tests.models.fault_server import CHAT, embedding_answer, serving
from tests.runs.making import estimated, long_trace

PLANTED = "sk-" + "planted-" + "7Hq2" * 6
ECHO = json.dumps({"error": {"message": f"Incorrect API key provided: {PLANTED}"}})


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", PLANTED)


def _stored(folder: Path) -> bytes:
    """Every byte of every file, and every value of every table as text."""
    raw = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    connection = lancedb.connect(folder / "lance")
    rows = [repr(connection.open_table(name).search().to_arrow().to_pylist()) for name in connection.list_tables().tables]
    return raw + "".join(rows).encode()


@pytest.mark.server
def test_a_key_that_a_server_sends_back_is_in_no_store_log_share_file_or_message(
    tmp_path: Path, workspace: Workspace, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    workspace.add_traces([long_trace(8)], estimated())
    with serving((401, ECHO)) as server:
        profile = tmp_path / "served.toml"
        profile.write_text(f'[chat]\nkind = "openai"\nmodel = "m"\nbase_url = "{server.url}"\nattempts = 1\n')
        trust(load_profile(profile))
        parts = Parts(embedder=HashingEmbedder(64), probe=FixedProbe((2.0,) * 5))
        run = replay("t-long", "pamer:minimum=60:retained=1", workspace, ReplayOptions(profile=str(profile), parts=parts))
    assert server.requests and any(turn.action == "fallback" and turn.error for turn in run.turns)
    out = tmp_path / "share.html"
    assert main(["report", run.run_id, "--redact", "none", "--out", str(out), "--json"]) == 0
    with zipfile.ZipFile(out.with_suffix(".zip")) as opened:
        shared = out.read_bytes() + b"".join(opened.read(name) for name in opened.namelist())
    assert main(["runs", "export", run.run_id, "--redact", "none", "--out", str(tmp_path / "one.runs")]) == 0
    with zipfile.ZipFile(tmp_path / "one.runs") as opened:
        shared += b"".join(opened.read(name) for name in opened.namelist())
    told = "".join(capfd.readouterr()) + caplog.text
    assert PLANTED.encode() not in _stored(workspace.path) + shared and PLANTED not in told


@pytest.mark.server
@pytest.mark.parametrize("answer", [(401, ECHO), (500, ECHO), f"not JSON {PLANTED}"])
def test_error_messages_of_the_client_hold_no_key(answer: Any) -> None:
    with serving(answer) as server, pytest.raises(ModelError) as failed:
        ChatClient(ChatSettings(kind="openai", model="m", base_url=server.url, attempts=1)).complete([], max_tokens=5)
    assert PLANTED not in str(failed.value)


def test_a_key_in_a_profile_is_refused_without_being_repeated(tmp_path: Path) -> None:
    profile = tmp_path / "p.toml"
    profile.write_text(f'[chat]\napi_key = "{PLANTED}"\n')
    with pytest.raises(InputError) as refused:
        load_profile(profile)
    assert "chat.api_key" in str(refused.value) and PLANTED not in str(refused.value)


def test_the_command_line_says_no_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", PLANTED]) == 2
    assert PLANTED not in capsys.readouterr().err


def test_keys_are_found_by_the_names_of_their_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SERVICE_TOKEN", "another one")
    assert api_key("OPENAI_API_KEY") == PLANTED and api_key("NOT_SET") == "none"
    assert {PLANTED, "another one"} <= set(own_keys())
    assert without_keys(f"a {PLANTED} b another one") == "a [key] b [key]"


@pytest.mark.server
def test_a_key_that_a_server_puts_into_its_answer_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "another-planted-key")
    encoded = [base64.b64encode(f"user:{PLANTED}".encode()).decode(), PLANTED.encode().hex(), PLANTED.replace("-", "%2D")]
    said = f"the key is another-planted-key, and {PLANTED}, or {' or '.join(encoded)}"
    answer = CHAT | {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}]}
    with serving(answer) as server:
        settings = ChatSettings(kind="openai", model="m", base_url=server.url, api_key_variable="OTHER_API_KEY", attempts=1)
        found = ChatClient(settings).complete([], max_tokens=5)
    assert server.headers[0]["authorization"] == "Bearer another-planted-key"
    assert found.text == found.raw == f"the key is [key], and [key], or {base64.b64encode(b'user:')[:6].decode()}[key] or [key] or [key]"


@pytest.mark.server
def test_a_server_gets_no_organisation_or_project_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-planted")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-planted")
    with serving(CHAT, embedding_answer(1, 4)) as server:
        ChatClient(ChatSettings(kind="openai", model="m", base_url=server.url, attempts=1)).complete([], max_tokens=5)
        EmbeddingClient(EmbeddingSettings(kind="openai", model="m", base_url=server.url, dimensions=4, attempts=1)).embed(["a"])
    assert len(server.headers) == 2 and "planted" not in repr([{**sent, "authorization": ""} for sent in server.headers])
