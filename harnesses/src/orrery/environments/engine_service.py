"""The container engine's socket: Docker's where there is one, else a Podman service of our own.

Podman is driven through `podman system service` on a socket that only this process knows. The service is
handed a listening socket (systemd's activation protocol), so there is nothing to wait for, and it dies with
this process even when that is killed.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import re
import resource
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException, NotFound
from orrery_core.errors import InfrastructureError, UserError

OWNER_LABEL = "orrery.owner"
FOLDER_PREFIX = "orrery-engine-"
"""Of temporary folders, followed by the pid of their owner; swept when that is gone."""
DOCKER_SOCKET = Path("/var/run/docker.sock")
INSTALL = "install Podman with scripts/setup-engine (as root), start Docker, or use --env sandbox"
_CAP_SYS_RESOURCE = 24


@dataclass(frozen=True)
class Engine:
    """A connected engine.

    Attributes:
        client: the SDK's client; its calls block, so event loops go through `call`.
        kind: `docker` or `podman`.
        version: the engine's version, e.g. `4.3.1`.
        runtime: the OCI runtime that starts containers, e.g. `runc`.
        rootless: whether the engine runs without root.
        socket: the unix socket.
    """

    client: docker.DockerClient
    kind: str
    version: str
    runtime: str
    rootless: bool
    socket: Path
    _threads: ThreadPoolExecutor

    @property
    def mode(self) -> str:
        """What decides whether two runs compare, e.g. `engine:podman-4.3:runc`."""
        release = ".".join(self.version.split(".")[:2])
        return f"engine:{self.kind}-{release}:{self.runtime}" + (":rootless" if self.rootless else "")

    async def call[T](self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Runs a blocking call beside the event loop, on threads that long commands never occupy."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(function, *args, **kwargs))


_lock = threading.Lock()
_engine: Engine | None = None
_service: _PodmanService | None = None


def connect() -> Engine:
    """The engine of this process: connected once, its leftovers of dead runs swept.

    Looks at DOCKER_HOST, then Docker's usual socket, then starts Podman.

    Raises:
        UserError: DOCKER_HOST names something else than a local socket.
        InfrastructureError: there is no engine, or it does not answer.
    """
    global _engine, _service
    with _lock:
        if _engine is not None and (_service is None or _service.alive):
            return _engine
        path = _docker_socket()
        if path is None:
            _service = _PodmanService.start()
            path = _service.socket
        _engine = _attach(path, _service)
        sweep(_engine.client)
        return _engine


def _docker_socket() -> Path | None:
    host = os.environ.get("DOCKER_HOST", "")
    if host:
        if not host.startswith("unix://"):
            raise UserError(
                f"DOCKER_HOST={host}: only a local unix socket can be used",
                mend="set DOCKER_HOST=unix:///path/to/docker.sock, or unset it",
            )
        return Path(host.removeprefix("unix://"))
    usable = DOCKER_SOCKET.is_socket() and os.access(DOCKER_SOCKET, os.R_OK | os.W_OK)
    return DOCKER_SOCKET if usable else None


def _attach(path: Path, service: _PodmanService | None) -> Engine:
    try:
        client = docker.DockerClient(f"unix://{path}", timeout=120)
        version, info = client.version(), client.info()
    except (DockerException, OSError) as error:
        detail = service.complaint() if service else str(error)
        raise InfrastructureError(
            f"the container engine at {path} does not answer: {detail}", mend=INSTALL
        ) from error
    components = {part["Name"]: part["Version"] for part in version.get("Components", [])}
    kind = "podman" if "Podman Engine" in components else "docker"
    security = info.get("SecurityOptions") or []
    return Engine(
        client=client,
        kind=kind,
        version=components.get("Podman Engine", version["Version"]),
        runtime=info.get("DefaultRuntime") or "unknown",
        rootless=any("rootless" in option for option in security) or bool(info.get("Rootless")),
        socket=path,
        _threads=ThreadPoolExecutor(max_workers=32, thread_name_prefix="engine"),
    )


class _PodmanService:
    """`podman system service`, private to this process."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self.socket = folder / "podman.sock"
        self._process = process

    @classmethod
    def start(cls) -> _PodmanService:
        if shutil.which("podman") is None:
            raise InfrastructureError(
                "no container engine: neither Docker's socket nor podman is here", mend=INSTALL
            )
        folder = Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-"))
        environment = service_environment(folder)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with listener, (folder / "service.log").open("wb") as log:
            listener.bind(str(folder / "podman.sock"))
            listener.listen(128)
            process = _spawn_with_us(listener.fileno(), environment, log.fileno(), folder)
        service = cls(folder, process)
        atexit.register(service.stop)
        return service

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def complaint(self) -> str:
        """The end of what the service printed."""
        lines = (self.folder / "service.log").read_text(errors="replace").strip().splitlines()
        return " / ".join(lines[-3:]) or "no message"

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def _spawn_with_us(
    listener: int, environment: dict[str, str], log: int, folder: Path
) -> subprocess.Popen[bytes]:
    """Starts the service with `listener` as its activation socket (descriptor 3) and a death signal.

    The kernel sends that signal when the *thread* that forked ends, so the fork happens in one that never
    does.
    """
    # Through standard input, because dash knows no descriptors of two digits.
    script = 'LISTEN_PID=$$ exec setpriv --pdeathsig KILL "$@" 3<&0 0</dev/null'
    command = ["sh", "-c", script, "sh", "podman", "system", "service", "--time", "0"]
    started: list[subprocess.Popen[bytes] | OSError] = []
    ready = threading.Event()

    def keep() -> None:
        try:
            process = subprocess.Popen(
                command,
                env={**environment, "LISTEN_FDS": "1"},
                stdin=listener,
                stdout=log,
                stderr=log,
                cwd=folder,  # conmon leaves a file `oom` where it stands when a container runs out of memory
                start_new_session=True,
            )
        except OSError as error:
            started.append(error)
            ready.set()
            return
        started.append(process)
        ready.set()
        process.wait()

    threading.Thread(target=keep, name="podman-service", daemon=True).start()
    ready.wait()
    if isinstance(started[0], OSError):
        raise InfrastructureError(f"podman could not be started: {started[0]}", mend=INSTALL)
    return started[0]


def service_environment(folder: Path) -> dict[str, str]:
    """Our environment, and where this machine needs it a private configuration; the user's files stay."""
    environment = {key: value for key, value in os.environ.items() if key not in ("LISTEN_FDS", "LISTEN_PID")}
    text = private_configuration(
        hard_limits=_limits_that_cannot_be_raised(),
        hybrid_cgroups=Path("/sys/fs/cgroup/unified/cgroup.procs").exists(),
    )
    if text:
        path = folder / "containers.conf"
        path.write_text(text)
        # From 4.7 on a file can be laid over the user's; before, ours stands instead of it for this one
        # service.
        output = subprocess.run(["podman", "--version"], capture_output=True, text=True, check=False).stdout
        found = re.search(r"(\d+)\.(\d+)", output)
        layered = found is not None and (int(found[1]), int(found[2])) >= (4, 7)
        environment["CONTAINERS_CONF_OVERRIDE" if layered else "CONTAINERS_CONF"] = str(path)
    return environment


def private_configuration(*, hard_limits: dict[str, int], hybrid_cgroups: bool) -> str:
    """The containers.conf that this machine needs; empty where Podman's own defaults work.

    Args:
        hard_limits: limits (`nofile`, `nproc`) that Podman would try to raise and may not.
        hybrid_cgroups: version 1 and 2 mounted side by side, which crun refuses.
    """
    parts = []
    if hard_limits:
        values = ", ".join(f'"{name}={value}:{value}"' for name, value in hard_limits.items())
        parts.append(f"[containers]\ndefault_ulimits = [{values}]\n")
    if hybrid_cgroups:
        parts.append('[engine]\nruntime = "runc"\n')
    return "\n".join(parts)


def _limits_that_cannot_be_raised() -> dict[str, int]:
    status = Path("/proc/self/status").read_text()
    effective = int(next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), 16)
    if os.geteuid() != 0 or effective >> _CAP_SYS_RESOURCE & 1:
        return {}
    # Podman lowers its own limit of processes to the kernel's highest pid before it starts anything.
    highest_pid = int(Path("/proc/sys/kernel/pid_max").read_text())
    hard = {
        "nofile": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "nproc": min(resource.getrlimit(resource.RLIMIT_NPROC)[1], highest_pid),
    }
    return {name: value for name, value in hard.items() if value != resource.RLIM_INFINITY}


def owner() -> str:
    """Host, pid namespace, pid and start time of this process: what tells later whether it still lives."""
    pid = os.getpid()
    return f"{socket.gethostname()}|{_pid_namespace()}|{pid}|{_started(pid)}"


def is_dead(label: str) -> bool:
    """Whether the owner in `label` is an ended process of this machine; foreign owners count as alive."""
    parts = label.split("|")
    if len(parts) != 4 or parts[:2] != [socket.gethostname(), _pid_namespace()]:
        return False
    return _started(int(parts[2])) != parts[3]


def sweep(client: docker.DockerClient) -> list[str]:
    """Removes containers, and folders of services, whose runner is gone. Returns the containers' names."""
    removed = []
    for container in client.containers.list(all=True, ignore_removed=True, filters={"label": OWNER_LABEL}):
        if is_dead(container.labels.get(OWNER_LABEL, "")):
            with contextlib.suppress(NotFound, APIError):
                container.remove(force=True, v=True)
                removed.append(container.name)
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*-*"):
        pid = folder.name.removeprefix(FOLDER_PREFIX).partition("-")[0]
        if pid.isdigit() and _started(int(pid)) == "":
            shutil.rmtree(folder, ignore_errors=True)
    return removed


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return "-"


def _started(pid: int) -> str:
    """The kernel's start time of a process; empty when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""
