"""Secrets that were never anybody's, put together when the tests run: no scanner finds a key in this repository."""

import base64
import json
import quopri
import random
import re
import string
from collections.abc import Callable
from urllib.parse import quote

_RANDOM = random.Random(19)
ALNUM, HEX, UPPER = string.ascii_letters + string.digits, "0123456789abcdef", string.ascii_uppercase + string.digits


def made(length: int, letters: str = ALNUM) -> str:
    """Random letters with a digit among the first, as nearly every key has."""
    return _RANDOM.choice(letters) + "7" + "".join(_RANDOM.choice(letters) for _ in range(length - 2))


def _shapes() -> dict[str, tuple[str, str]]:
    a = made

    def h(length: int) -> str:
        return made(length, HEX)

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
CONTEXTS |= {
    name: (around, "hunter22-Lovelace9")
    for name, around in {
        "XML": "<Pass" + "word>{}</Pass" + "word>",
        "XML attributes": '<add key="DbPass' + 'word" value="{}"/>',
        "form field": '<input name="pass' + 'word" value="{}">',
        "name and value": '[{{"name": "x-api-' + 'key", "value": "{}"}}]',
        "value and name": '{{"value": "{}", "name": "DB_PASS' + 'WORD"}}',
        "yaml list": "- name: DB_PASS" + "WORD\n  value: {}\n",
        "yaml block": "pass" + "word: |\n  {}\n",
        "multipart": 'name="pass' + 'word"\r\n\r\n{}\r\n--b',
        "sql": "CREATE USER ada IDENTIFIED BY '{}'",
        "sql role": "ALTER USER ada WITH PASS" + "WORD '{}'",
        "redis file": "requirepass {}\n",
        "dockerfile": "ENV DB_PASS" + "WORD {}\n",
        "setx": "setx DB_PASS" + 'WORD "{}"',
        "said": "The pass" + "word is {} for now",
        "with a blank": "api k" + "ey: {}",
        "user of a URL": "https://{}@github.com/x",
        "go": "root:{}@tcp(db:3306)/shop",
        "query": "https://example.org/v1?key={}&x=1",
        "piped": "echo '{}' | sudo -S ls",
        "stdin": "echo {} | docker login -u ada --password-stdin",
        "httpie": "http -a ada:{} https://example.org",
        "az": "az login -u ada -p {}",
        "property": "db.pa" + "ss={}",
        "rails": "secret_key_b" + "ase: {}",
        "personal token": "GITHUB_PA" + "T={}",
        "literal": "kubectl create secret generic x --from-literal=pass" + "word={}",
        "printed in columns": "Name             Value\nDB_PASS" + "WORD      {}\n",
        "fish": "set -gx DB_PASS" + "WORD {}",
        "printenv": "$ printenv DB_PASS" + "WORD\n{}\n",
        "kubernetes, any name": "kind: Secret\ndata:\n  conn: {}\ntype: Opaque\n",
        "kubernetes in JSON": '{{"kind": "Secret", "data": {{"conn": "{}"}}}}',
        "kubectl describe": "Environment:\n  API_K" + "EY:         {}\n",
        "docker command": '"Cmd": [\n  "--requirep' + 'ass",\n  "{}"\n ]',
        "curl, flags joined": "curl -sSu ada:{} https://example.org",
        "digest": 'Authorization: Digest username="ada", response="' + made(20, HEX) + '0123456789ab" pass' + "word={}",
        "terraform output": "db_pass" + 'word        = "{}"\n',
        "terraform heredoc": "pass" + "word = <<EOT\n{}\nEOT\n",
        "random_password": '"type": "random_pass' + 'word", "attributes": {{"length": 18, "result": "{}"}}',
        "a name with a version": '"ses_smtp_pass' + 'word_v4": "{}"',
        "HAR cookie": '{{"name": "session' + 'id", "value": "{}"}}',
        "HAR header": '{{"name": "Ocp-Apim-Subscription-K' + 'ey", "value": "{}"}}',
        "headers as bytes": "(b'x-api-k" + "ey', b'{}')",
        "cookie file": ".example.org\tTRUE\t/\tFALSE\t0\tauth_tok" + "en\t{}\n",
        "rust": "api_k" + 'ey: Some("{}"),',
        "typescript": "const apiK" + "ey: string = '{}';",
        "var_dump": '["pass' + 'word"]=>\n  string(18) "{}"',
        "define": "define('DB_PASS" + "WORD', '{}');",
        "table of a database": "| id | user | pass" + "word |\n+----+------+----------+\n|  1 | ada  | {} |\n",
        "psql": " user | pass" + "word \n------+----------\n ada  | {}\n(1 row)",
        "psql, expanded": "-[ RECORD 1 ]\nuser     | ada\npass" + "word | {}\n",
        "CSV": "user,pass" + "word,mail\nada,{},x\n",
        "Markdown table": "| Name | Pass" + "word |\n|---|---|\n| ada | `{}` |\n",
        "insert": "INSERT INTO users (name, pass" + "word) VALUES ('ada', '{}');",
        "Markdown": "**Pass" + "word:** `{}`",
        "dash": "* Tok" + "en \u2014 `{}`",
        "arrow": "pass" + "word -> {}",
        "HTML cells": "<td>Pass" + "word</td><td>{}</td>",
        "in brackets": "Using pass" + "word [{}]",
        "prompt": "[sudo] pass" + "word for ada: {}",
        "aws configure": "AWS Secret Access K" + "ey [None]: {}",
        "parameter store": '{{"Name": "/app/db/pass' + 'word", "Type": "SecureString", "Value": "{}"}}',
        "typed by a browser": '{{"element": "Pass' + 'word field", "ref": "e12", "text": "{}"}}',
        "playwright": "page.fill('#pass" + "word', '{}')",
        "playwright locator": "page.locator('input[name=pass" + "word]').fill('{}')",
        "requests": "requests.get(url, auth=('ada', '{}'))",
        "gradle": "store" + "Password '{}'",
        "keytool": "keytool -storep" + "ass {} -genkey",
        "oracle": "sqlplus scott/{}@db:1521/x",
        "jdbc thin": "jdbc:oracle:thin:scott/{}@//db:1521/x",
        "plink": "plink -pw {} host",
        "samba": "smbclient //host/share -U ada%{}",
        "htpasswd": "htpasswd -b .htpasswd ada {}",
        "chpasswd": "echo 'root:{}' | chpasswd",
        "windows user": "net user ada {} /add",
        "wifi": 'ssid="x"\n ps' + 'k="{}"',
        "nmcli": "nmcli dev wifi connect x pass" + "word {}",
        "preshared": "Preshared" + "Key = {}",
        "unseal": "Unseal K" + "ey 1: {}",
        "ftp": "USER ada\r\n331 go on\r\nPASS {}\r\n",
        "imap": "a1 LOGIN ada {}\r\n",
        "expect": 'expect "pass' + 'word:"\nsend "{}\\r"',
        "SSHPASS": "SSHPA" + "SS={} sshpass -e ssh host",
        "rclone": "[s3]\npa" + "ss = {}\n",
        "composer": '"github-oauth": {{"github.com": "{}"}}',
        "redis command": "CONFIG SET requirepass {}",
        "JWK": '{{"kty": "oct", "k": "{}' + made(12) + '"}}',
        "German": "Pass" + "wort: {}",
        "Chinese": "\u5bc6\u7801\uff1a{}",
        "yaml tag": "pass" + "word: !!str {}",
        "yaml anchor": "pass" + "word: &main {}",
        "three quotes": "pass" + "word = '''{}'''",
        "a setter": "client.setPass" + 'word("{}")',
        "a builder": ".pass" + 'word("{}").build()',
        "a list of one": '"pass' + 'word": ["{}"]',
        "terraform outputs": '"db_pass' + 'word": {{"value": "{}", "type": "string"}}',
        "a pair": '("x-api-' + 'key", "{}")',
        "a keyword argument of Lisp": ":pass" + 'word "{}"',
        "a test's variable": 'monkeypatch.setenv("API_TOK' + 'EN", "{}")',
        "csh": "setenv API_TOK" + "EN {}",
        "CDATA": "<pass" + "word><![CDATA[{}]]></pass" + "word>",
        "a here string": "sudo -S ls <<< '{}'",
        "a piped token": "printf '{}' | gh secret set TOK" + "EN",
        "aws configure set": "aws configure set aws_secret_access_k" + "ey {}",
        "npm config": "npm config set //registry.example.org/:_authTok" + "en {}",
        "vault login": "vault login {}",
        "impacket": "secretsdump.py 'corp/ada:{}@10.0.0.1'",
        "evil-winrm": "evil-winrm -i 10.0.0.1 -u ada -p '{}'",
        "set password for": "SET PASSWORD FOR 'ada'@'%' = '{}';",
        "smtp": 'smtp.login("ada@example.org", "{}")',
        "credential object": 'new NetworkCredential("ada", "{}")',
        "jwt": "jwt.sign(payload, '{}')",
        "hmac": "hmac.new(b'{}', body, 'sha256')",
        "router": "username ada pass" + "word 0 {}",
        "a selector with quotes": "page.fill('input[type=\"pass" + "word\"]', '{}')",
        "cypress": "cy.get('#pass" + "word').type('{}')",
        "typed text first": '{{"text": "{}", "index": 3, "label": "Pass' + 'word"}}',
        "told by an agent": "Typed '{}' into the pass" + "word field",
        "told the other way": 'fill "Pass' + 'word" with "{}"',
    }.items()
}
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
    "a link of a terminal": "\x1b]8;;https://example.org\x1b\\{}\x1b]8;;\x1b\\",
    "a title of a terminal": "\x1b]0;{}\x07",
    "a title in C1 codes": "a\x9d0;t\x9c{}",
    "emphasised": "say _{0}_ or **{0}**",
    "in a line before another": "the first line of a longer text\n{}\nand the last",
    "in a coloured word": "a\x1b[1;32m{}\x1b[0m",
    "after a sign": "my-{0}-old token_{0}_old",
    "userinfo": "https://{}@github.com/x",
}
"""What a secret of a known shape may stand in."""
PRECEDED = frozenset({"mailgun"})
"""Shapes that also end other names (`cache-key-` and a hash), so that a name in front hides them."""


def _nested(text: str, levels: int) -> str:
    for _ in range(levels):
        text = json.dumps({"a": text})
    return text


HIDINGS: dict[str, Callable[[str], str]] = {
    "JSON in JSON, five levels": lambda secret: _nested(f"x\n{secret}\ny", 5),
    "JSON in JSON, seven levels": lambda secret: _nested(f"x\n{secret}\ny", 7),
    "URL-encoded twice": lambda secret: "q?x=" + quote(quote(f"k: {secret}", safe=""), safe=""),
    "every letter URL-encoded": lambda secret: "".join(f"%{ord(char):02x}" for char in secret),
    "every letter a JSON escape": lambda secret: "".join(f"\\u{ord(char):04x}" for char in secret),
    "every letter a JavaScript escape": lambda secret: "".join(f"\\u{{{ord(char):x}}}" for char in secret),
    "every letter a long escape": lambda secret: "".join(f"\\U{ord(char):08x}" for char in secret),
    "every letter in octal": lambda secret: "".join(f"\\{ord(char):03o}" for char in secret),
    "every letter an entity": lambda secret: "".join(f"&#{ord(char)};" for char in secret),
    "every letter a hexadecimal entity": lambda secret: "".join(f"&#x{ord(char):x};" for char in secret),
    "UTF-16 read as bytes": "\x00".join,
    "full-width letters": lambda secret: "".join(chr(ord(char) + 0xFEE0) for char in secret),
    "overstruck": lambda secret: "".join(f"{char}\x08{char}" for char in secret),
    "a title inside": lambda secret: secret[:9] + "\x1b]0;t\x07" + secret[9:],
    "a charset inside": lambda secret: secret[:9] + "\x1b(B" + secret[9:],
    "a saved cursor inside": lambda secret: secret[:9] + "\x1b7" + secret[9:],
    "a device's string inside": lambda secret: secret[:9] + "\x1bPabc\x1b\\" + secret[9:],
    "wrapped at 80 columns": lambda secret: _columns("w " * 20 + secret, 80),
    "wrapped at 40 columns, in a frame": lambda secret: "".join(f"\u2502 {line} \u2502\n" for line in _columns(secret, 40).split("\n")),
    "a shell line that goes on": lambda secret: secret[: len(secret) // 2] + "\\\n" + secret[len(secret) // 2 :],
    "the same in JSON": lambda secret: secret[: len(secret) // 2] + "\\\\\\n" + secret[len(secret) // 2 :],
    "quoted-printable": lambda secret: quopri.encodestring(("text " * 12 + secret).encode()).decode(),
    "base64": lambda secret: base64.b64encode(f"x {secret}\n".encode()).decode(),
    "base64 for URLs": lambda secret: base64.urlsafe_b64encode(json.dumps({"k": secret}).encode()).decode().rstrip("="),
    "base64 in lines": lambda secret: base64.encodebytes(f"key {secret}\n".encode()).decode(),
    "base64 in base64": lambda secret: base64.b64encode(base64.b64encode(f"key {secret}\n".encode())).decode(),
    "base64 of a text that is not English": lambda secret: base64.b64encode(f"Schl\u00fcssel f\u00fcr dich: {secret}".encode()).decode(),
    "base32": lambda secret: base64.b32encode(f"key {secret}".encode()).decode(),
    "hexadecimal": lambda secret: secret.encode().hex(),
    "numbers of its letters": lambda secret: json.dumps([*f"k {secret}".encode()]),
    "xxd": lambda secret: _dumped(secret, "{:08x}: {:39}  {}\n", 2),
    "hexdump": lambda secret: _dumped(secret, "{:08x}  {:48} |{}|\n", 1),
    "coloured word by word, in JSON in JSON": lambda secret: _nested(f"\x1b[34mK\x1b[0m\x1b[1m:\x1b[0m \x1b[38;5;186m{secret}\x1b[0m", 2),
    "escaped for Markdown": lambda secret: secret.replace("_", "\\_").replace("-", "\\-"),
    "escaped for a pattern": re.escape,
    "marked in a page": lambda secret: f"<em>{secret[:9]}</em><wbr>{secret[9:]}",
    "with a combining mark": lambda secret: secret[:9] + "\u0336" + secret[9:],
    "in mathematical letters": lambda secret: "".join(MATHEMATICAL.get(char, char) for char in secret),
    "put together in code": lambda secret: f'key = "{secret[:9]}" +\n      "{secret[9:]}"',
    "put together by neighbours": lambda secret: f'"{secret[:9]}"\n    "{secret[9:]}"',
    "octal without zeros": lambda secret: "".join(f"\\{ord(char):o}" for char in secret),
    "base64 between lines": lambda secret: _between(base64.b64encode(f"k {secret}".encode()).decode()),
    "base64 in lines between lines": lambda secret: _between(base64.encodebytes(f"the key is {secret}\n".encode()).decode()),
    "base64 in indented lines": lambda secret: _between(base64.encodebytes(f"key {secret}".encode()).decode().replace("\n", "\n    ")),
    "base64 of UTF-16": lambda secret: _between("powershell -enc " + base64.b64encode(f"$k='{secret}'".encode("utf-16-le")).decode()),
    "hexadecimal between lines": lambda secret: _between(secret.encode().hex().upper()),
    "hexadecimal of a database": lambda secret: _between("\\x" + secret.encode().hex()),
    "bytes of Node": lambda secret: f"<Buffer {secret.encode().hex(' ')}>",
    "bytes of C": lambda secret: "{ " + ", ".join(f"0x{byte:02x}" for byte in secret.encode()) + " }",
    "numbers in lines": lambda secret: json.dumps([*f"k {secret}".encode()], indent=4),
    "od": lambda secret: "".join(f"{at:07o} {secret.encode()[at : at + 16].hex(' ')}\n" for at in range(0, len(secret), 16)),
    "base64 of a kubernetes file in JSON": lambda secret: json.dumps({"data": base64.b64encode(secret.encode()).decode()}),
}
"""How a secret of a known shape may be written so that nobody reads it, but a program does."""


MATHEMATICAL = {
    char: chr(start + place)
    for start, letters in ((0x1D670, string.ascii_uppercase), (0x1D68A, string.ascii_lowercase), (0x1D7F6, string.digits))
    for place, char in enumerate(letters)
}


def _between(text: str) -> str:
    return f"some words on a line before it\n{text}\nand after it"


def _columns(text: str, width: int) -> str:
    return "\n".join(text[at : at + width] for at in range(0, len(text), width))


def _dumped(text: str, line: str, group: int) -> str:
    data = text.encode()
    return "".join(line.format(at, data[at : at + 16].hex(" ", group), data[at : at + 16].decode()) for at in range(0, len(data), 16))


LINES: dict[str, str] = {
    "numbered": "{number:6}\t{line}",
    "numbered with an arrow": "{number:6}\u2192{line}",
    "added": "+{line}",
    "removed": "-{line}",
    "found by grep": "certs/id_rsa:{number}:{line}",
    "cited": "> {line}",
    "with ends shown": "{line}$",
    "a list": "  '{line}',",
    "joined": "'{line}\\n' +",
}
"""What tools put around each line of a file."""
HARMLESS = (
    "PWD=/srv/app/releases/20251117\nOLDPWD=/srv/app9/current",
    "for next-token prediction, adduser --disabled-password --gecos x, PermitRootLogin prohibit-password\n#StrictModes yes",
    "let secret = bitcoin::secp256k1::SecretKey::from_slice(&secret_key); header('api-key', auth.get_token())",
    "debug1: Server host key: ssh-ed25519 and host key: ecdsa-sha2-nistp256",
    "the user did not pass multiple values for the key\nPASS tests/test_login2.py\nPASS src/password9.test.ts",
    "| name | token | count |\n|---|---|---|\n| prompt | first one | 12 |\n| answer | last | 345678901 |",
    "id,key,value\n1,colour,blue42\n2,size,large-9000",
    "INSERT INTO settings (name, key) VALUES ('theme', 'dark-mode-2')",
    "kind: ConfigMap\ndata:\n  LOG_LEVEL: debug9\n  REGION: eu-west-1\n",
    "00000000: 4865 6c6c 6f2c 2077 6f72 6c64 2061 6761  Hello, world aga\n",
    "[12, 34, 56, 78, 90, 12, 34, 56, 78, 90, 12, 34, 56, 78, 90, 12, 34, 56]",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "function(e,t,n){var r=e.token,i=t.secretKey;return n.d(t,{k:()=>o,apiKey:()=>a}),r.key=i.password?1:0}",
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
    "restore-cache-key-9e107d9d372bb6826bd81d3542a419d6 and cache_key-9e107d9d372bb6826bd81d3542a419d6",
    "npm:react@18.2.0 python:3.11-slim@sha256:abc user:group@host image: repo/app:v1.2@sha256:0011",
    "the password is required; the key is 7; the token is invalid; api key: see the documentation",
    "<password></password> <token>string</token> <input name='password' value=''> name: password value: required",
    "ENV PYTHON_VERSION 3.12.1\nENV PATH /usr/local/bin:$PATH\nset PASSWORD first, then log in",
    "/var/lib/app/releases/current/config/environments and docs/tutorials/getting-started/index",
    "the data is\n    several_words_of_code_in_a_line\n    and_the_next_of_the_same, 'one ' + 'two ' + 'three'",
    "12 34 56 78 90 12 34 56 78 90 12 34 56 78 90 12 and 0x12, 0x34, 0x56, 0x78, 0x90, 0x12, 0x34, 0x56, 0x78, 0x90, 0x12, 0x34",
    "getpass('Enter the password: '); t('token'); key('enter'); assert is_token(\"name\") and _(\"Password\")",
    "a word that ends a line which is longer than the next one, with no key at all in either task\nsk-learn goes on here",
)
