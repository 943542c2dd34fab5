"""One small Ray cluster for all tests of this folder that ask for one."""

import os
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pamer_lab.engines import Engine, EngineSpec, open_engine

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Engine]:
    """Two CPUs, a small object store, no dashboard; gone when the tests end."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="lancedb fork support")
        ray.init(
            address="local",
            num_cpus=2,
            object_store_memory=80_000_000,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
            runtime_env={"env_vars": {"PYTHONPATH": str(PROJECT)}},
        )
    yield open_engine(EngineSpec("ray"))
    ray.shutdown()


@pytest.fixture(params=["local", "ray"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Each engine in turn."""
    if request.param == "ray":
        yield request.getfixturevalue("cluster")
    else:
        with closing(open_engine(EngineSpec())) as local:
            yield local
