"""The committed files are what the program writes today."""

from pathlib import Path

import pytest

from pamer_lab.blocks import MessageTokens
from pamer_lab.cli import main
from pamer_lab.errors import InputError
from pamer_lab.models.embedded import is_prepared
from pamer_lab.models.tokenizer import embedded_counter
from pamer_lab.trajectory import read_traces

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"


def test_the_same_seed_gives_the_committed_bytes(tmp_path: Path) -> None:
    assert main(["generate", "--questions", "48", "--replicas", "2", "--seed", "7", "--out", str(tmp_path / "study")]) == 0
    assert main(["generate", "--demo", "--seed", "7", "--out", str(tmp_path / "demo")]) == 0
    made = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert len(made) == 4
    for path in made:
        assert (tmp_path / path).read_bytes() == (SAMPLES / path).read_bytes(), path


def test_a_question_does_not_depend_on_how_many_follow(tmp_path: Path) -> None:
    main(["generate", "--questions", "2", "--replicas", "2", "--seed", "7", "--out", str(tmp_path)])
    few = (tmp_path / "traces.jsonl").read_bytes()
    assert (SAMPLES / "study" / "traces.jsonl").read_bytes().startswith(few)


def test_study_traces_have_the_promised_size() -> None:
    traces = list(read_traces(SAMPLES / "study"))
    tokens = MessageTokens(embedded_counter())
    assert len(traces) == 96
    assert len({trace.question_id for trace in traces}) == 48
    assert all(10 <= trace.turns <= 18 for trace in traces)
    if is_prepared():
        assert all(1_900 <= tokens.total(trace.messages) + tokens.tools(trace.tools) <= 6_000 for trace in traces)


def test_demo_traces_are_long_and_carry_a_recorded_baseline() -> None:
    names = ("museum-case", "service-handover", "polar-stations")
    traces = {name: next(iter(read_traces(SAMPLES / "demo" / f"{name}.json"))) for name in names}
    assert all(60 <= trace.turns <= 120 and trace.events and trace.labels for trace in traces.values())
    case = traces["museum-case"]
    assert case.turns == 94
    calls = [call.name for message in case.messages for call in message.tool_calls]
    assert (calls.count("search"), calls.count("get_document")) == (81, 16)
    operations = [(event.data["turn"], event.kind) for event in case.events]
    assert operations == [
        (19, "compaction"),
        (28, "compaction"),
        (36, "memory_read"),
        (47, "compaction"),
        (71, "compaction"),
        (80, "memory_read"),
    ]


def test_the_upload_samples_read_and_refuse_as_their_names_say() -> None:
    assert next(iter(read_traces(SAMPLES / "try-upload.chat.json"))).format == "openai-chat"
    with pytest.raises(InputError):
        list(read_traces(SAMPLES / "broken.json"))


def test_bad_numbers_are_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--questions", "0", "--out", str(tmp_path)]) == 2
    assert "--questions" in capsys.readouterr().err
