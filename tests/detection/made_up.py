"""Secrets that were never anybody's, put together when the tests run: no scanner finds a key in this repository."""

import random
import string

_RANDOM = random.Random(19)
ALNUM, HEX, UPPER = string.ascii_letters + string.digits, "0123456789abcdef", string.ascii_uppercase + string.digits


def made(length: int, letters: str = ALNUM) -> str:
    """Random letters with a digit among the first, as nearly every key has."""
    return _RANDOM.choice(letters) + "7" + "".join(_RANDOM.choice(letters) for _ in range(length - 2))


def _shapes() -> dict[str, tuple[str, str]]:
    a, h = made, lambda length: made(length, HEX)
    return {
        "openai": ("API key", "sk-" + "proj-" + a(90)),
        "openai old": ("API key", "s" + "k-" + a(48)),
        "anthropic": ("API key", "sk-" + "ant-api03-" + a(93) + "AA"),
        "openrouter": ("API key", "sk-" + "or-v1-" + h(64)),
        "aws": ("API key", "AK" + "IA" + made(16, UPPER)),
        "google": ("API key", "AI" + "za" + a(35)),
        "google oauth": ("token", "ya" + "29." + a(120)),
        "google secret": ("API key", "GOC" + "SPX-" + a(28)),
        "google refresh": ("token", "1" + "//0" + a(60)),
        "hugging face": ("API key", "h" + "f_" + a(34)),
        "groq": ("API key", "gs" + "k_" + a(52)),
        "replicate": ("API key", "r" + "8_" + a(37)),
        "perplexity": ("API key", "ppl" + "x-" + a(48)),
        "xai": ("API key", "xa" + "i-" + a(80)),
        "nvidia": ("API key", "nv" + "api-" + a(60)),
        "fireworks": ("API key", "f" + "w_" + a(24)),
        "tavily": ("API key", "tv" + "ly-" + a(32)),
        "pinecone": ("API key", "pc" + "sk_" + a(8) + "_" + a(60)),
        "langsmith": ("API key", "ls" + "v2_pt_" + h(32) + "_" + h(10)),
        "github": ("token", "gh" + "p_" + a(36)),
        "github fine": ("token", "github" + "_pat_" + a(22) + "_" + a(59)),
        "gitlab": ("token", "gl" + "pat-" + a(20)),
        "gitlab runner": ("token", "gl" + "rt-" + a(20)),
        "docker": ("token", "dckr" + "_pat_" + a(27)),
        "npm": ("token", "np" + "m_" + a(36)),
        "pypi": ("token", "py" + "pi-AgEI" + a(150)),
        "digitalocean": ("token", "dop" + "_v1_" + h(64)),
        "vault": ("token", "hv" + "s." + a(95)),
        "databricks": ("API key", "da" + "pi" + h(32)),
        "atlassian": ("token", "ATA" + "TT3" + a(186)),
        "grafana": ("API key", "gl" + "sa_" + a(32) + "_" + h(8)),
        "slack bot": ("token", "xo" + "xb-" + "176536724812-198746983231-" + a(24)),
        "slack app": ("token", "xa" + "pp-" + "1-A" + made(10, UPPER) + "-6281470191234-" + h(64)),
        "slack webhook": ("token", "https://hooks.sl" + "ack.com/services/T" + made(10, UPPER) + "/B" + made(10, UPPER) + "/" + a(24)),
        "discord bot": ("token", "M" + a(25) + "." + a(6) + "." + a(38)),
        "discord webhook": ("token", "https://dis" + "cord.com/api/webhooks/" + "123456789012345678/" + a(68)),
        "telegram": ("token", "5123456789" + ":AA" + a(33)),
        "azure storage": ("API key", "AccountKey" + "=" + a(86) + "=="),
        "azure bus": ("API key", "SharedAccess" + "Key=" + a(43) + "="),
        "azure sas": ("API key", "?sv=2022-11-02&sp=r&si" + "g=" + a(43) + "%3D"),
        "azure client": ("API key", a(3) + "8Q" + "~" + a(34)),
        "stripe": ("API key", "sk" + "_live_" + a(24)),
        "stripe webhook": ("API key", "wh" + "sec_" + a(32)),
        "sendgrid": ("API key", "S" + "G." + a(22) + "." + a(43)),
        "mailgun": ("API key", "ke" + "y-" + h(32)),
        "mailchimp": ("API key", h(32) + "-us" + "12"),
        "twilio": ("API key", "S" + "K" + h(32)),
        "shopify": ("API key", "shp" + "at_" + h(32)),
        "linear": ("API key", "lin" + "_api_" + a(40)),
        "notion": ("API key", "nt" + "n_" + a(46)),
        "figma": ("API key", "fig" + "d_" + a(40)),
        "supabase": ("API key", "sb" + "p_" + h(40)),
        "jwt": ("token", "ey" + "J" + a(40) + ".ey" + "J" + a(60) + "." + a(43)),
        "long jwt": ("token", "ey" + "J" + a(40) + ".ey" + "J" + a(9_000) + "." + a(2_000)),
        "age": ("private key", "AGE-SECRET" + "-KEY-1" + made(58, UPPER)),
        "pem": ("private key", _pem("RSA ", 26)),
        "long pem": ("private key", _pem("", 400)),
        "openssh": ("private key", _pem("OPENSSH ", 40)),
        "aws session": ("token", "IQo" + "Jb3JpZ2lu" + a(400)),
    }


def _pem(kind: str, lines: int) -> str:
    frame = "-" * 5 + "{} " + kind + "PRIVATE KEY" + "-" * 5
    return "\n".join([frame.format("BEGIN"), *(made(64) for _ in range(lines)), frame.format("END")])


SHAPES = _shapes()
"""Name -> (kind, secret)."""
_B64 = "YWRhOmh1bnRlcjIyLWxvdmVsYWNl"
"""ada and a password, as Basic authorization writes them."""
CONTEXTS: dict[str, tuple[str, str]] = {
    "env token": ("MY_SERVICE_TOK" + "EN={}", made(20)),
    "env key": ("export ACME_API_K" + "EY={}", made(24)),
    "yaml token": ("  tok" + "en: {}\n", made(20)),
    "pgpassword": ("PGPASS" + "WORD={} psql -h db", "hunter2-lovelace"),
    "password with signs": ("DB_PASS" + "WORD='{}'", "p$ss@w/rd9"),
    "password with signs, bare": ("db_pass" + "word: {}\n", "p$ss@w/rd9"),
    "json password": ('{{"user": "ada", "pass' + 'word": "{}"}}', "correct$horse/9"),
    "escaped json password": ('{{\\"pass' + 'word\\": \\"{}\\"}}', "correct$horse/9"),
    "twice escaped": ('{{\\\\\\"pass' + 'word\\\\\\": \\\\\\"{}\\\\\\"}}', "correct$horse/9"),
    "flag": ("tool --pass" + "word {} --verbose", "hunter22x"),
    "flag with sign": ("tool --api-" + "key={}", made(20)),
    "curl": ("curl -s -u ada:{} https://example.org/x", "hunter22x"),
    "curl header": ("curl -H 'X-API-" + "Key: {}' https://example.org", made(20)),
    "netrc": ("machine example.org login ada pass" + "word {}\n", "hunter22x"),
    "postgres": ("postgres" + "://ada:{}@db:5432/x", "hunter22"),
    "url with signs": ("postgres" + "://ada:{}@db.example.org:5432/x", "p$ss@w/rd9"),
    "redis": ("redis" + "://:{}@cache:6379/0", "hunter22"),
    "bearer": ("Authorization: Bea" + "rer {}", made(32)),
    "authorization": ("Authori" + "zation: token {}", made(32)),
    "basic": ("Authorization: Bas" + "ic {}", _B64),
    "docker auth": ('{{"auths": {{"https://index.docker.io/v1/": {{"au' + 'th": "{}"}}}}}}', _B64),
    "cookie": ("Coo" + "kie: {}\n", "session=" + made(40) + "; theme=dark"),
    "session cookie": ("PHPSESS" + "ID={}", made(26)),
    "session token": ("aws_session_tok" + 'en = "{}"', made(300)),
    "client secret": ('"client_sec' + 'ret": "{}"', "Zq8~abcdefgh"),
    "mysql": ("mysql -h db -u root -p{} shop", "hunter22x"),
    "sshpass": ("sshpass -p {} ssh ada@host", "hunter22x"),
    "openssl": ("openssl rsa -pass" + "in pass:{}", "hunter22x"),
    "shadow": ("root:{}:19000:0:99999:7:::", "$6$" + made(8) + "$" + made(86)),
    "putty": ("Private-" + "Lines: 2\n{}\nPrivate-M" + "AC: 00", made(64) + "\n" + made(40)),
    "wireguard": ("Private" + "Key = {}", made(43) + "="),
}
"""Name -> (what is around a secret, the secret)."""
WRAPS: dict[str, str] = {
    "alone": "{}",
    "in a sentence": "see {} there.",
    "after a JSON line break": "done\\n{}\\nnext",
    "after an escaped JSON line break": "done\\\\n{}\\\\nnext",
    "after three levels of escapes": "done\\\\\\\\n{}\\\\\\\\nnext",
    "after a tab": "a\\t{}",
    "after a letter as an escape": "\\u0022{}\\u0022",
    "coloured": "\x1b[32m{}\x1b[0m",
    "coloured in JSON": "\\u001b[1;31m{}\\u001b[0m",
    "coloured in octal": "\\033[32m{}\\033[0m",
    "with a lost escape": "[32m{}[0m",
    "in a URL": "x?u=%22{}%22",
    "in HTML": "&quot;{}&quot;",
    "after a hidden character": "a \u200b{}\u200b b",
    "quoted": '{{"x": "{}"}}',
}
"""What a secret of a known shape may stand in."""
HARMLESS = (
    "3f786850e387550fdab836ed7e6dc881de23001b is a commit",
    "sha256 b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    "the password is asked for; api_key = your_key_here; token: None",
    "import numpy@1.2; user@localhost; a @ b; foo@bar",
    "risk-averse task-oriented desk-organiser-of-long-names-and-words",
    "sk-learn-pipeline-with-many-long-words in a sentence",
    "/homes/x /usr/home2 http://example.com/home/index.html",
    "run r-1234567890abcdef m000001-1f2e3d4c5b6a",
    "def login(password: str, token: Optional[str] = None) -> None:",
    "password = os.environ['DB_PASSWORD']; api_key=settings.api_key; token = get_token(user)",
    'api_key: "${API_KEY}"; token: ${{ secrets.GITHUB_TOKEN }}; PASSWORD=$PASSWORD',
    "usage: tool [--password PASSWORD] [--token TOKEN] [--api-key <key>]",
    "max_tokens: 4096, prompt_tokens=123456789, tokenizer: sentencepiece-model-v2, tokens: 12345678",
    '"properties": {"password": {"type": "string"}, "api_key": {"description": "The API key to use"}}',
    "http://localhost:8080/path?email=x and https://example.org:443/a/b",
    "550e8400-e29b-41d4-a716-446655440000 and toolu_01A9xYzQ7bCdEfGhIjKlMnOp",
    "primary_key: user_id, cache_key = model.cache_key, key: value, keys: abc12345defg",
    "the secret: never give up; authentication: required; author: Ada Lovelace 1843",
    "basic authentication and bearer authentication are described below",
    "C:\\new\\token\\table \\n\\t\\u0041 100% &amp; more",
    "-----BEGIN PUBLIC KEY----- and then -----BEGIN PRIVATE KEY----- are the first lines of such files",
    "integrity sha512-" + "Ab3" * 28 + "==",
    "https://github.com/org/repo/blob/main/some/long/path/ToFile123/Component42.test.tsx",
    "getElementsByClassNameAndAttribute2 HTTPSConnectionPool443 base64EncodeString32",
)
