"""`engine`: one container per trial role in a local Docker or Podman, driven through its socket.

No compose and no command-line client. A container without network has none; an allowlist is a proxy on the
host behind a socket inside a container that has no other route out.

    harbor run -p tasks/luanti -e orrery.environments.engine:EngineEnvironment
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
import uuid
from pathlib import Path
from typing import Any, BinaryIO, override

from docker.errors import APIError, NotFound
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.environments.definition import should_use_prebuilt_docker_image
from harbor.models.task.config import NetworkMode, NetworkPolicy
from orrery_core.errors import InfrastructureError, OrreryError, UserError

from orrery import images
from orrery.environments.allowlist import Rules, proxy_environment
from orrery.environments.base import Command, EnvironmentRecord, OrreryEnvironment
from orrery.environments.engine_build import build_image, discard_old, image_id, pull_image
from orrery.environments.engine_exec import CommandRefused, ContainerCommand
from orrery.environments.engine_network import Gateway
from orrery.environments.engine_service import OWNER_LABEL, Engine, connect, owner
from orrery.environments.output import Output
from orrery.environments.processes import uninterrupted
from orrery.images.building import REGISTRY

DEFINITION_LABEL = "orrery.definition"
MOST_PROCESSES = 4096
COMPOSE = ("docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml")
# The first process reaps orphans, which `sleep` alone would not, and ends at once when the container is
# stopped.
_FIRST_PROCESS = "trap 'exit 0' TERM INT; while :; do sleep 2147483647 & wait $!; done"
# A shell above the command keeps the mark by which its processes are found, even if the command replaces
# itself by one with an empty environment. Its own standard error would only say "Killed".
_SUPERVISOR = """
command -v bash >/dev/null || { echo "bash: not in this image" >&2; exit 127; }
exec 3>&2 2>/dev/null
(exec bash -c "$1" 2>&3 3>&-)
exit $?
"""

_build_locks: dict[str, threading.Lock] = {}


class EngineEnvironment(OrreryEnvironment):
    """Harbor's environment contract on one container."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._engine: Engine | None = None
        self._container = ""
        self._gateway: Gateway | None = None
        super().__init__(*args, **kwargs)

    @staticmethod
    def type() -> str:
        return "engine"

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(
            mounted=True,
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
        try:
            connect()
        except OrreryError as error:
            raise SystemExit(f"the engine environment cannot run here: {error}") from error

    @override
    def _validate_definition(self) -> None:
        for name in COMPOSE:
            if (self.environment_dir / name).exists():
                raise UserError(
                    f"{self.environment_dir / name}: the engine environment runs no compose files",
                    mend="choose another environment: -e docker",
                )
        if not (self._dockerfile.exists() or self.task_env_config.docker_image):
            raise UserError(
                f"{self._dockerfile} is missing and the task names no docker_image", mend="add the Dockerfile"
            )
        if any(mount["type"] != "bind" for mount in self._host_mounts):
            raise UserError(
                "the engine environment mounts host folders only", mend='give mounts with type "bind"'
            )

    @property
    def _dockerfile(self) -> Path:
        return Path(self.environment_dir) / "Dockerfile"

    @override
    async def start(self, force_build: bool) -> None:
        began = time.monotonic()
        engine = self._engine = await asyncio.to_thread(connect)
        image = await engine.call(self._image, engine, force_build)
        policies = [self.network_policy, *self._phase_network_policies]
        public = all(policy.network_mode == NetworkMode.PUBLIC for policy in policies)
        try:
            if any(policy.network_mode != NetworkMode.NO_NETWORK for policy in policies) and not public:
                self._gateway = Gateway(Rules.of(self.network_policy), self.logger)
            await uninterrupted(engine.call(self._run, engine, image, public))
            if self._gateway:
                await self._gateway.open(engine, self._container)
        except BaseException:
            await uninterrupted(self._tear_down(delete=True))
            raise
        details: dict[str, str | float] = {
            "engine": f"{engine.kind} {engine.version}",
            "image": image,
            "network": self.network_policy.network_mode.value,
            "memory_mb": self._effective_memory_mb or 0,
            "cpus": self._effective_cpus or 0,
            "start_s": round(time.monotonic() - began, 3),
        }
        self._record(EnvironmentRecord(mode=engine.mode, details=details))
        await self._upload_environment_dir_after_start()
        await self.ensure_dirs(self._mount_targets(writable_only=True))

    @override
    async def stop(self, delete: bool) -> None:
        await uninterrupted(self._tear_down(delete))

    async def _tear_down(self, delete: bool) -> None:
        container, self._container = self._container, ""
        gateway, self._gateway = self._gateway, None
        if self._engine and container:
            await self._engine.call(_end_container, self._engine, container, delete)
        if gateway:
            await gateway.close()

    def _run(self, engine: Engine, image: str, public: bool) -> None:
        api = engine.client.api
        memory, cpus = self._effective_memory_mb, self._effective_cpus
        host = api.create_host_config(
            network_mode=None if public else "none",
            mem_limit=memory << 20 if memory else None,
            memswap_limit=memory << 20 if memory else None,
            nano_cpus=int(cpus * 1e9) if cpus else None,
            pids_limit=MOST_PROCESSES,
            binds=self._binds(),
        )
        try:
            created = api.create_container(
                image,
                ["-c", _FIRST_PROCESS],
                entrypoint=["/bin/sh"],
                host_config=host,
                environment=self._startup_env(),
                labels={OWNER_LABEL: owner()},
                name=_container_name(self.session_id),
            )
            self._container = created["Id"]
            api.start(self._container)
        except APIError as error:
            raise InfrastructureError(
                f"the container could not be started: {error.explanation or error}", mend="orrery doctor"
            ) from error

    def _binds(self) -> dict[str, dict[str, str]]:
        binds = {
            str(mount["source"]): {
                "bind": str(mount["target"]),
                "mode": "ro" if mount.get("read_only") else "rw",
            }
            for mount in self._host_mounts
        }
        if self._gateway:
            source, how = self._gateway.bind
            binds[source] = how
        return binds

    @override
    async def _apply_network_policy(self, network_policy: NetworkPolicy) -> None:
        if self._gateway:
            self._gateway.switch(Rules.of(network_policy))
        elif network_policy.network_mode != NetworkMode.NO_NETWORK:
            raise InfrastructureError(
                "this container was started without a way out, and cannot be given one afterwards",
                mend="declare the phase's network in task.toml, so that it is known before the start",
            )
        elif self._network_is_public:
            raise InfrastructureError(
                "this container was started on the public network and cannot be closed off afterwards",
                mend="declare the phase's network in task.toml, so that it is known before the start",
            )

    def _image(self, engine: Engine, force_build: bool) -> str:
        """The id of this definition's image, built once per content of the definition and its base."""
        prebuilt = self.task_env_config.docker_image
        if should_use_prebuilt_docker_image(
            self.environment_dir, docker_image=prebuilt, force_build=force_build
        ):
            assert prebuilt is not None
            if prebuilt in images.known_images():
                return images.ensure(engine, prebuilt, self.logger.info)
            return image_id(engine, prebuilt) or pull_image(engine, prebuilt)
        name = f"{REGISTRY}orrery-task/{self.environment_id[:24]}:{self._base(engine)[:12] or 'latest'}"
        with _build_locks.setdefault(name, threading.Lock()):
            known = image_id(engine, name)
            if known and not force_build:
                return known
            self.logger.info("building %s from %s", name, self.environment_dir)
            definition = f"{DEFINITION_LABEL}={self.environment_dir.resolve()}"
            built = build_image(
                engine,
                self.environment_dir,
                name,
                labels=dict([definition.split("=", 1)]),
                timeout_s=self.task_env_config.build_timeout_sec,
            )
            # Images of earlier contents of the same definition would pile up.
            for image in engine.client.images.list(filters={"label": definition}):
                for tag in image.tags:
                    discard_old(engine, tag, image.id, unless=built)
            return built

    def _base(self, engine: Engine) -> str:
        """Hex digits of the image of ours that the Dockerfile starts from; empty when it starts elsewhere."""
        known = images.known_images()
        for name in re.findall(r"^FROM\s+(\S+)", self._dockerfile.read_text(), re.MULTILINE | re.IGNORECASE):
            if name in known:
                return images.ensure(engine, name, self.logger.info).removeprefix("sha256:")
        return ""

    @override
    async def _execute(self, command: Command, output: Output, stdin: BinaryIO | None = None) -> int:
        if self._engine is None or not self._container:
            raise InfrastructureError("the container is not running")
        reach = proxy_environment(self._gateway.rules) if self._gateway else {}
        run = ContainerCommand(
            self._engine,
            self._container,
            ["/bin/sh", "-c", _SUPERVISOR, "sh", command.script],
            user="" if command.user is None else str(command.user),
            cwd=command.cwd,
            env={**reach, **command.env},
            last_resort=self._restart,
        )
        try:
            return await run.run(output, stdin)
        except CommandRefused as error:
            raise InfrastructureError(str(error)) from error

    async def _restart(self) -> None:
        """Ends every process and keeps every file: for commands whose processes survive being killed."""
        self.logger.warning("processes of a command survived being killed; restarting the container")
        if self._engine is None or not self._container:
            return
        await self._engine.call(self._engine.client.api.restart, self._container, timeout=0)
        if self._gateway:
            await self._gateway.open(self._engine, self._container)


def _container_name(session: str) -> str:
    """Readable, and unique also when two jobs use the same trial names."""
    return "orrery-" + re.sub(r"[^a-zA-Z0-9_.-]", "-", session) + "-" + uuid.uuid4().hex[:6]


def _end_container(engine: Engine, container: str, delete: bool) -> None:
    api = engine.client.api
    try:
        if delete:
            api.remove_container(container, force=True, v=True)
        else:
            api.stop(container, timeout=0)
    except NotFound:
        return
