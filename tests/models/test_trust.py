"""Profiles from strangers: nothing is sent anywhere before its user agreed, and only keys can be sent."""

from pathlib import Path

import pytest

from pamer_lab.cli import main
from pamer_lab.config import user_folder
from pamer_lab.errors import InputError
from pamer_lab.factory import Factory, Parts, load_controller
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.models.profiles import ChatSettings, EmbeddingSettings, Profile, load_profile, remember_profile
from pamer_lab.models.trust import FILE, destinations, require_confirmed, trust, unconfirmed
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.store import RunStore
from pamer_lab.workspace import Workspace
from tests.runs.making import long_trace

HOST = "http://some.name:9/v1"
SERVER = f'[chat]\nkind = "openai"\nmodel = "m"\nbase_url = "{HOST}"\nattempts = 1\n'
OUTWARD = {
    "chat server": SERVER,
    "key of the chat server": 'base = "paper"\n[chat]\napi_key_variable = "ANTHROPIC_API_KEY"\n',
    "embedding server": f'[embedding]\nkind = "openai"\nmodel = "m"\ndimensions = 4\nbase_url = "{HOST}"\n',
    "memory": 'memory_uri = "s3://some-bucket/memories"\n',
}


def written(folder: Path, text: str, name: str = "stranger.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("text", OUTWARD.values(), ids=OUTWARD)
def test_a_profile_file_sends_nothing_until_it_is_confirmed_once(text: str, tmp_path: Path, workspace: Workspace) -> None:
    path = written(tmp_path, text)
    profile = load_profile(path)
    factory = Factory(profile, workspace)
    for part in ("chat", "embedder", "memory", "model"):
        with pytest.raises(InputError):
            getattr(factory, part)
    with pytest.raises(InputError):
        replay(long_trace(3), "base", workspace, ReplayOptions(profile=str(path)))
    with pytest.raises(InputError):
        load_controller(workspace, str(path))
    shown = unconfirmed(profile)
    assert len(shown) == 1
    assert trust(profile) == shown and trust(profile) == [] == unconfirmed(load_profile(path))
    require_confirmed(load_profile(path))


def test_the_refusal_shows_every_host_variable_and_store(tmp_path: Path) -> None:
    text = f'memory_uri = "s3://b/m"\n{SERVER}api_key_variable = "GROQ_API_KEY"\n{OUTWARD["embedding server"]}'
    with pytest.raises(InputError) as refused:
        require_confirmed(load_profile(written(tmp_path, text)))
    assert all(word in refused.value.sentence for word in (HOST, "GROQ_API_KEY", "OPENAI_API_KEY", "s3://b/m", "--trust-profile"))


def test_a_confirmed_host_with_another_variable_is_asked_about_again(tmp_path: Path) -> None:
    trust(load_profile(written(tmp_path, SERVER)))
    assert unconfirmed(load_profile(written(tmp_path, SERVER + 'api_key_variable = "GROQ_API_KEY"\n')))
    assert not unconfirmed(load_profile(written(tmp_path, SERVER + "temperature = 0.5\n")))


def test_built_in_profiles_their_children_and_a_programs_own_need_no_confirmation(tmp_path: Path) -> None:
    assert not unconfirmed(load_profile("paper")) and not unconfirmed(load_profile("embedded"))
    assert not unconfirmed(load_profile(written(tmp_path, 'base = "paper"\nprobe_limit = 5\n')))
    own = Profile(name="mine", chat=ChatSettings(kind="openai", model="m", base_url=HOST))
    assert destinations(own) and not unconfirmed(own)


def test_a_workspace_of_a_stranger_brings_no_confirmation(workspace: Workspace, tmp_path: Path) -> None:
    remember_profile(load_profile(written(tmp_path, SERVER + '[embedding]\nkind = "hashing"\ndimensions = 4\n')), workspace.path)
    kept = load_profile("stranger", workspace.path)
    assert kept.chat.base_url == HOST and unconfirmed(kept)


def test_the_memories_of_a_run_are_not_fetched_from_an_unconfirmed_place(tmp_path: Path, workspace: Workspace) -> None:
    elsewhere = tmp_path / "elsewhere"
    path = written(tmp_path, f'memory_uri = "{elsewhere}"\n')
    trust(load_profile(path))
    parts = Parts(embedder=HashingEmbedder(16))
    run = replay(long_trace(12), "pamer:minimum=60:retained=1", workspace, ReplayOptions(profile=str(path), parts=_fixed(parts)))
    assert RunStore(workspace).memories(run)
    (user_folder() / FILE).unlink()
    assert not RunStore(workspace).memories(run)


def _fixed(parts: Parts) -> Parts:
    from pamer_lab.controller import FixedProbe

    return Parts(embedder=parts.embedder, probe=FixedProbe((2.0,) * 5))


@pytest.mark.parametrize(
    "name",
    ["PATH", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "PGPASSWORD", "SSH_AUTH_SOCK", "openai_api_key", "", "X_API_KEY\n", "_API_KEY"],
)
def test_only_variables_named_like_a_servers_key_can_be_sent(name: str) -> None:
    for settings in (ChatSettings, EmbeddingSettings):
        with pytest.raises(ValueError):
            settings(api_key_variable=name)


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "ftp://a/v1",
        "some.name/v1",
        "http://",
        "http://name:word@some.name/v1",
        "http://a b/v1",
        "http://a:x/v1",
        "http://a\x1b[2J/",
    ],
)
def test_an_address_is_a_plain_one(address: str) -> None:
    for settings in (ChatSettings, EmbeddingSettings):
        with pytest.raises(ValueError):
            settings(base_url=address)


def test_a_damaged_list_of_confirmations_or_kept_profile_is_one_sentence(
    tmp_path: Path, workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, SERVER)
    user_folder().mkdir(parents=True)
    for damaged in ("nonsense", '{"a": 1}', "[" * 100_000, "[1]"):
        (user_folder() / FILE).write_text(damaged)
        with pytest.raises(InputError):
            unconfirmed(load_profile(path))
    (workspace.path / "profiles").mkdir(parents=True)
    (workspace.path / "profiles" / "kept.json").write_text('{"name": "kept", "chat": {"api_key_variable": "PATH"}}')
    assert main(["doctor", "--profile", "kept", "--json"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
