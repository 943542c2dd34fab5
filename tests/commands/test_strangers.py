"""Commands with a stranger's profile and otherwise right arguments: refused before anything is sent, at work once it is confirmed."""

import json
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pamer_lab.bench.measure import save_tiny
from pamer_lab.cli import main
from pamer_lab.config import user_folder
from tests.commands.labelled import write_labelled
from tests.loopback import listening

POLICY = "pamer:minimum=60:retained=1:vote=1"
SEEDS = ["--seeds", "0,1"]
FINAL = ["--layers", "final"]
COMMANDS = {
    "extract": ["extract", "{corpus}", "--contexts", "recent2", *FINAL],
    "train": ["train", "{corpus}", *SEEDS, *FINAL, "--layer", "final", "--teacher", "none"],
    "train by workers": ["train", "{corpus}", *SEEDS, *FINAL, "--layer", "final", "--teacher", "none", "--workers", "1"],
    "layerwise": ["layerwise", "{corpus}", *SEEDS, *FINAL],
    "controls": ["controls", "{corpus}", *SEEDS, *FINAL],
    "compact": ["compact", "{corpus}", *SEEDS, "--layer", "final"],
    "annotate": ["annotate", "{corpus}", "--limit", "1"],
    "replay": ["replay", "{corpus}", "--policy", POLICY, "--heads", "own", "--workers", "0"],
    "replay by workers": ["replay", "{corpus}", "--policy", POLICY, "--heads", "own", "--workers", "1"],
    "arena": ["arena", "--tasks", "1", "--level", "1-1-1", "--policy", POLICY, "--heads", "own", "--workers", "0"],
    "serve": ["serve", "--upstream", "{host}", "--policy", POLICY, "--heads", "own"],
    "run": ["run", "--upstream", "{host}", "--policy", POLICY, "--heads", "own", "--profile", "{profile}", "--", "true"],
    "test of heads": ["heads", "test", "own", "{corpus}"],
    "fit of a probe": ["policies", "--fit-probing-rag", "{corpus}"],
    "check of memories": ["memory", "check"],
}


class _Server(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps({"choices": [{"message": {"role": "assistant", "content": "{}"}}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


class Listener(ThreadingHTTPServer):
    """A model server that counts connections."""

    connections = 0

    def get_request(self) -> tuple[socket.socket, object]:
        self.connections += 1
        return super().get_request()


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    server = Listener(("127.0.0.1", 0), _Server)
    with listening(server):
        yield server


@pytest.fixture(scope="module")
def places(listener: Listener, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A labelled corpus, heads of a tiny model, and a profile of that model which names a host and a key."""
    folder = tmp_path_factory.mktemp("stranger")
    corpus = write_labelled(folder / "corpus.jsonl", 14, 6, lambda rng: " ".join(f"w{rng.integers(500)}" for _ in range(30)))
    host = f"http://127.0.0.1:{listener.server_port}"
    model = f'[frozen_model]\nmodel = "{save_tiny(folder / "model", "llama")}"\n'
    server = f'kind = "openai"\nmodel = "m"\nbase_url = "{host}/v1"\napi_key_variable = "STRANGE_API_KEY"\nattempts = 1\n'
    (folder / "mine.toml").write_text(f'{model}[embedding]\nkind = "hashing"\n')
    (folder / "stranger.toml").write_text(f"{model}[chat]\n{server}[embedding]\ndimensions = 4\n{server}")
    workspace = str(folder / "workspace")
    words = ["train", str(corpus), *SEEDS, *FINAL, "--layer", "final", "--teacher", "none", "--heads", "own"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PAMER_LAB_HOME", workspace)
        assert main([*words, "--profile", str(folder / "mine.toml"), "--device", "cpu"]) == 0
    return {"corpus": str(corpus), "host": host, "profile": str(folder / "stranger.toml"), "workspace": workspace}


@pytest.fixture(autouse=True)
def here(places: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAMER_LAB_HOME", places["workspace"])
    monkeypatch.setenv("STRANGE_API_KEY", "planted-key-of-the-reader")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_refuses_a_strangers_profile_before_it_connects(
    name: str, places: dict[str, str], listener: Listener, capsys: pytest.CaptureFixture[str]
) -> None:
    before = listener.connections
    words = [word.format(**places) for word in COMMANDS[name]]
    assert main([*words, *(() if "--profile" in words else ("--profile", places["profile"]))]) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in (places["host"], "STRANGE_API_KEY", "--trust-profile"))
    assert "planted-key" not in said and listener.connections == before and not user_folder().exists()


def test_a_report_from_a_strangers_settings_refuses_the_profile_that_they_name(
    places: dict[str, str], listener: Listener, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", places["corpus"], "--json"]) == 0
    trace = json.loads(capsys.readouterr().out)["traces"][0]["trace_id"]
    run = {"trace_id": trace, "policy": POLICY, "profile": places["profile"], "heads": "own"}
    settings, before = tmp_path / "config.json", listener.connections
    settings.write_text(json.dumps({"sections": [{"kind": "replay", "trace_id": trace, "runs": [run]}]}))
    assert main(["report", "--config", str(settings), "--out", str(tmp_path / "r.html")]) == 2
    assert "--trust-profile" in capsys.readouterr().err and listener.connections == before


def test_a_confirmed_profile_sends(places: dict[str, str], listener: Listener) -> None:
    words, before = ["annotate", places["corpus"], "--limit", "1", "--profile", places["profile"]], listener.connections
    assert main([*words, "--trust-profile"]) == 0
    assert listener.connections > before and (user_folder() / "trusted.json").is_file()
