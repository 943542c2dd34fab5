"""Keys that are recognised by their own shape: a prefix that a service gives them, or the frame around a private key.

One row per body, with all prefixes that share it. Lengths are a little below what the services write today; longer keys match too.
Invariant: a run of key characters is looked at once (possessive), or its length is bounded, so that time is linear in the text.
"""

import re
from typing import Literal, NamedTuple

Kind = Literal["private key", "API key", "token", "password", "possible key", "e-mail address", "home folder"]

_ANY = r"[A-Za-z0-9_\-]"
_DIGIT = r"(?=[A-Za-z_\-]{0,40}[0-9])"
"""Tells a key from words with hyphens."""
_LONG = _DIGIT + _ANY + r"{20,}+"
_PLAIN = r"[A-Za-z0-9]{20,}+"
_BASE64 = r"[A-Za-z0-9+/]"

# fmt: off
SHAPES: tuple[tuple[Kind, str, str], ...] = (
    # models and AI services
    ("API key", "sk-ant- sk-proj- sk-or- sk- sk_ csk-", _DIGIT + _ANY + r"{16,}+"),
    ("API key", "AIza AQ.Ab8", _ANY + r"{33,}+"),
    ("API key", "hf_ api_org_ gsk_ r8_ pplx- xai-", _PLAIN),
    ("API key", "fw_ fw- rpa_ wandb_v1_ voy- jina_ e2b_ apify_api_ tgp_v1_", _DIGIT + _PLAIN),
    ("API key", "nvapi- tvly- pcsk_ lsv2_pt_ lsv2_sk_ lsv2_ ls__ fc- ctx7sk- pa- ABSK bedrock-api-key- secret-token: llx-", _LONG),
    # clouds
    ("API key", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}"),
    ("token", "IQoJb3JpZ2lu FwoGZXIvYXdz", _BASE64 + r"{80,}+={0,2}"),
    ("API key", "LTAI AKID", r"(?=[A-Za-z]{0,20}[0-9])[A-Za-z0-9]{16,}+"),
    ("token", "ya29.", r"[A-Za-z0-9_\-.]{20,}+"),
    ("API key", "GOCSPX-", _ANY + r"{20,}+"),
    ("token", "1//0", _ANY + r"{30,}+"),
    ("API key", "dapi dkea dose", r"[a-f0-9]{32}(?:-[0-9])?"),
    ("token", "dop_v1_ doo_v1_ dor_v1_ dtn_", r"[a-f0-9]{40,}+"),
    ("API key", "key_ crsr_", r"[a-f0-9]{64}"),
    ("token", "cfut_ cfat_ cfk_", _DIGIT + r"[A-Za-z0-9_\-]{30,}+"),
    ("token", "hvs. hvb. hvr.", _ANY + r"{20,}+"),
    ("token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[A-Za-z0-9_.\-]{30,}+"),
    ("token", "pul-", r"[a-f0-9]{40}"),
    ("token", "tskey-", r"(?:auth|api|client|scim|webhook)-" + _ANY + r"{16,}+"),
    ("token", "fo1_ fm1r_ fm1a_ fm2_", r"[A-Za-z0-9+/_\-]{30,}+={0,2}"),
    ("token", "nfp_ vercel_blob_rw_ vcp_ vck_ rnd_", _DIGIT + r"[A-Za-z0-9_]{20,}+"),
    ("token", "pscale_tkn_ pscale_pw_ pscale_oauth_ AstraCS: atlasv1.", r"[A-Za-z0-9_=.:\-]{30,}+"),
    ("API key", "sbp_ sb_secret_", _DIGIT + r"[A-Za-z0-9_\-]{20,}+"),
    # code and packages
    ("token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9_]{30,}+"),
    ("token", "github_pat_", r"[A-Za-z0-9_]{40,}+"),
    ("token", "glpat- glrt- gldt- glptt- glft- glimt- glagent- gloas- glcbt- glsoat- glffct- glwt-", r"[A-Za-z0-9_\-.]{16,}+"),
    ("token", "npm_ sgp_ CCIPAT_ bkua_ CLOJARS_ rubygems_ cio", _DIGIT + r"[A-Za-z0-9_]{32,}+"),
    ("token", "pypi-AgEI pypi-", _DIGIT + _ANY + r"{50,}+"),
    ("token", "oy2", r"(?=[a-z]{0,20}[0-9])[a-z0-9]{43}"),
    ("token", "dckr_pat_ dckr_oat_", _ANY + r"{20,}+"),
    ("token", "ATATT3 ATCTT3 ATBB ATSTT3", r"[A-Za-z0-9_\-=]{20,}+"),
    ("token", "sntrys_ sntryu_", r"[A-Za-z0-9_+/=\-]{40,}+"),
    ("token", "AKCp cmVmd", r"[A-Za-z0-9]{50,}+"),
    # chat, mail, payment, work
    ("token", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs-", r"[A-Za-z0-9\-%]{10,}+"),
    ("token", "xoxe.xoxp- xoxe.xoxb-", r"[A-Za-z0-9\-]{10,}+"),
    ("token", "xapp-", r"[0-9]{1,3}-[A-Za-z0-9]{5,40}-[0-9]{5,40}-[A-Za-z0-9]{20,}+"),
    ("token", "mfa.", _ANY + r"{60,}+"),
    ("API key", "SG.", _ANY + r"{16,}+\." + _ANY + r"{16,}+"),
    ("API key", "key- pubkey-", r"[a-f0-9]{32}"),
    ("API key", "xkeysib- xsmtpsib-", r"[A-Za-z0-9\-]{40,}+"),
    ("API key", "re_", r"(?=[A-Za-z_]{0,40}[0-9])[A-Za-z0-9]{6,12}_[A-Za-z0-9]{20,}+"),
    ("API key", "SK", r"[a-f0-9]{32}"),
    ("API key", "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_ sk_org_", r"[A-Za-z0-9_]{16,}+"),
    ("API key", "whsec_", r"[A-Za-z0-9+/=]{20,}+"),
    ("API key", "sq0atp- sq0csp- sq0idp- EAAAE EZAK EZTK", _DIGIT + _ANY + r"{20,}+"),
    ("API key", "shpat_ shpca_ shppa_ shpss_ shpua_", r"[A-Fa-f0-9]{32}"),
    ("API key", "lin_api_ lin_oauth_ ntn_ figd_ figo_ figu_ secret_", _LONG),
    ("API key", "glsa_ glc_", r"[A-Za-z0-9_+/=\-]{30,}+"),
    ("API key", "NRAK- NRJS- NRAA- NRII- PMAK- phx_ phs_ phc_ tfp_ CFPAT-", _LONG),
    ("API key", "duffel_live_ duffel_test_ FLWSECK- FLWSECK_TEST-", _LONG),
    ("token", "pat-na1- pat-eu1- pat-na2-", r"[a-f0-9\-]{36}"),
    ("API key", "ops_eyJ", _BASE64 + r"{80,}+={0,3}"),
    ("private key", "AGE-SECRET-KEY-1", r"[A-Za-z0-9]{20,}+"),
    ("private key", "AGE-PLUGIN-", r"[A-Z0-9\-]{20,}+"),
    ("token", "eyJ", _ANY + r"{10,}+\." + _ANY + r"{0,}+\." + _ANY + r"{6,}+(?:\." + _ANY + r"{0,}+){0,2}"),
)
# fmt: on


_COMMON = frozenset("key- pubkey- pa- fc- re_ cio oy2 secret_ rnd_ pul-".split())
"""Prefixes that also end other names, so that no letter, digit, `_` or `-` may precede them. Other prefixes of four or more characters
that end in a sign count after any character (a lost `\\n`, an underscore of Markdown), the rest after anything but a letter or digit."""


class Rule(NamedTuple):
    """One pattern; `keyword` must be in the text (compared in lower case) before the pattern is tried."""

    kind: Kind
    keyword: str
    pattern: re.Pattern[str]


def _shape(kind: Kind, prefix: str, body: str) -> Rule:
    literal = re.escape(prefix)
    before = r"A-Za-z0-9_\-" if prefix in _COMMON else "A-Za-z0-9"
    own = len(prefix) > 3 and prefix[-1] in "_-." and prefix not in _COMMON
    guard = "" if own else rf"(?<![{before}]{literal})"  # after the literal: a pattern that begins with one is searched fast
    return Rule(kind, prefix.lower(), re.compile(literal + guard + body + r"(?![A-Za-z0-9])"))


_FRAMED: tuple[tuple[Kind, str, str], ...] = (
    ("private key", "private-lines", r"Private-Lines: [0-9]{1,4}\s{1,4}(?P<secret>(?:(?!Private-)[A-Za-z0-9+/=]{1,100}+\s{0,4}+){1,400})"),
    ("private key", "private-mac", r"Private-MAC: (?P<secret>[0-9a-fA-F]{32,64})"),
    ("private key", "kty", r"\"(?:d|p|q|dp|dq|qi|k)\"\s{0,4}:\s{0,4}\"(?P<secret>[A-Za-z0-9_\-]{22,}+)\""),
    ("API key", "keyname", r"(?i:\"keyname\"[^{}]{1,200}?\"value\"):\s{0,4}\"(?P<secret>[A-Za-z0-9+/]{40,}+={0,2})\""),
    (
        "API key",
        "a",
        r"(?<![A-Za-z0-9])A[KS]IA[A-Z0-9]{16}[\s,;:|\"']{1,8}(?:\S{8,40}\s{1,4})?(?P<secret>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/])",
    ),
    ("private key", "privatekey", r"PrivateKey\s{0,3}=\s{0,3}(?P<secret>[A-Za-z0-9+/]{43}=)"),
    ("token", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9_/\-]{20,}+)"),
    ("token", "/api/webhooks/", r"/api/webhooks/(?P<secret>[0-9]{15,22}/[A-Za-z0-9_\-]{40,}+)"),
    ("token", "webhook.office.com", r"webhook\.office\.com/(?P<secret>[A-Za-z0-9_/@\-]{40,}+)"),
    ("token", ".", r"(?<![A-Za-z0-9.])[MNO][A-Za-z0-9_\-]{22,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,45}(?!\.?[A-Za-z0-9])"),
    ("token", ":", r"(?<![0-9])[0-9]{6,10}:[A-Za-z0-9_\-]{35}(?![A-Za-z0-9])"),
    ("API key", "q~", r"(?<![A-Za-z0-9~.])[A-Za-z0-9_~.]{3,4}[0-9]Q~[A-Za-z0-9_~.\-]{31,}+"),
    ("API key", "-us", r"(?<![a-f0-9])[a-f0-9]{32}-us[0-9]{1,2}(?![0-9a-z])"),
    ("API key", "-", r"(?<![a-f0-9\-])[a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8}(?![a-f0-9\-])"),
    ("token", ".atlasv1.", r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_\-=]{50,80}"),
    ("token", "pat", r"(?<![A-Za-z0-9])pat[A-Za-z0-9]{14}\.[a-f0-9]{64}(?![a-f0-9])"),
    ("API key", "a3-", r"(?<![A-Za-z0-9\-])A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}"),
    ("password", "$", r"(?<![A-Za-z0-9$])\$(?:1|5|6|7|y|gy|2[abxy]|apr1|argon2(?:id|i|d)|scrypt)\$[A-Za-z0-9./$=,+\-]{20,200}"),
    ("API key", "sig=", r"(?<=[?&;])sig=(?P<secret>[A-Za-z0-9%+/_\-]{30,}+=?)"),
)
"""Keys recognised by the text around them, or by where their characters are."""

RULES: tuple[Rule, ...] = (
    *(Rule(kind, keyword, re.compile(pattern)) for kind, keyword, pattern in _FRAMED),
    *(_shape(kind, prefix, body) for kind, prefixes, body in SHAPES for prefix in prefixes.split()),
)
