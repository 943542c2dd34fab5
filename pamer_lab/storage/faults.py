"""What to do when the store fails: its engine's messages in plain words, and the recovery of a table that cannot be read.

Knows the wording of operating systems and of LanceDB; `docs/operations.md` describes each case. A damaged table goes back to its newest
readable version, or is set aside; nothing is deleted. Recovery works in a local folder only; in an object store, use the store's own
versioning.
"""

import re
from pathlib import Path

from pamer_lab.errors import StorageError
from pamer_lab.redaction import without_keys
from pamer_lab.storage.specs import TableSpec

_PLACE = re.compile(r",? ?[^\s,]{0,300}\.rs:\d{1,9}:\d{1,9}")
"""Location in the engine's own source code."""
_PREFIX = re.compile(r"^(?:lance error: |LanceError\(\w+\): |External error: |Generic \w+ error: )+")
_INSIDE = re.compile(r"(?:: )?\w{0,40} ?\{ source: .*")
"""How the engine prints an error that holds another."""
LONGEST = 300
GONE = "was it deleted or moved while the program was running? Reload the page or run the command again"
WORDS = (
    (("no space left", "os error 28", "quota exceeded", "os error 122"), "the disk is full: free some space and try again"),
    (
        ("read-only file system", "os error 30", "permission denied", "os error 13", "operation not permitted"),
        "it is read-only: change its permissions, or choose another folder with --workspace",
    ),
    (
        ("computemetadata", "oauth2.googleapis"),
        "no Google credentials were found: set GOOGLE_APPLICATION_CREDENTIALS to the key file of a service account",
    ),
    (
        ("no storage account configured", "azure account"),
        "no Azure credentials were found: set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
    ),
    (("automatic region detection",), "a bucket with a dot in its name needs AWS_REGION in the environment"),
    (
        ("failed to resolve region", "imds", "169.254.169.254"),
        "no AWS credentials were found, or the store does not answer: set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, and "
        "AWS_ENDPOINT_URL for another server",
    ),
    (("nosuchbucket", "specified bucket does not exist"), "there is no such bucket: check the workspace's address, or create the bucket"),
    (
        ("expiredtoken", "token has expired", "tokenrefreshrequired", "requestexpired"),
        "the credentials in the environment have expired: renew them and run the command again",
    ),
    (
        ("invalidaccesskeyid", "signaturedoesnotmatch", "invalidtoken"),
        "the store does not know the credentials in the environment: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN",
    ),
    (("slowdown", "serviceunavailable", "status: 503"), "the object store is busy: try again later"),
    (
        ("accessdenied", "access denied", "403", "forbidden", "lacked the"),
        "the credentials in the environment do not allow it: a reviewer with read-only ones sets PAMER_LAB_READONLY=1",
    ),
    (
        ("error sending request", "connection refused", "dns error", "timed out", "credential"),
        "the object store does not answer: check AWS_ENDPOINT_URL, AWS_REGION, the credentials in the environment and the network",
    ),
    (("too many open files", "os error 24"), "too many files are open: close other programs, or raise `ulimit -n`"),
    (
        ("not found", "no such file", "os error 2)", "does not exist"),
        GONE,
    ),
)
"""Signs in an error's text, in lower case, and what to do."""


def short(error: Exception) -> str:
    """The first line of an error, without locations in the engine's source."""
    text = str(error).strip()
    first = text.splitlines()[0] if text else type(error).__name__
    return without_keys(_INSIDE.sub("", _PREFIX.sub("", _PLACE.sub("", first))))[:LONGEST]


def advice(error: Exception) -> str:
    """`; what to do` for a fault that is known; empty for another."""
    text = str(error).lower()
    return next((f"; {words}" for signs, words in WORDS if any(sign in text for sign in signs)), "")


def lost_race(error: Exception) -> bool:
    """Whether another process committed first."""
    text = str(error).lower()
    return "conflict" in text or "concurrent" in text


def half_made(error: Exception) -> bool:
    """Whether another process is just creating the table; its random name (`specs.MADE`) then makes the schemas differ."""
    text = str(error).lower()
    return any(sign in text for sign in ("was not found", "already exists", "does not match existing table schema")) or lost_race(error)


def recover(uri: str, spec: TableSpec) -> str:
    """Discard versions until one is readable, or move the table away if none is; returns what was done."""
    folder = Path(uri) / f"{spec.name}.lance"
    if not folder.is_dir():
        raise StorageError(f"table {spec.name!r} at {uri} cannot be recovered; restore it from a backup")
    try:
        for manifest in sorted((folder / "_versions").glob("*.manifest")):  # LanceDB names them newest first
            if _reads(uri, spec):
                return f"table {spec.name!r} was restored to its newest readable version"
            manifest.rename(manifest.with_suffix(".broken"))
        aside = next(place for number in range(1000) if not (place := folder.with_name(f"{folder.stem}.broken-{number}")).exists())
        folder.rename(aside)
    except OSError as error:
        raise StorageError(f"table {spec.name!r} at {uri} cannot be recovered ({error})") from error
    return f"table {spec.name!r} had no readable version and was moved to {aside.name}"


def _reads(uri: str, spec: TableSpec) -> bool:
    """Whether the newest version can be read completely, by a connection with an empty cache."""
    import lancedb

    try:
        lancedb.connect(uri).open_table(spec.name).search().to_arrow()
        return True
    except Exception:
        return False
