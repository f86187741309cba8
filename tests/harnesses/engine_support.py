"""What the engine tests share: whether there is an engine, tasks on our image, environments that end."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths
from orrery import images
from orrery.environments.engine import EngineEnvironment
from orrery.environments.engine_service import DOCKER_SOCKET

# The root and not an image over it: those follow every change of our sources, and few tests need them.
IMAGE = "orrery/debian-luanti:1"
NO_NETWORK = NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)


def allowlist(*hosts: str) -> NetworkPolicy:
    return NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=list(hosts))


@cache
def _build_images() -> None:
    images.build()


def need_engine() -> None:
    """Skips where no engine is installed; one that is broken fails the test. Builds our images."""
    if not (shutil.which("podman") or DOCKER_SOCKET.exists() or os.environ.get("DOCKER_HOST")):
        pytest.skip("no container engine is installed: scripts/setup-engine installs Podman")
    _build_images()


def definition(folder: Path, dockerfile: str = f"FROM {IMAGE}\nWORKDIR /app\n", **files: str) -> Path:
    """An environment directory; `files` are its other files by name."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Dockerfile").write_text(dockerfile)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def environment(
    folder: Path, policy: NetworkPolicy = NO_NETWORK, role: str = "env", phases: Any = None, **config: Any
) -> EngineEnvironment:
    paths = TrialPaths(folder / "trial")
    paths.mkdir()
    return EngineEnvironment(
        environment_dir=folder / "environment",
        environment_name="probe",
        session_id=f"probe__abc__{role}",
        trial_paths=paths,
        task_env_config=EnvironmentConfig(**config),
        network_policy=policy,
        phase_network_policies=phases,
    )


@asynccontextmanager
async def started(folder: Path, *arguments: Any, **options: Any) -> AsyncIterator[EngineEnvironment]:
    if not (folder / "environment").exists():
        definition(folder / "environment")
    made = environment(folder, *arguments, **options)
    try:
        await made.start(force_build=False)
        yield made
    finally:
        await made.stop(delete=True)


async def run(made: EngineEnvironment, command: str, **options: Any) -> str:
    """Standard output of a command that has to succeed."""
    result = await made.exec(command, **options)
    assert result.return_code == 0, result
    return result.stdout or ""
