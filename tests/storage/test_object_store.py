"""A workspace in an object store: commits of many writers, killed ones, read-only credentials, what stays on this machine."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pamer_lab.arena.plan import Plan
from pamer_lab.arena.reader import Reader
from pamer_lab.arena.running import play_arena
from pamer_lab.arena.store import ARENAS, EPISODES, INFO, SHARED_EPISODES, ArenaStore
from pamer_lab.cli import main
from pamer_lab.config import ADDRESS_FILE, local_folder, object_store
from pamer_lab.errors import InputError, StorageError
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.probes.registry import PACKAGED, find_heads, list_heads, register, remove
from pamer_lab.runs.batch import BatchOptions, replay_batch
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.turn_rows import TEXTS, TURNS
from pamer_lab.storage import Database, TableSpec, shared_files
from pamer_lab.storage.faults import advice, short
from pamer_lab.storage.leases import LEASES, lease, take
from pamer_lab.workspace import RUNS, TRACES, Workspace
from pamer_lab.workspace.store import may_write
from tests.loopback import listening
from tests.object_store import READER, WRITER, Store
from tests.runs.making import long_trace, untimed

PROJECT = Path(__file__).resolve().parents[2]
ROWS = TableSpec("rows", pa.schema([("key", pa.string()), ("writer", pa.string())]), ("key",))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    (tmp_path / "s3").mkdir()
    server = Store(tmp_path / "s3")
    for name, value in {**server.environment(), "PAMER_LAB_CACHE": str(tmp_path / "cache"), "PAMER_LAB_HOME": "s3://lab/one"}.items():
        monkeypatch.setenv(name, value)
    with listening(server):
        yield server


def filled(traces: int = 2, turns: int = 4) -> tuple[Workspace, list[str]]:
    workspace = Workspace("s3://lab/one")
    made = [long_trace(turns + number, trace_id=f"t-{number}") for number in range(traces)]
    workspace.add_traces(made, profile_tokens(load_profile("embedded")))
    return workspace, [trace.trace_id for trace in made]


def test_a_replay_gives_the_same_turns_as_in_a_folder_and_no_key_is_stored_anywhere(store: Store, tmp_path: Path) -> None:
    workspace, ids = filled()
    assert workspace.address == "s3://lab/one" and Workspace().address == workspace.address
    assert Workspace(workspace.path).address == workspace.address, "a process that is given the local folder opens the same workspace"
    here = Workspace(tmp_path / "here")
    for trace_id in ids:
        there = replay(trace_id, "periodic-summary:2", workspace)
        alone = replay(workspace.trace(trace_id).trace, "periodic-summary:2", here)
        assert there.run_id == alone.run_id and [untimed(turn) for turn in there.turns] == [untimed(turn) for turn in alone.turns]
        assert RunStore(workspace).run(there.run_id).turns == there.turns
    assert not (workspace.path / "lance").exists()
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert written and not any(secret.encode() in body for body in written for secret in (*WRITER,))


def test_a_reviewer_with_read_only_credentials_reads_and_is_told_what_to_do_on_writing(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace, ids = filled(1)
    run = replay(ids[0], "base", workspace)
    assert may_write(workspace)
    for name, value in store.environment(READER).items():
        monkeypatch.setenv(name, value)
    reader = Workspace("s3://lab/one")
    assert RunStore(reader).run(run.run_id).turns == run.turns and not may_write(reader)
    with pytest.raises(StorageError, match="PAMER_LAB_READONLY"):
        replay(ids[0], "sliding-window:2", reader)
    assert main(["runs", "list", "--json"]) == 0 and run.run_id in capsys.readouterr().out
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-wrong-secret-of-mine")
    assert main(["runs", "list"]) == 1
    said = capsys.readouterr().err
    assert "credentials" in said and "a-wrong-secret-of-mine" not in said and READER[0] not in said


def test_of_many_writers_of_one_key_exactly_one_adds_it_and_a_killed_one_leaves_whole_commits(store: Store, tmp_path: Path) -> None:
    program = (
        "import sys; from tests.storage.test_object_store import Database, ROWS; database = Database('s3://lab/race/lance')\n"
        "for number in range(100_000):\n"
        "    added, _ = database.insert(ROWS, [{'key': f'{number}{half}', 'writer': sys.argv[1]} for half in ('', 'b')])\n"
        "    print(number if added else 'lost', flush=True)\n"
        "    if number == 6 and sys.argv[1] != 'killed': break\n"
    )
    words = [sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    database = Database("s3://lab/race/lance")
    database.insert(ROWS, [{"key": "first", "writer": "test"}])
    start = lambda name: subprocess.Popen([*words, name], stdout=subprocess.PIPE, text=True, env=environment, cwd=PROJECT)  # noqa: E731
    children = [start("killed"), start("one"), start("two")]
    assert children[0].stdout is not None
    for _ in range(3):
        children[0].stdout.readline()
    children[0].send_signal(signal.SIGKILL)
    for child in children[1:]:
        child.wait(120)
    rows = database.rows(ROWS)
    keys = [row["key"] for row in rows]
    assert len(keys) == len(set(keys)) and {f"{number}{half}" for number in range(7) for half in ("", "b")} <= set(keys)
    pairs = {row["key"]: row["writer"] for row in rows}
    assert all(pairs[f"{number}"] == pairs[f"{number}b"] for number in range(7)), "a commit is there as a whole"
    told = [line for child in children[1:] for line in (child.stdout or ()) if line.strip() != "lost"]
    assert len(told) == len(set(told)), "no two writers were told that they added the same key"


def test_two_clusters_on_one_workspace_neither_lose_nor_double_anything(store: Store) -> None:
    workspace, ids = filled(2)
    policies = ["base", "sliding-window:2"]
    command = [sys.executable, "-m", "pamer_lab.cli", "replay", *ids, "--policy", ",".join(policies), "--workers", "0", "--json"]
    other = {**os.environ, "PYTHONPATH": str(PROJECT), "PAMER_LAB_CACHE": f"{os.environ['PAMER_LAB_CACHE']}-other-machine"}
    machine = subprocess.Popen(command, env=other, cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    replay_batch(ids[::-1], policies, workspace, BatchOptions())
    machine.wait(240)
    again = replay_batch(ids, policies, workspace, BatchOptions())
    assert {outcome.status for outcome in again} == {"done"}
    database = workspace.database
    for spec in (RUNS, TURNS, TEXTS):
        keys = [tuple(row[name] for name in spec.key) for row in database.rows(spec, columns=list(spec.key))]
        assert len(keys) == len(set(keys)), spec.name
    assert database.count(RUNS) == 4 and database.count(TURNS) == 2 * (4 + 5)
    assert database.count(LEASES) == 0


def test_a_lease_keeps_others_out_until_it_ends_and_lets_its_owner_back_in(store: Store) -> None:
    database = Database("s3://lab/leases/lance")
    with lease(database, "run", "batch-1") as ours:
        assert ours and not take(database, "run", "batch-2") and take(database, "run", "batch-1")
        with lease(database, "run", "batch-2") as theirs:
            assert not theirs
    assert take(database, "run", "batch-2", seconds=-1.0)
    assert take(database, "run", "batch-3"), "what a dead owner left ends by itself"
    workspace, ids = filled(1)
    run_id = replay(ids[0], "base", workspace, ReplayOptions(turn_limit=1)).run_id
    assert take(workspace.database, run_id, "another machine")
    with pytest.raises(InputError, match=run_id):
        replay(ids[0], "base", workspace, ReplayOptions(turn_limit=1, owner="me"))
    assert replay(ids[0], "base", workspace, ReplayOptions(turn_limit=1, owner="another machine")).run_id == run_id


def test_what_was_read_is_kept_within_a_bound_and_never_stale(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, ids = filled(3, turns=12)
    monkeypatch.setenv("PAMER_LAB_READ_CACHE_MB", "1")
    reads = workspace.path / "reads"
    fresh = Workspace("s3://lab/one")
    first = fresh.trace(ids[0])
    kept = list(reads.glob("*.arrow"))
    assert kept and fresh.trace(ids[0]) == first and list(reads.glob("*.arrow")) == kept
    kept[0].write_bytes(b"damaged")
    assert fresh.trace(ids[0]) == first
    workspace.add_traces([long_trace(3, trace_id="t-new")], profile_tokens(load_profile("embedded")))
    assert {row["trace_id"] for row in fresh.trace_rows()} == {*ids, "t-new"}, "a new version is seen at once"
    for number in range(40):
        fresh.database.rows(TRACES, where=f"turns > {number - 100}")
    assert sum(path.stat().st_size for path in reads.glob("*.arrow")) <= 1_000_000


def test_a_workspace_that_was_deleted_and_made_anew_shows_nothing_of_the_old_one(store: Store) -> None:
    for name in ("t-old", "t-new"):
        Workspace("s3://lab/one").add_traces([long_trace(3, trace_id=name)], profile_tokens(load_profile("embedded")))
        fresh = Workspace("s3://lab/one").database
        assert [row["trace_id"] for row in fresh.rows(TRACES)] == [name] and fresh.version(TRACES) == 2, "the same version of another table"
        shutil.rmtree(store.folder / "lab")


def test_a_bucket_with_a_dot_in_its_name_takes_the_region_of_the_environment(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Workspace("s3://my.lab/one").trace_rows() == []
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(StorageError, match="needs AWS_REGION"):
        Workspace("s3://my.lab/one").trace_rows()


def test_heads_of_one_machine_vote_on_another(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_files, "LOOK_EVERY", 0.0)
    here = Workspace("s3://lab/one").path
    packaged = find_heads(next(PACKAGED.iterdir()).name, here)
    mine = register(packaged.heads, "mine", here)
    monkeypatch.setenv("PAMER_LAB_CACHE", str(tmp_path / "another"))
    there = Workspace("s3://lab/one").path
    assert there != here and find_heads("mine", there).heads.sha256 == mine.heads.sha256
    remove("mine", there)
    monkeypatch.setenv("PAMER_LAB_CACHE", str(tmp_path / "cache"))
    assert "mine" not in [entry.name for entry in list_heads(here)[0]]


def test_an_arena_of_one_machine_is_seen_on_another(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Workspace("s3://lab/one")
    info = play_arena(Plan(tasks=1, level="1-0-0", policies=()), here, agent=Reader())
    monkeypatch.setenv("PAMER_LAB_CACHE", str(tmp_path / "another"))
    there = ArenaStore(Workspace("s3://lab/one"))
    assert there.ids() == [info.arena_id] and there.info(info.arena_id) == info
    assert there.episodes(info.arena_id) == ArenaStore(here).episodes(info.arena_id) and len(there.episodes(info.arena_id)) == 3


def test_an_arena_in_the_store_never_names_a_folder_elsewhere(store: Store, tmp_path: Path) -> None:
    here = Workspace("s3://lab/one")
    info = play_arena(Plan(tasks=1, level="1-0-0", policies=()), here, agent=Reader())
    planted = tmp_path / "elsewhere"
    for name in (str(planted), f"../../../{planted.name}", "..", "w-0123456789ab/../../x"):
        here.database.insert(ARENAS, [{"arena_id": name, "body": b"{}"}])
    before = {path for path in tmp_path.rglob("*") if "s3" not in path.parts and path.name in (INFO, EPISODES)}
    here.database.insert(SHARED_EPISODES, [{"arena_id": "..", "task": 0, "policy": "base", "body": b"{}"}])
    assert ArenaStore(here).ids() == [info.arena_id]
    assert {path for path in tmp_path.rglob("*") if "s3" not in path.parts and path.name in (INFO, EPISODES)} == before


def test_a_folder_that_a_stranger_made_sends_nothing_to_a_store(tmp_path: Path) -> None:
    folder = tmp_path / "workspaces" / "theirs"
    folder.mkdir(parents=True)
    (folder / ADDRESS_FILE).write_text("s3://theirs/workspace")
    workspace = Workspace(folder)
    assert not workspace.remote and workspace.address == str(folder)


@pytest.mark.parametrize(
    "address",
    [
        *("s3://key:secret@bucket/x", "s3://bucket/x?secret=1", "s3://", "s3:///x", "https://bucket/x", "ftp://x", "S3://bucket/x"),
        *("s3://bucket/x#secret", "s3://bucket/../x", "s3://bucket/./x", "s3://bucket//x", "s3://bucket/a%20b", "s3://bucket/a\nb"),
        *("s3://buc ket/x", "s3://../x", "s3://bucket:80/x", "s3://bucket/a\\b", "gs://b#c/x"),
        *("s3:/bucket/x", "gs:bucket", "az:secret", "file:x", "file://u:secret@h/x", "file://", "file://x/y", "file:///x#y"),
    ],
)
def test_an_address_with_credentials_or_of_an_unknown_kind_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(InputError) as error:
        local_folder(address)
    assert "secret" not in str(error.value)


def test_a_file_address_is_a_folder(tmp_path: Path) -> None:
    assert local_folder(f"file://{tmp_path}/a%20b") == tmp_path / "a b" and object_store("s3://bucket/x/") == "s3://bucket/x"
    assert local_folder("./s3:x") == Path("./s3:x") and local_folder("gs") == Path("gs"), "other names are folders"
    assert object_store("s3://my.bucket_1/..a/ü b//") == "s3://my.bucket_1/..a/ü b"
    assert {object_store(f"{scheme}://b/w") for scheme in ("gs", "az")} == {"gs://b/w", "az://b/w"}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("lance error: IO { source: http://169.254.169.254/computeMetadata/v1/token }", "GOOGLE_APPLICATION_CREDENTIALS"),
        (
            "no Azure account name in URI, and no storage account configured.",
            "AZURE_STORAGE_ACCOUNT_KEY",
        ),
        ("Failed to resolve region for bucket 'b'", "AWS_ACCESS_KEY_ID"),
        ("lance error: IO { source: Status { status: 403, body: <Code>SignatureDoesNotMatch</Code> }", "does not know the credentials"),
        ("lance error: IO { source: Status { status: 400, body: <Code>ExpiredToken</Code> }", "have expired"),
        (
            "lance error: IO { source: Status { status: 404, body: <Code>NoSuchBucket</Code> }",
            "no such bucket",
        ),
        ("lance error: IO { source: Status { status: 503, body: <Code>SlowDown</Code> }", "busy"),
        ("lance error: IO { source: Status { status: 403, body: <Code>AccessDenied</Code> }", "PAMER_LAB_READONLY"),
    ],
)
def test_what_is_wrong_with_a_store_or_its_credentials_is_named(text: str, named: str) -> None:
    assert named in advice(RuntimeError(text)) and "{" not in short(RuntimeError(text))
