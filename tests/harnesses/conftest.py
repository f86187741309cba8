"""Shared fixtures: sandboxes on throwaway task definitions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

os.environ.setdefault("HARBOR_TELEMETRY", "0")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

if TYPE_CHECKING:
    from orrery.environments.sandbox import SandboxEnvironment

IMAGE = "orrery/luanti-agent:1"

Opener = Callable[..., "AbstractAsyncContextManager[SandboxEnvironment]"]
Body = Callable[["SandboxEnvironment"], Coroutine[Any, Any, None]]


@pytest.fixture(scope="session")
def sandbox_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One state directory for the whole session, so that the skeleton is built once."""
    return tmp_path_factory.mktemp("state")


@pytest.fixture
def open_sandbox(tmp_path: Path, sandbox_state: Path, monkeypatch: pytest.MonkeyPatch) -> Opener:
    """Opens sandboxes: `async with open_sandbox("WORKDIR /app", files={...}, memory_mb=...) as env`."""
    monkeypatch.setenv("ORRERY_STATE", str(sandbox_state))
    made = 0

    @asynccontextmanager
    async def opened(
        dockerfile: str = "",
        *,
        image: str = IMAGE,
        files: dict[str, str] | None = None,
        network: str = "no-network",
        hosts: list[str] | None = None,
        phases: list[Any] | None = None,
        options: dict[str, Any] | None = None,
        force_build: bool = False,
        **config: Any,
    ) -> AsyncIterator[SandboxEnvironment]:
        from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
        from harbor.models.trial.paths import TrialPaths
        from orrery.environments.sandbox import SandboxEnvironment

        nonlocal made
        made += 1
        definition = tmp_path / f"definition{made}"
        for name, text in {"Dockerfile": f"FROM {image}\n{dockerfile}\n", **(files or {})}.items():
            (definition / name).parent.mkdir(parents=True, exist_ok=True)
            (definition / name).write_text(text)
        trial = TrialPaths(tmp_path / f"trial{made}")
        trial.mkdir()
        environment = SandboxEnvironment(
            definition,
            "test",
            f"t{made}__abc__env",
            trial,
            EnvironmentConfig(**config),
            network_policy=NetworkPolicy(network_mode=NetworkMode(network), allowed_hosts=hosts or []),
            phase_network_policies=phases,
            **(options or {}),
        )
        try:
            await environment.start(force_build)
            yield environment
        finally:
            await environment.stop(True)

    return opened


@pytest.fixture
def in_sandbox(open_sandbox: Opener) -> Callable[..., None]:
    """Runs one coroutine function in a fresh sandbox: `in_sandbox(body, "WORKDIR /app", memory_mb=100)`."""

    def run(body: Body, dockerfile: str = "", **settings: Any) -> None:
        async def main() -> None:
            async with open_sandbox(dockerfile, **settings) as environment:
                await body(environment)

        asyncio.run(main())

    return run
