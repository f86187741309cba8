"""One server process in isolation under the step gate: start, wait for it to load, stop, kill."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orrery_core.isolation import Isolation, Limits, SubjectProcess

from . import diagnose, folder, gate
from .channel import Channel
from .failures import ServerDied, StepTimeout
from .folder import WorldFolder
from .gate import Gate
from .install import GAME_ID, Install

PORT_TRIES = 3
EXIT_S = 20.0

_WHOLE = Limits(wall_s=3600, cpu_s=3600, memory_mb=2048, file_mb=1024, processes=128, output_mb=32)


@dataclass(frozen=True)
class ServerLimits:
    """What one server may use before it counts as broken.

    Attributes:
        load_s: wall seconds until all mods have loaded; a vanilla server needs half a second.
        step_s: wall seconds of a single game step; an honest one takes milliseconds.
        whole: everything together, for one run of the process.
    """

    load_s: float = 60.0
    step_s: float = 30.0
    whole: Limits = _WHOLE


class Server:
    """A started server; its game time stands still until steps are granted through `gate`.

    Args:
        install: which server.
        isolation: how the process is kept apart.
        place: its world; mods, world.mt and everything else already written.
        settings: of the configuration, in addition to the usual ones.
    """

    def __init__(
        self,
        install: Install,
        isolation: Isolation,
        place: WorldFolder,
        *,
        mapgen: str,
        settings: Mapping[str, str],
        limits: ServerLimits,
    ) -> None:
        self.install = install
        self.isolation = isolation
        self.place = place
        self.mapgen = mapgen
        self.settings = settings
        self.limits = limits
        self.port = 0
        self.gate: Gate
        self.channel: Channel
        self._process: SubjectProcess | None = None
        self._ended = False

    def start(self, begun: Callable[[], None], loaded: Callable[[], bool]) -> None:
        """Start, wait until `loaded` says that the evaluator's mod is in, and run the first step.

        Args:
            begun: called at the start of each try, before anything can be read from the channel.

        Raises:
            ServerDied: it ended before that.
            StepTimeout: it takes too long.
        """
        for attempt in range(PORT_TRIES):
            try:
                self._start_once(begun, loaded)
                return
            except ServerDied:
                # Between our look and its bind somebody else took the port. A mod can fake this line and only
                # gains a second, equal try.
                last = attempt == PORT_TRIES - 1
                if last or "Failed to bind socket" not in "\n".join(diagnose.log_tail(self.place.log)):
                    raise
                self.release()

    def _start_once(self, begun: Callable[[], None], loaded: Callable[[], bool]) -> None:
        self._spawn()
        begun()
        deadline = time.monotonic() + self.limits.load_s
        Gate.wait(lambda: self._up(loaded), lambda: self._check(deadline, "loading took"))
        self.gate.steps(1, self.watch("the first step took"))  # a port that was taken shows here

    def _up(self, loaded: Callable[[], bool]) -> bool:
        return self.gate.attached and loaded() and self.gate.idle_waits > 0

    def _spawn(self) -> None:
        place = self.place
        self.port = _free_port(socket.SOCK_DGRAM)
        place.write_world(self.isolation)
        place.write_config(self.mapgen, self.port, _free_port(socket.SOCK_STREAM), self.settings)
        self.channel = Channel(place.channel)
        self.gate = Gate(place.gate_page, place.step_s, self.install.gate_mode)
        for path in (place.channel / "evt", place.gate_page):
            self.isolation.grant(path)
        # A copy: the cache may lie where the subject cannot go.
        shutil.copyfile(gate.library(), place.gate_library)
        place.publish()
        command = [str(self.install.server), "--config", folder.CONFIG, "--world", folder.WORLD]
        command += ["--gameid", GAME_ID, "--logfile", ""]
        environment = self.gate.environment(folder.GATE_PAGE, folder.GATE_LIBRARY)
        self._ended = False
        self._process = self.isolation.spawn(
            command,
            binds=place.binds(),
            env={"HOME": "/tmp", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **environment},  # noqa: S108
            limits=self.limits.whole,
            # Addresses order tables that are keyed by functions or tables.
            fixed_addresses=True,
            stdout=place.log,
        )

    # -- while it runs

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def watch(self, what: str) -> Callable[[], None]:
        """A check for waiting: raises when the server has died, or one step takes longer than allowed."""
        state = [self.gate.done, time.monotonic() + self.limits.step_s]

        def check() -> None:
            if self.gate.done != state[0]:
                state[:] = [self.gate.done, time.monotonic() + self.limits.step_s]
            self._check(state[1], what)

        return check

    def _check(self, deadline: float, what: str) -> None:
        if not self.running:
            raise self.death()
        if time.monotonic() > deadline:
            tail = diagnose.log_tail(self.place.log)
            raise StepTimeout("time", f"{what} longer than the time limit", tail)

    def death(self) -> ServerDied:
        """What the end of the process means."""
        assert self._process is not None
        code = self._process.poll()
        assert code is not None
        tail = diagnose.log_tail(self.place.log)
        cause, reason = diagnose.explain(code, self._process.verdict, tail)
        return ServerDied(cause, reason, tail)

    # -- the end

    def stop(self, ask: Callable[[], None]) -> ServerDied | None:
        """End the server cleanly; `ask` makes it request its own shutdown. Returns what went wrong."""
        assert self._process is not None
        ask()
        self.gate.end(self.watch("the last step took"))
        try:
            code = self._process.wait(EXIT_S)
        except TimeoutError:
            self.kill()
            return ServerDied("time", "the server does not shut down", diagnose.log_tail(self.place.log))
        if code == 0 and not self._process.verdict:
            return None
        failure = self.death()
        reason = f"the server did not shut down cleanly: {failure.reason}"
        return ServerDied("shutdown", reason, failure.log_tail)

    def kill(self) -> None:
        """End the process now."""
        if self._process is not None:
            self._process.kill()

    def release(self) -> None:
        """Kill what still runs and let go of the files."""
        self.kill()
        if self._process is not None and not self._ended:
            self._ended = True
            self.gate.close()
            self.channel.close()


def _free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
