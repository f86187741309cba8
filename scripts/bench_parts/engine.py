"""Times of the engine environment: container, commands, transfers, and a whole trial.

    .venv/bin/python scripts/bench_parts/engine.py [--compose]

`measure` and `measure_trial` are what scripts/bench calls. Every number is seconds of wall clock on
this machine, under whatever load it has; the load is part of the answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

ENGINE = "orrery.environments.engine:EngineEnvironment"
IMAGE = "orrery/luanti-agent:1"
TASK = """\
schema_version = "1.4"
artifacts = ["/app/mod"]
[task]
name = "orrery/bench"
description = "bench"
[environment]
network_mode = "{network}"
[verifier]
environment_mode = "separate"
[verifier.environment]
network_mode = "{network}"
"""


async def measure(rounds: int = 5) -> dict[str, Any]:
    """Medians of container start, command, 20 MB up, 20 MB down and stop."""
    from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
    from harbor.models.trial.paths import TrialPaths
    from orrery.environments.engine import EngineEnvironment

    times: dict[str, list[float]] = {name: [] for name in ("start", "exec", "up_20mb", "down_20mb", "stop")}

    async def timed(name: str, action: Callable[[], Awaitable[Any]]) -> None:
        began = time.perf_counter()
        await action()
        times[name].append(time.perf_counter() - began)

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in ("environment", "big"):
            (folder / name).mkdir()
        (folder / "environment/Dockerfile").write_text(f"FROM {IMAGE}\nWORKDIR /app\n")
        (folder / "big/file").write_bytes(os.urandom(20_000_000))
        paths = TrialPaths(folder / "trial")
        paths.mkdir()
        for number in range(rounds + 1):
            made = EngineEnvironment(
                environment_dir=folder / "environment",
                environment_name="bench",
                session_id=f"bench__{number}__env",
                trial_paths=paths,
                task_env_config=EnvironmentConfig(memory_mb=1024),
                network_policy=NetworkPolicy(network_mode=NetworkMode.NO_NETWORK),
            )
            await timed("start", lambda made=made: made.start(False))
            await timed("exec", lambda made=made: made.exec("true", user="root", cwd="/"))
            await timed("up_20mb", lambda made=made: made.upload_dir(folder / "big", "/tmp/big"))
            back = folder / f"back{number}"
            await timed("down_20mb", lambda made=made, back=back: made.download_dir("/tmp/big", back))
            await timed("stop", lambda made=made: made.stop(True))
    # The first round connects and may build; it is no part of the medians.
    medians = {name: round(statistics.median(values[1:]), 3) for name, values in times.items()}
    return {**medians, "rounds": rounds, "load": round(os.getloadavg()[0], 1)}


async def measure_trial(environment: str, network: str = "no-network") -> dict[str, Any]:
    """One oracle trial of a task that does nothing: all of its time is overhead.

    Args:
        environment: `module:Class`, or the name of one of Harbor's.
    """
    from harbor.job import Job
    from harbor.models.environment_type import EnvironmentType
    from harbor.models.job.config import JobConfig
    from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig

    own = ":" in environment
    chosen = (
        EnvironmentConfig(import_path=environment)
        if own
        else EnvironmentConfig(type=EnvironmentType(environment))
    )
    image = IMAGE if own else f"docker.io/{IMAGE}"
    with tempfile.TemporaryDirectory() as scratch:
        task = Path(scratch) / "bench"
        files = {
            "task.toml": TASK.format(network=network),
            "instruction.md": "Nothing.\n",
            "environment/Dockerfile": f"FROM {image}\nRUN mkdir -p /app/mod\nWORKDIR /app\n",
            "tests/Dockerfile": f"FROM {image}\nCOPY . /tests/\nRUN mkdir -p /app\nWORKDIR /app\n",
            "tests/test.sh": "echo '{\"reward\": 1}' >/logs/verifier/reward.json\n",
            "solution/solve.sh": "true\n",
        }
        for name, text in files.items():
            (task / name).parent.mkdir(parents=True, exist_ok=True)
            (task / name).write_text(text)
        seconds: list[float] = []
        for number in range(2):  # the first builds the images
            config = JobConfig(
                job_name=f"job{number}",
                jobs_dir=Path(scratch) / "jobs",
                quiet=True,
                environment=chosen,
                agents=[AgentConfig(name="oracle")],
                tasks=[TaskConfig(path=task, source="bench")],
            )
            job = await Job.create(config)
            began = time.perf_counter()
            await job.run()
            seconds.append(round(time.perf_counter() - began, 2))
            results = (Path(scratch) / "jobs" / f"job{number}").glob("*/result.json")
            result = json.loads(next(iter(results)).read_text())
            if result["exception_info"]:
                raise RuntimeError(f"{environment}: {result['exception_info']['exception_message']}")
    return {
        "environment": environment,
        "first": seconds[0],
        "trial": seconds[1],
        "load": round(os.getloadavg()[0], 1),
    }


async def _main() -> None:
    print(json.dumps(await measure()))
    print(json.dumps(await measure_trial(ENGINE)))
    if "--compose" in sys.argv:
        print(json.dumps(await measure_trial("podman", network="public")))


if __name__ == "__main__":
    os.environ.setdefault("HARBOR_TELEMETRY", "0")
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    asyncio.run(_main())
