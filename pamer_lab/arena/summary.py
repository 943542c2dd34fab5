"""An arena's episodes as one result: the command prints it, the page and the share file show it."""

from typing import Any

from pamer_lab.arena.results import pairs, paths, table
from pamer_lab.arena.store import ArenaStore
from pamer_lab.errors import InputError


def listed(store: ArenaStore, arena_id: str) -> dict[str, Any]:
    """One line about an arena."""
    info, episodes = store.info(arena_id), store.episodes(arena_id)
    policies = list(dict.fromkeys(episode.policy for episode in episodes))
    kept = {"agent": info.agent, "seed": info.seed, "level": info.level, "profile": info.profile, "simulated": info.simulated}
    return {"arena_id": arena_id, "episodes": len(episodes), "policies": policies, **kept}


def summary(
    store: ArenaStore, arena_id: str, prices: str, *, tasks: int = 0, policies: tuple[str, ...] = (), against: str = "base"
) -> dict[str, Any]:
    """The results of an arena, or of the given tasks and policies; `pairs` are differences from the policy `against`."""
    info = store.info(arena_id)
    episodes = [
        episode
        for episode in store.episodes(arena_id)
        if (not tasks or episode.task < tasks) and (not policies or episode.policy in policies)
    ]
    if against != "base" and against not in {episode.policy for episode in episodes}:
        raise InputError(f"arena {arena_id} has no episode under {against!r}")
    names = policies or ("base", *sorted({episode.policy for episode in episodes} - {"base"}))
    order = {policy: number for number, policy in enumerate(names)}
    episodes.sort(key=lambda episode: (order[episode.policy], episode.task))
    rows = table(episodes, prices, info.agent)
    return {
        "arena_id": arena_id,
        "agent": info.agent,
        "simulated": info.simulated,
        "seed": info.seed,
        "level": info.level,
        "profile": info.profile,
        "tokenizer": info.tokenizer,
        "prices": prices,
        "results": [row for row in rows if not row["bound"]],
        "bounds": {row["policy"]: row for row in rows if row["bound"]},
        "against": against,
        "pairs": pairs(episodes, prices, against),
        "tasks": paths(episodes, prices),
    }
