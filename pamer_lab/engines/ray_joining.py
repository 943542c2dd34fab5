"""Joins a Ray cluster or starts one on this machine, or explains why that is not possible.

Invariant: Ray's messages never go to standard output, and an address that does not answer is refused within seconds.
"""

import os
import socket
import warnings
from typing import Any

from pamer_lab.engines.interface import check_address
from pamer_lab.errors import InputError

OBJECT_STORE = 200_000_000
"""Bytes of the object store of a cluster that we start ourselves; notes are small."""
ANSWER_WITHIN = 10.0
"""Seconds within which a cluster's address must accept a connection."""
INSTALL = "--engine ray needs Ray, which is not installed here: pip install 'pamer-lab[ray]'"


def join(address: str) -> bool:
    """Join the cluster at an address, or start one; True if it was started here."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "180")  # a busy machine takes longer than Ray's own 60
    os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's 15 starves workers when anything else runs on the machine
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise InputError(INSTALL) from error
    _speak_on_stderr()
    if ray.is_initialized():
        return False
    address = address or os.environ.get("RAY_ADDRESS", "")
    check_address(address)
    require_answer(address)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
    try:
        if address:
            ray.init(address=address, **quiet)
            return False
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="lancedb fork support")  # Ray forks only to start other programs
            ray.init(address="local", include_dashboard=False, object_store_memory=OBJECT_STORE, **quiet)
        return True
    except Exception as error:
        where = f"no Ray cluster answers at {address}" if address else "Ray cannot start a cluster on this machine"
        raise InputError(f"{where} ({last_words(error)})") from error


def require_answer(address: str) -> None:
    """Refuse a cluster where nothing listens: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isdecimal()):  # `auto`, or an address that Ray itself refuses
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_WITHIN).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise InputError(f"no Ray cluster answers at {address} ({error}); check host and port, and that the cluster runs") from error


def _speak_on_stderr() -> None:
    """Move Ray's messages about lost workers from standard output, where a command's result goes, to stderr; Ray has no setting for it."""
    from ray._private import worker

    plain = worker.print_to_stdstream
    if plain.__module__ != worker.__name__:  # already replaced
        return

    def on_stderr(data: dict[str, Any], *words: Any, **named: Any) -> None:
        plain({**data, "is_err": True}, *words, **named)

    worker.print_to_stdstream = on_stderr


def last_words(error: Exception) -> str:
    """The last line of Ray's report, which names the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1][:300]}" if lines else type(error).__name__
