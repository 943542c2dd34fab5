import pytest

from pamer_lab.redaction import Redaction, Scan, masked, own_keys, summary

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA75\nabc\n-----END RSA PRIVATE KEY-----"
# Put together at run time: no scanner should find a key in this repository.
SECRETS = [
    ("API key", "sk-" + "proj-" + "a1B2" * 10),
    ("API key", "sk-" + "ant-" + "api03-" + "xY9z" * 8),
    ("API key", "AK" + "IA" + "IOSFODNN7EXAMPLF"),
    ("API key", "AI" + "za" + "SyA1234567890abcdefghijklmnopqrstuv"),
    ("API key", "h" + "f_" + "abcdefghijKLMNOPQRSTUVWX"),
    ("token", "gh" + "p_" + "16C7e42F292c6912E7710c838347Ae178B4a"),
    ("token", "xo" + "xb-" + "17653672481-19874698323-pdFZKVeTuE8sk7oOcHrzqqgy"),
    ("token", "ey" + "JhbGciOiJIUzI1NiJ9" + ".ey" + "JzdWIiOiIxMjM0In0" + ".dozjgNryP4J3jVmNHl0w5N"),
    ("private key", PEM),
    ("e-mail address", "ada.lovelace+test@example.co.uk"),
]
INNOCENT = [
    "3f786850e387550fdab836ed7e6dc881de23001b is a commit",
    "sha256 b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    "the password is asked for; api_key = your_key_here; token: None",
    "import numpy@1.2; user@localhost; a @ b; foo@bar",
    "risk-averse task-oriented desk-organiser-of-long-names-and-words",
    "/homes/x /usr/home2 http://example.com/home/index.html",
    "run r-1234567890abcdef m000001-1f2e3d4c5b6a",
]


@pytest.mark.parametrize(("kind", "secret"), SECRETS)
@pytest.mark.parametrize("around", ["{}", 'key="{}"', "see {} there.", '{{"a": "{}"}}', "\n{}\n"])
def test_a_known_shape_is_found_and_replaced_wherever_it_stands(kind: str, secret: str, around: str) -> None:
    scan = Scan("all")
    cleaned = scan.clean(around.format(secret), "here")
    assert secret not in cleaned and f"[redacted: {kind} 1]" in cleaned
    assert [finding.kind for finding in scan.findings] == [kind]
    assert all(secret not in repr(finding) for finding in scan.findings)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("postgres://ada:" + "hunter22@db:5432/x", "hunter22"),
        ("DB_PASSWORD='correct-horse'", "correct"),
        ('"client_secret": "' + "Zq8~abcdefgh" + '"', "Zq8~abcdefgh"),
        ("export OPENAI_API_KEY=" + "abcd1234efgh5678", "abcd1234efgh5678"),
        ("Authorization: Bearer " + "abcdefghijklmnop1234", "abcdefghijklmnop1234"),
        ("cd /home/ada/project", "ada"),
        ("C:\\Users\\ada\\project and /Users/ada/x", "ada"),
        ("ls /" + "root/.ssh", "root"),
    ],
)
def test_what_a_name_beside_it_gives_away_is_replaced_and_the_name_stays(text: str, hidden: str) -> None:
    cleaned = Scan("all").clean(text, "here")
    assert hidden not in cleaned and "[redacted" in cleaned


@pytest.mark.parametrize("text", INNOCENT)
def test_hashes_placeholders_and_plain_words_are_left_alone(text: str) -> None:
    scan = Scan("all")
    assert scan.clean(text, "here") == text and scan.findings == []


@pytest.mark.parametrize(("choice", "replaced"), [("none", set()), ("keys", {"API key"}), ("all", {"API key", "e-mail address"})])
def test_the_choice_decides_what_is_replaced_and_everything_is_told(choice: Redaction, replaced: set[str]) -> None:
    scan = Scan(choice)
    scan.clean(f"{SECRETS[0][1]} by {SECRETS[-1][1]}", "block 3")
    assert {finding.kind for finding in scan.findings if finding.redacted} == replaced
    assert {finding.kind for finding in scan.findings} == {"API key", "e-mail address"}
    assert all(finding.place == "block 3, line 1" for finding in scan.findings)


def test_equal_secrets_get_equal_numbers_so_that_a_reader_can_follow_them() -> None:
    scan = Scan("keys")
    one, other = SECRETS[0][1], SECRETS[1][1]
    cleaned = scan.walk({"a": [one, f"x\n{other}"], one: other})
    assert cleaned == {"a": ["[redacted: API key 1]", "x\n[redacted: API key 2]"], "[redacted: API key 1]": "[redacted: API key 2]"}
    assert summary(scan.findings) == [{"kind": "API key", "redacted": True, "different": 2, "places": 4}]


def test_the_values_of_this_process_own_keys_are_found_whatever_they_look_like(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SERVICE_API_KEY", "plain words")
    monkeypatch.setenv("SHORT_TOKEN", "abc")
    scan = Scan("keys", own_keys())
    assert scan.clean("these are plain words, abc", "x") == "these are [redacted: API key 1], abc"


def test_masking_never_shows_more_than_a_few_characters() -> None:
    assert masked("abcdefgh") == "ab… (8 characters)" and masked("x" * 100) == "xxxx… (100 characters)"
    assert masked(PEM).startswith("-----BEGIN RSA PRIVATE KEY") and "MII" not in masked(PEM)
