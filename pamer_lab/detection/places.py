"""Secrets that a program's flag, a header, a tag, a query or the parts of a URL give away: one row each.

`context` judges what they find. Invariant: every repetition is bounded or possessive, so that time is linear in the text.
"""

import re

from pamer_lab.detection.shapes import Kind

_TELLING = (
    r"[\w.\-/# ]{0,40}?(?:passw(?:or)?d|passphrase|pwd|secret|token|(?:api|access|private|subscription|functions)[_\- ]?key)[0-9]{0,2}"
)
_SESSION = r"(?:[\w.\-]{0,40}?(?:session|auth|jwt|csrf|xsrf)[_\-]?(?:id|token|key)?|[\w.\-]{0,20}sid)"
"""Names of cookies that identify a user or session."""
_PAIR = r",\s{0,40}[\"']\w{1,40}[\"']\s{0,3}:\s{0,3}(?:[\"'][^\"'\n]{0,100}[\"']|\w{1,20})"
"""Another member of an object."""
_CAPITALS = r"[A-Z0-9_]{0,40}(?:PASSWORD|PASSWD|PASS|SECRET|TOKEN|KEY|PWD)"
"""Names of secrets whose value does not follow an assignment sign."""
_PROGRAMS = (
    (
        "curl,wget,http,https,xh",
        r"(?:-[A-Za-z]{0,8}[uUa]|--user|--proxy-user|--auth)[ =]?[\"']?[^\s:\"'=]{1,100}:(?P<found>[^\s\"']{3,200})",
    ),
    ("mysql,mysqldump,mysqladmin,mariadb", r"-p(?P<found>[^\s\"'\-][^\s\"']{3,200}|(?<=-p)[\"'][^\"'\n]{4,200})"),
    ("sshpass,docker login,redis-cli,podman login,7z,unzip,zip", r"-(?:p|a|P)\s?[\"']?(?P<found>[^\s\"'\-][^\s\"']{4,200})"),
    (
        "az login,ldapsearch,ldapmodify,ldapadd,openssl,smbclient,net use,mongo,mongosh,mongodump,mongorestore,psexec,winexe",
        r"(?:-[pwkP]|/user:\S{1,60})\s[\"']?(?P<found>(?=[^\s]{0,60}[0-9])[^\s\"'\-][^\s\"']{5,200})",
    ),
    ("plink,pscp,psftp,putty", r"-pw\s[\"']?(?P<found>[^\s\"']{4,200})"),
    ("nmcli", r"(?:password|\S{0,40}psk)\s[\"']?(?P<found>[^\s\"']{8,200})"),
    ("smbclient,rpcclient,mount.cifs,smbmap", r"-U\s?[\"']?[^\s%\"']{1,60}%(?P<found>[^\s\"']{4,200})"),
    ("htpasswd", r"-[a-zA-Z0-9]{0,6}b[a-zA-Z0-9]{0,6}\s\S{1,200}\s\S{1,60}\s[\"']?(?P<found>[^\s\"']{4,200})"),
    ("sqlplus,sqlcl,expdp,impdp", r"[\"']?\w{1,40}/(?P<found>[^\s@/\"']{4,100})@"),
    ("crackmapexec,netexec,nxc,evil-winrm,hydra,medusa,twine,rdesktop", r"-p\s[\"']?(?P<found>[^\s\"'\-][^\s\"']{4,200})"),
    ("xfreerdp", r"/p:[\"']?(?P<found>[^\s\"']{4,200})"),
    (
        "aws,npm,yarn,pnpm,poetry",
        r"(?:set|config)\s(?:[^\s\"']{0,100}\s)?[\"']?[^\s\"'=]{0,100}(?i:key|token|password|secret)[^\s\"'=]{0,60}[\"']?\s[\"']?(?P<mixed>[^\s\"']{10,400})",
    ),
    ("poetry", r"http-basic\.\S{1,60}\s\S{1,60}\s[\"']?(?P<found>[^\s\"']{4,200})"),
    ("vault login,cargo login", r"(?P<mixed>[A-Za-z0-9._\-]{12,200}+)(?=[\s\"'`\\]|$)"),
    ("gh secret set", r"(?:-b|--body)[ =][\"']?(?P<found>[^\s\"']{4,400})"),
    ("netlify", r"--auth[ =][\"']?(?P<mixed>[^\s\"']{10,200})"),
    ("wpa_passphrase", r"[^\s]{1,60}\s[\"']?(?P<mixed>[^\s\"']{8,63})"),
    ("net user", r"(?<=user )[^\s/]{1,60}\s[\"']?(?P<found>[^\s\"'/*]{6,100})"),
)
"""Programs, and the flags that pass them a password."""
_PLACES: tuple[tuple[Kind, str, str], ...] = (
    (
        "password",
        "://",
        r"://[^\s/:@'\"<>\\]{0,200}:(?!\d{1,5}(?:[/?#]|$))(?P<found>[^\s'\"<>\\]{3,200})@(?=[\w.\-\[]{1,200}(?:[:/?#\s'\"\\,;)\]]|$))",
    ),
    ("token", "bearer", r"(?i:\bbearer)(?:\s|\+|:|=){1,3}[\"']?(?P<found>(?=[A-Za-z._~+/\-]{0,200}[0-9])[A-Za-z0-9._~+/\-]{16,}+=*)"),
    ("password", "basic", r"(?i:\bbasic)\s{1,3}(?P<encoded>[A-Za-z0-9+/_\-]{8,}+={0,2})"),
    ("password", "auth", r"(?i:\"auth\"|'auth'|_auth|\bauth)\s{0,3}[:=]\s{0,3}[\"']?(?P<encoded>[A-Za-z0-9+/_\-]{8,}+={0,2})"),
    (
        "token",
        "authorization",
        r"(?i:authorization)[\"']?\s{0,3}[:=,]\s{0,3}b?[\"']?(?:[A-Za-z][A-Za-z0-9\-]{0,20}\s{1,3})?(?P<found>(?=[A-Za-z._~+/\-]{0,200}[0-9])[A-Za-z0-9._~+/:\-]{12,}+=*)",
    ),
    (
        "token",
        "key",
        r"(?i:\bx-(?:[a-z]{1,20}-){0,3}(?:api-)?(?:key|token)|\bprivate-token|\bapi-?key|\b[a-z\-]{1,30}-(?:subscription|functions|api)-key)[\"']?\s{0,3}[:=,]\s{0,3}b?[\"']?(?P<written>[A-Za-z0-9._~+/=\-]{8,}+)",
    ),
    (
        "token",
        "token",
        r"(?i:\bx-(?:[a-z]{1,20}-){0,3}token|\bprivate-token)[\"']?\s{0,3}[:=,]\s{0,3}b?[\"']?(?P<written>[A-Za-z0-9._~+/=\-]{8,}+)",
    ),
    ("token", "cookie", r"(?i:\b(?:set-)?cookie)[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<found>[A-Za-z0-9_.\-]{1,100}=(?:[^\r\n\"'\\]{8,8000}))"),
    (
        "token",
        "s",
        r"(?:PHPSESSID|JSESSIONID|ASP\.NET_SessionId|connect\.sid|sessionid|laravel_session|_gitlab_session|csrftoken|_csrf|xsrf-token|XSRF-TOKEN|remember_(?:user_)?token|session|li_at|sid)"
        r"=(?P<found>(?=[A-Za-z%._:\-]{0,60}[0-9])[A-Za-z0-9%._:~+/\-]{20,}+)",
    ),
    (
        "password",
        "login",
        r"(?i:\blogin)\s{1,20}\S{1,200}\s{1,20}(?:account\s{1,20}\S{1,200}\s{1,20})?(?i:password)\s{1,20}(?P<found>\S{3,200})",
    ),
    *(("password", program, rf"\b{program}\b[^\n]{{0,400}}?\s{flags}") for programs, flags in _PROGRAMS for program in programs.split(",")),
    ("password", "pass:", r"-pass(?:in|out)?\s{1,3}[\"']?pass:(?P<found>[^\s\"']{3,200})"),
    (
        "password",
        ":",
        r"(?:(?m:^)|(?<=[\s\"'`]))[\w.*\-]{1,100}:(?:[0-9]{2,5}|\*):[\w.*\-]{1,60}:[\w.*\-]{1,60}:(?P<found>[^\s:\"'`\\]{4,200})(?=[\"'`\\]|\s|$)",
    ),
    (
        "password",
        "<",
        r"<(?P<tag>[\w:.\-]{0,40}?(?i:passw(?:or)?d|passphrase|pwd|secret|token|api[_\-]?key|access[_\-]?key|private[_\-]?key))(?:\s[^<>]{0,200})?>"
        r"\s{0,8}(?:<!\[CDATA\[)?(?P<found>[^\s<>\]]{4,1000})(?:\]\]>)?\s{0,8}</(?P=tag)>",
    ),
    (
        "password",
        "value",
        rf"(?i:\b(?:name|key|id|type)[\"']?\s{{0,3}}[=:]\s{{0,3}}[\"']?{_TELLING}[\"']?[\s,]{{1,40}}[\"']?value[\"']?\s{{0,3}}[=:])\s{{0,3}}"
        r"[\"']?(?P<found>[^\s\"'<>,}]{4,400}+)",
    ),
    (
        "password",
        "value",
        r"(?i:\bvalue)[\"']?\s{0,3}[=:]\s{0,3}[\"']?(?P<found>[^\s\"'<>,}]{4,400}+)[\"']?[\s,]{1,40}"
        rf"(?i:[\"']?(?:name|key|id|type)[\"']?\s{{0,3}}[=:]\s{{0,3}}[\"']?{_TELLING}\b)",
    ),
    (
        "password",
        "pass",
        rf"(?i:[\"'](?:name|id|type|element|selector|label|field|placeholder)[\"']\s{{0,3}}:\s{{0,3}}[\"']{_TELLING}[^\"'\n]{{0,20}}[\"'])"
        rf"(?:{_PAIR}){{0,4}},\s{{0,40}}[\"'](?i:value|text|input|content)[\"']\s{{0,3}}:\s{{0,3}}[\"'](?P<written>[^\"'\n]{{4,400}})",
    ),
    *(
        (
            "password",
            word,
            rf"\b(?i:define|fill|type|set\w{{0,12}}|putenv|put|add|append|header|locator|get(?:_?by_?\w{{1,12}})?|query_?selector"
            rf"|find_element)"
            rf"\(\s{{0,8}}(?:By\.\w{{1,20}}, ?)?(?:\"[^\"\n]{{0,80}}?(?i:{_TELLING})[^\"\n]{{0,10}}\""
            rf"|'[^'\n]{{0,80}}?(?i:{_TELLING})[^'\n]{{0,10}}')"
            r"(?:\s{0,3},\s{0,8}|\)\.(?i:fill|type|send_?keys)\(\s{0,8})"
            r"[\"'](?P<written>[^\"'\n]{6,400})",
        )
        for word in ("pass", "token", "secret", "key")
    ),
    (
        "password",
        "pass",
        r"\"(?i:value|text|input|content)\"\s{0,3}:\s{0,3}\"(?P<written>[^\"\n]{4,400})\""
        rf"(?:{_PAIR}){{0,4}},\s{{0,40}}(?i:\"(?:name|id|element|selector|label|field|placeholder)\"\s{{0,3}}:\s{{0,3}}\"{_TELLING})",
    ),
    (
        "password",
        "pass",
        r"(?i:\b(?:typed?|enter(?:ed|ing)?|input(?:ted)?|fill(?:ed)?|typing))\s[\"'`](?P<written>[^\"'`\n]{6,200})[\"'`]\s(?i:in(?:to)?|for)\s[^.\n]{0,30}?(?i:password|passphrase)",
    ),
    (
        "password",
        "pass",
        r"(?i:\b(?:type|enter|input|fill)(?:ed)?)\s(?:the\s|in\s)?[\"'`]?(?i:password|passphrase)[\"'`]?\s(?i:field\s|box\s)?(?:with|as|=|:)\s[\"'`](?P<written>[^\"'`\n]{6,200})",
    ),
    ("password", "password", r"(?i:\b(?:with|and|using)\s(?:the\s)?password)\s[\"'`]?(?P<mixed>[^\s\"'`]{8,200})"),
    *(
        ("token", word, rf"[(\[]\s{{0,4}}b?[\"'](?i:{_TELLING})[\"'],\s{{0,8}}b?[\"'](?P<mixed>[^\"'\n]{{10,400}})")
        for word in ("pass", "token", "secret", "key")
    ),
    (
        "password",
        "password",
        rf"(?:(?<![\w:]):|\b(?i:setq|define|def)\s{{1,4}})(?i:{_TELLING})\s{{1,4}}\"(?P<written>[^\"\n]{{6,400}})",
    ),
    ("password", "for", r"(?i:\bpassword\s{1,3}for\s{1,3}\S{1,100}\s{0,3}=\s{0,3}(?:password\s{0,3}\(\s{0,3})?)'(?P<found>[^'\n]{4,200})"),
    (
        "password",
        " ",
        r"(?:(?m:^)\s{0,8}|(?<=[\"'`]))(?:enable|username\s\S{1,60}(?:\sprivilege\s[0-9]{1,2})?)\s(?:password|secret)\s(?:[0-9]\s)?(?P<found>\S{6,200})",
    ),
    ("password", "community", r"snmp-server\scommunity\s(?P<found>\S{4,100})"),
    ("password", "identify", r"(?i:nickserv)\s{0,2}:?\s{0,2}(?i:identify)\s(?P<found>\S{4,100})"),
    (
        "token",
        "<<<",
        r"(?:\bsudo\s[^\n<]{0,60}-S|--with-token|--password-stdin|\bsecret\s(?:put|set)\s|\bsu\s|chpasswd)[^\n<]{0,100}<<<\s{0,2}[\"']?(?P<found>[^\s\"']{4,400})",
    ),
    (
        "token",
        "cookies",
        r"(?i:\bcookies)[\"']?\s{0,3}[=:]\s{0,3}\{\s{0,40}[\"'][\w.\-]{1,60}[\"']\s{0,3}:\s{0,3}[\"'](?P<mixed>[^\"'\n]{16,4000})",
    ),
    ("token", "jwt.", r"\bjwt\.(?:sign|encode|verify|decode)\([^\n\"']{1,80},\s{0,4}b?[\"'](?P<written>[^\"'\n]{8,400})"),
    ("token", "hmac", r"\b(?:hmac\.new\(\s{0,4}|createHmac\([\"'][\w\-]{1,20}[\"'],\s{0,4})b?[\"'](?P<written>[^\"'\n]{8,400})"),
    ("password", "credential", r"\b\w{0,40}Credentials?\(\s{0,8}[\"'][^\"'\n]{1,80}[\"'],\s{0,8}[\"'](?P<written>[^\"'\n]{6,200})"),
    ("password", ".login(", r"\.login\(\s{0,8}[\"'][^\"'\n]{1,80}[\"'],\s{0,8}[\"'](?P<written>[^\"'\n]{6,200})"),
    ("token", ".login(", r"\.login\(\s{0,8}[\"'](?P<mixed>[^\"'\n]{16,200})[\"']\s{0,3}\)"),
    (
        "token",
        "key",
        r"\b(?:define|putenv|setenv|setItem|setdefault|set)\(\s{0,8}[\"'][\w.\-]{0,40}(?i:key|salt|token|secret)[\"']\s{0,3},\s{0,8}[\"'](?P<mixed>[^\"'\n]{16,400})",
    ),
    (
        "token",
        "value",
        rf"(?i:[\"']?name[\"']?\s{{0,3}}[:=]\s{{0,3}}[\"']?{_SESSION}[\"']?,\s{{0,40}}[\"']?value[\"']?\s{{0,3}}[:=])\s{{0,3}}[\"']?(?P<mixed>[^\s\"'<>,}}]{{16,4000}}+)",
    ),
    ("token", "\t", rf"\t(?i:{_SESSION}|{_TELLING})\t(?P<mixed>[^\s]{{12,4000}}+)(?m:$)"),
    ("password", "$", rf"(?:printenv\s|echo\s[\"']?\$\{{?){_CAPITALS}\}}?[\"']?[^\S\n]{{0,4}}\n(?P<mixed>[^\s]{{8,400}}+)(?m:$)"),
    (
        "password",
        "</",
        rf">\s{{0,8}}(?i:{_TELLING}):?\s{{0,8}}</\w{{1,12}}>\s{{0,20}}<\w{{1,12}}[^<>]{{0,80}}>\s{{0,8}}(?:<code>)?(?P<mixed>[^\s<>]{{8,400}})<",
    ),
    ("password", "[", r"(?i:\b(?:password|passphrase|token|secret|api[ _]key))\s\[(?P<mixed>[^\s\[\]]{8,400}+)\]"),
    (
        "password",
        "auth",
        r"\b(?:auth\s?=\s?|(?:HTTP)?BasicAuth|basic_auth|\.login)\(\s{0,8}[\"'][^\"'\n]{1,80}[\"'],\s{0,8}[\"'](?P<written>[^\"'\n]{6,200})",
    ),
    ("password", "assword", r"(?i:\b(?:store|key)password)\s{1,3}[\"'](?P<written>[^\"'\n]{4,200})"),
    ("password", "thin:", r"\bthin:\w{1,40}/(?P<found>[^\s@/\"']{4,100})@"),
    ("password", "chpasswd", r"\becho\s(?:-e\s)?[\"']?[\w.\-]{1,40}:(?P<found>[^\s\"'|]{4,200})[\"']?\s{0,3}\|[^\n]{0,40}chpasswd"),
    (
        "password",
        "pass ",
        r"\bUSER\s[^\s\\]{1,80}(?:\s{1,4}|(?:\\[rn]){1,2})(?:[0-9]{3}[ \-][^\n]{0,200}\n){0,3}PASS\s(?P<found>[^\s\\\"']{4,200})",
    ),
    (
        "password",
        " login ",
        r"(?:(?m:^)|(?<=[\"'\s]))[A-Za-z]{0,4}[0-9]{1,6}\sLOGIN\s[\"']?[^\s\"']{1,100}[\"']?\s[\"']?(?P<found>[^\s\"']{4,200})",
    ),
    ("password", "auth plain", r"(?i:\bauth plain)\s{1,2}(?P<found>[A-Za-z0-9+/]{8,}+={0,2})"),
    ("password", "334 ugfzc3dvcmq6", r"334 UGFzc3dvcmQ6\s{1,4}(?P<found>[A-Za-z0-9+/]{4,}+={0,2})"),
    ("password", "send", r"(?i:password|passphrase)[^\n]{0,20}\n[^\n]{0,40}?\bsend(?:line)?[ (]{1,3}[\"'](?P<written>[^\"'\\\n]{4,100})"),
    ("token", "digest", r"(?i:\bdigest\s)[^\n]{0,300}?\bresponse=\\?\"?(?P<found>[0-9a-f]{32,128}+)"),
    (
        "token",
        "-oauth",
        r"[\"'](?:github|gitlab|bitbucket)-(?:oauth|token)[\"']:\s{0,8}\{\s{0,40}[\"'][\w.\-]{1,80}[\"']:\s{0,4}[\"'](?P<found>[^\"'\n]{8,400})",
    ),
    ("token", "sonar.login", r"sonar\.login[=:]\s?(?P<found>[0-9a-f]{40})"),
    ("password", "random_password", r"random_password[\s\S]{0,600}?\"result\":\s{0,4}\"(?P<found>[^\"\n]{4,400})"),
    (
        "password",
        "name=",
        rf"(?i:\bname=\"{_TELLING}\")\s{{0,3}}\r?\n(?:[\w\-]{{1,40}}: [^\r\n]{{1,100}}\r?\n){{0,4}}\r?\n(?P<found>[^\s]{{4,1000}})",
    ),
    ("password", "identified", r"(?i:\bidentified\s{1,3}(?:with\s{1,3}\S{1,60}\s{1,3})?by)\s{1,3}[\"'](?P<found>[^\"'\n]{4,200})"),
    ("password", "password", r"(?i:\b(?:with|encrypted|set|role|user)\b[^\n;]{0,80}?\spassword)\s{1,3}'(?P<found>[^'\n]{4,200})"),
    (
        "password",
        "pass",
        r"(?:(?m:^)\s{0,8}|(?<=[\"'`])|(?i:config\sset\s))(?:requirepass|masterauth|primaryauth)\s{1,8}[\"']?(?P<found>[^\s\"']{4,200})",
    ),
    (
        "password",
        "auth",
        r"(?m:^(?:[\w.\-]{1,60}(?::\d{1,5})?> ?)?AUTH)\s(?:\S{1,60}\s)?(?P<found>(?=[^\s]{0,100}[0-9])[^\s\"']{8,200})(?m:$)",
    ),
    ("password", "env ", rf"(?:(?m:^)\s{{0,8}}|(?<=[\"'`]))ENV\s{{1,8}}{_CAPITALS}\s{{1,8}}[\"']?(?P<found>[^\s\"'=]{{4,400}})"),
    (
        "password",
        "set",
        rf"(?i:\bset(?:x|env)?)\s{{1,8}}(?:/M\s|-[a-zA-Z]{{1,4}}\s)?{_CAPITALS}\s{{1,8}}[\"']?(?P<found>(?=\S{{0,60}}[0-9])[^\s\"'=]{{4,400}})",
    ),
    ("token", "_", r"_(?:PAT|SK)[\"']?\s{0,3}[=:]\s{0,3}[\"']?(?P<found>(?=[A-Za-z_\-]{0,60}[0-9])[A-Za-z0-9_\-.]{12,400}+)"),
    ("token", "://", r"://(?P<found>(?=[A-Za-z_\-]{0,40}[0-9])(?=[0-9_\-]{0,40}[A-Za-z])[A-Za-z0-9_\-]{16,400}+)@"),
    (
        "password",
        "@",
        r"(?<=\w):(?P<found>[^\s:@/\"'<>]{6,100})@(?:(?:tcp|unix)\(|(?:[\w.\-]{1,100}:[0-9]{2,5}|[0-9]{1,3}(?:\.[0-9]{1,3}){3})(?:[/\s?\"']|$))",
    ),
    ("token", "key=", r"[?&]key=(?P<found>(?=[A-Za-z_\-]{0,60}[0-9])[A-Za-z0-9_\-.]{16,400}+)"),
    ("token", "signature=", r"(?i:\bx-(?:amz|goog|oss|cos|obs)-signature|[?&](?:q-)?signature)=(?P<found>[A-Za-z0-9%+/_\-]{24,1000}+)"),
    (
        "password",
        "|",
        r"\b(?:echo|printf)\s(?:-n\s|'%s(?:\\\\n)?'\s)?[\"']?"
        r"(?P<found>[^\s\"'|$][^\"'|\n]{3,200}?)[\"']?\s{0,3}\|\s{0,3}(?:sudo\s[^\n|]{0,40}-S|[^\n|]{0,200}(?:--password-stdin|--with-token|\bsecret\s(?:put|set)\b))",
    ),
)
PLACES: tuple[tuple[Kind, str, re.Pattern[str]], ...] = tuple((kind, keyword, re.compile(pattern)) for kind, keyword, pattern in _PLACES)
