"""`sandbox`: the embedded Harbor environment. Bubblewrap namespaces, no container engine.

harbor run -p tasks/luanti -e orrery.environments.sandbox:SandboxEnvironment
"""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO, Literal, override

from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.environments.definition import should_use_prebuilt_docker_image
from harbor.environments.options import EnvironmentOptions
from harbor.models.task.config import NetworkMode, NetworkPolicy
from harbor.utils.logger import logger as harbor_logger
from orrery_core.errors import InfrastructureError, UserError
from pydantic import Field

from orrery import images
from orrery.environments.allowlist import PORT, Proxy, Rules, proxy_environment
from orrery.environments.base import Command, EnvironmentRecord, OrreryEnvironment
from orrery.environments.build import built_layers, carry_out
from orrery.environments.context import Context
from orrery.environments.dockerfile import Recipe, read_recipe
from orrery.environments.limits import Limits, sweep_groups
from orrery.environments.output import Output
from orrery.environments.processes import uninterrupted
from orrery.environments.profiles import host_layers, rootfs_layers
from orrery.environments.running import BASE_ENV, RunningSandbox
from orrery.environments.session import Request
from orrery.environments.state import (
    FREE_MB,
    RunDirectory,
    expire_caches,
    remove_tree,
    require_space,
    run_directory,
)
from orrery.images import ImageFile

COMPOSE = ("docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml")


class SandboxOptions(EnvironmentOptions):
    """The `--ek` options of this environment."""

    profile: Literal["host", "rootfs"] = Field(
        default="host",
        description="host: this machine's programs. rootfs: images unpacked by orrery images build.",
    )


class SandboxEnvironment(OrreryEnvironment):
    """Harbor's environment contract on one bubblewrap sandbox."""

    options_model = SandboxOptions

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._sandbox: RunningSandbox | None = None
        self._scratch: Path | None = None
        self._proxy: Proxy | None = None
        super().__init__(*args, **kwargs)
        assert isinstance(self.options, SandboxOptions)
        self._profile = self.options.profile

    @staticmethod
    def type() -> str:
        return "sandbox"

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(
            disable_internet=True,
            dynamic_network_policy=True,
            network_allowlist=True,
            network_allowlist_hostnames=True,
            network_allowlist_wildcard_hostnames=True,
            network_allowlist_ipv4_addresses=True,
            network_allowlist_ipv6_addresses=True,
            network_allowlist_ipv4_cidrs=True,
            network_allowlist_ipv6_cidrs=True,
        )

    @classmethod
    @override
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        return EnvironmentResourceCapabilities(cpu_limit=True, memory_limit=True, fractional_cpus=True)

    @classmethod
    @override
    def preflight(cls, kwargs: dict[str, Any] | None = None) -> None:
        super().preflight(kwargs)
        failure: list[Exception] = []

        def probe() -> None:
            try:
                asyncio.run(_probe())
            except Exception as error:
                failure.append(error)

        thread = threading.Thread(target=probe)  # the caller may have a running loop
        thread.start()
        thread.join()
        if failure:
            raise SystemExit(f"the sandbox environment cannot run here: {failure[0]}") from failure[0]

    @override
    def _validate_definition(self) -> None:
        for name in COMPOSE:
            if (self.environment_dir / name).exists():
                raise UserError(
                    f"{self.environment_dir / name}: the sandbox environment runs no compose files",
                    mend="choose a container engine: -e docker",
                )
        if self._host_mounts:
            raise UserError("the sandbox environment takes no --mounts", mend="choose -e docker")
        self._recipe(False)

    def _recipe(self, force_build: bool) -> tuple[Recipe, ImageFile]:
        """The recipe of this environment on top of its image's own settings.

        Raises:
            UserError: an unsupported line, or an image that the library does not describe.
        """
        prebuilt = self.task_env_config.docker_image
        dockerfile = self.environment_dir / "Dockerfile"
        if should_use_prebuilt_docker_image(
            self.environment_dir, docker_image=prebuilt, force_build=force_build
        ):
            assert prebuilt is not None
            recipe = Recipe(prebuilt, f"{self.environment_name}: docker_image")
        elif dockerfile.exists():
            recipe = read_recipe(dockerfile)
        else:
            raise UserError(
                f"{dockerfile} is missing and the task names no docker_image", mend="add the Dockerfile"
            )
        known = images.known_images()
        if recipe.image not in known:
            raise UserError(
                f"{recipe.where}: the sandbox does not know the image {recipe.image!r}",
                mend=f"use one of {', '.join(sorted(known))}, or a container engine (-e docker)",
            )
        base = known[recipe.image] / "Dockerfile"
        below = read_recipe(base) if base.exists() else None
        image = images.image_file(recipe.image)
        if dockerfile.exists() and recipe.steps:
            return read_recipe(dockerfile, below), image
        if below is None:
            return recipe, image
        return Recipe(recipe.image, recipe.where, (), below.env, below.cwd, below.user), image

    @override
    async def start(self, force_build: bool) -> None:
        began = time.monotonic()
        run = await asyncio.to_thread(_run_directory)
        require_space(run.path, max(FREE_MB, self._effective_storage_mb or 0))
        try:
            await self._start(run, force_build)
        except BaseException:
            await uninterrupted(self._tear_down())
            raise
        assert self._sandbox is not None
        self._record(self._describe(time.monotonic() - began))
        await self._upload_environment_dir_after_start()
        await self.ensure_dirs(self._mount_targets(writable_only=True))

    async def _start(self, run: RunDirectory, force_build: bool) -> None:
        self._built, image = self._recipe(force_build)
        self._scratch = scratch = run.trial()
        make = rootfs_layers if self._profile == "rootfs" else host_layers
        layers = await asyncio.to_thread(make, image, scratch)
        context = Context(self.environment_dir)
        if self._built.runs_code:
            layers = await built_layers(self._built, context, layers, rebuild=force_build, logger=self.logger)
        policies = [self.network_policy, *self._phase_network_policies]
        self._shared = all(policy.network_mode == NetworkMode.PUBLIC for policy in policies)
        self._sandbox = RunningSandbox(self.logger, Limits(self._effective_memory_mb, self._effective_cpus))
        view = layers.view(scratch / "stores")
        await self._sandbox.open(f"{run.path.name}-{scratch.name}", view, share_network=self._shared)
        if not self._built.runs_code:
            await carry_out(self._built, context, self._sandbox)
        if self._shared:
            self.logger.warning(
                "public network: the sandbox shares this machine's network, services and ports"
            )
        else:
            await self._apply_network_policy(self.network_policy)

    def _describe(self, seconds: float) -> EnvironmentRecord:
        assert self._sandbox is not None
        parts = (
            "sandbox",
            self._profile,
            "user" if self._sandbox.single_uid else "root",
            "shared" if self._shared else "netns",
            self._sandbox.limits_kind,
        )
        return EnvironmentRecord(
            mode=":".join(parts),
            details={
                "image": self._built.image,
                "network": self.network_policy.network_mode.value,
                "memory_mb": self._effective_memory_mb or 0,
                "cpus": self._effective_cpus or 0,
                "start_s": round(seconds, 3),
            },
        )

    @override
    async def stop(self, delete: bool) -> None:
        await uninterrupted(self._tear_down(delete))

    async def _tear_down(self, delete: bool = True) -> None:
        proxy, self._proxy = self._proxy, None
        sandbox, self._sandbox = self._sandbox, None
        if sandbox:
            await sandbox.close()
        if proxy:
            await proxy.close()
        if delete and self._scratch:
            scratch, self._scratch = self._scratch, None
            await asyncio.to_thread(remove_tree, scratch)

    @override
    async def _apply_network_policy(self, network_policy: NetworkPolicy) -> None:
        if self._shared:
            raise InfrastructureError(
                "this sandbox was started on the shared network and cannot be closed off afterwards",
                mend="declare the restricted phase in task.toml, so that it is known before the start",
            )
        rules = Rules.of(network_policy)
        if self._proxy:
            self._proxy.switch(rules)
        elif proxy_environment(rules):
            assert self._sandbox is not None
            self._proxy = Proxy(rules, self.logger)
            await self._proxy.serve(await self._sandbox.session.listen(PORT))

    @override
    async def _execute(self, command: Command, output: Output, stdin: BinaryIO | None = None) -> int:
        if self._sandbox is None:
            raise InfrastructureError("the sandbox is not running")
        user = command.user if command.user is not None else self._built.user
        reach = proxy_environment(self._proxy.rules) if self._proxy else {}
        request = Request(
            ("/bin/bash", "-c", command.script),
            command.cwd or self._built.cwd,
            {**BASE_ENV, **reach, **self._built.env, **command.env},
            str(user if user is not None else "root"),
        )
        return await self._sandbox.run(request, output, stdin)


def _run_directory() -> RunDirectory:
    """This process's run directory; what dead processes left is swept when it is made."""
    run = run_directory()
    if not run.tidied:
        sweep_groups()
        expire_caches()
        run.tidied = True
    return run


async def _probe() -> None:
    """Boot a sandbox and run one command in it, as every trial will."""
    run = _run_directory()
    require_space(run.path)
    scratch = run.trial()
    sandbox = RunningSandbox(harbor_logger, Limits(None, None))
    try:
        layers = host_layers(ImageFile(name="probe"), scratch)
        await sandbox.open(
            f"{run.path.name}-{scratch.name}", layers.view(scratch / "stores"), share_network=False
        )
        code, printed = await sandbox.shell("echo works")
        if (code, printed) != (0, "works\n"):
            raise InfrastructureError(f"a probe command failed with {code}: {printed.strip()}")
    except OSError as error:
        raise InfrastructureError(str(error)) from error
    finally:
        await sandbox.close()
        remove_tree(scratch)
