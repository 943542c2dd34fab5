"""Where a profile that came as a file would send text and keys, and whether its user agreed to it.

A profile can name servers, the variables whose keys they get, and a place for memories. Each such pair is shown and confirmed once per
user (`--trust-profile`); the answers are in `trusted.json` in the user's settings folder, never in a workspace, which others may write.
Knows profiles and never prompts. Profiles created in code need no confirmation.
"""

import os
from collections.abc import Sequence

import orjson

from pamer_lab.config import user_folder
from pamer_lab.errors import InputError
from pamer_lab.models.profiles import PROFILES, ChatSettings, EmbeddingSettings, Profile
from pamer_lab.opening import parse_json, read_file

FILE = "trusted.json"
MOST_ENTRIES = 10_000


def destinations(profile: Profile) -> list[str]:
    """Where the profile sends text, which variable's key goes with it, and where it keeps memories; each in words."""
    servers: list[tuple[str, ChatSettings | EmbeddingSettings]] = [("texts", profile.chat), ("texts to embed", profile.embedding)]
    found = [f"{what} to {part.base_url} with the key in {part.api_key_variable}" for what, part in servers if part.kind == "openai"]
    return [*found, *([f"memories to {profile.memory_uri}"] if profile.memory_uri else [])]


def unconfirmed(profile: Profile) -> list[str]:
    """The destinations that nobody has confirmed; none for a profile that is built in or was made by the program."""
    if not profile.from_file:
        return []
    known = {place for built_in in PROFILES.values() for place in destinations(built_in)} | set(_confirmed())
    return [place for place in destinations(profile) if place not in known]


def require_confirmed(profile: Profile) -> None:
    """Raise `InputError` that shows every unconfirmed destination, and how to confirm it."""
    if places := unconfirmed(profile):
        raise InputError(
            f"the profile {profile.name!r} would send {'; '.join(places)}; if you trust that, repeat the command with --trust-profile, "
            "or run `pamer-lab doctor --profile … --trust-profile` once"
        )


def trust(profile: Profile) -> list[str]:
    """Confirm the destinations of a profile for this user, from now on; returns what was new."""
    places = unconfirmed(profile)
    if places:
        path = user_folder() / FILE
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_suffix(f".{os.getpid()}.draft")
        draft.write_bytes(orjson.dumps([*_confirmed(), *places], option=orjson.OPT_INDENT_2))
        draft.replace(path)
    return places


def _confirmed() -> Sequence[str]:
    path = user_folder() / FILE
    try:
        found = parse_json(read_file(path))
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise InputError(f"is not JSON ({error}); correct or remove it", path=str(path)) from error
    if not isinstance(found, list) or len(found) > MOST_ENTRIES or not all(isinstance(item, str) for item in found):
        raise InputError("is not a list of strings; correct or remove it", path=str(path))
    return found
