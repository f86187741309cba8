"""One running subject: its output, its limits, its end."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from orrery_core.errors import InfrastructureError
from orrery_core.isolation.model import Limits
from orrery_core.isolation.tree import stored, usage

MIB = 1 << 20
TICK_S = 0.05
STORAGE_TICKS = 20
ENTRIES_MAX = 100_000
END_S = 10.0
TAIL = 2000
SIGNAL_VERDICTS = {128 + signal.SIGXCPU: "cpu", 128 + signal.SIGXFSZ: "storage"}


@dataclass
class Running:
    """A started subject, as the watcher needs it.

    Args:
        popen: the outermost process, child of the judge.
        root: the process whose end takes the whole tree along.
        output: read end of its standard output and error.
        status: read end of the status lines, which hold an exit code where the program was reached.
        stop: signal for `root`.
        release: called once when all is over.
    """

    popen: subprocess.Popen[bytes]
    root: int
    output: int
    status: int
    stop: signal.Signals = signal.SIGKILL
    release: Callable[[], None] = lambda: None
    root_fd: int = field(init=False)

    def __post_init__(self) -> None:
        try:
            self.root_fd = os.pidfd_open(self.root)
        except ProcessLookupError:
            # It has ended already and bubblewrap has reaped it; our own child is still there.
            self.root_fd = os.pidfd_open(self.popen.pid)


class SubjectProcess:
    """A subject under watch by a thread of its own, which enforces the limits and collects the output.

    The thread also starts the process: "die with parent" means the thread that forked, and this one lives
    exactly as long as the subject.

    Attributes:
        pid: the root of its tree, seen from the judge.
        verdict: the limit that ended it: wall, cpu, memory, processes, storage or output; None otherwise.
    """

    def __init__(
        self,
        start: Callable[[], Running],
        limits: Limits,
        *,
        stdout: Path | None,
        storage: tuple[Path, ...],
    ) -> None:
        self.pid = 0
        self.verdict: str | None = None
        self._limits = limits
        self._storage = storage
        self._stored_at_start = stored(storage, ENTRIES_MAX)
        self._log = _open_log(stdout)
        self._tail = b""
        self._written = 0
        self._killed = False
        self._code: int | None = None
        self._failure: BaseException | None = None
        self._running: Running | None = None
        self._lock = threading.Lock()
        self._started = threading.Event()
        self._done = threading.Event()
        threading.Thread(target=self._live, args=(start,), name="subject", daemon=True).start()
        self._started.wait()
        if self._failure:
            raise self._failure

    def poll(self) -> int | None:
        """Exit code, 128 + signal where a signal ended it, or None while it runs.

        Raises:
            InfrastructureError: the sandbox could not be set up, so the program never ran.
        """
        if not self._done.is_set():
            return None
        if self._failure:
            raise self._failure
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code.

        Raises:
            TimeoutError: it still runs after `timeout` seconds.
            InfrastructureError: the sandbox could not be set up, so the program never ran.
        """
        if not self._done.wait(timeout):
            raise TimeoutError(f"the subject still runs after {timeout} s")
        code = self.poll()
        assert code is not None
        return code

    def kill(self) -> None:
        """End the whole tree now and wait until nothing of it is left; no effect after its end.

        Raises:
            InfrastructureError: it did not end (a process stuck in the kernel).
        """
        self._stop()
        if not self._done.wait(END_S):
            raise InfrastructureError(
                f"process {self.pid} does not end after SIGKILL",
                mend="look for a stuck file system or device",
            )

    def __enter__(self) -> SubjectProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _stop(self) -> None:
        with self._lock:
            if self._running:
                self._killed = True
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._running.root_fd, self._running.stop)

    def _live(self, start: Callable[[], Running]) -> None:
        try:
            self._running = start()
            self.pid = self._running.root
        except BaseException as error:
            self._failure = error
            os.close(self._log)
            self._done.set()
            return
        finally:
            self._started.set()
        try:
            self._watch(self._running)
            self._code = self._end(self._running)
        except BaseException as error:
            self._failure = error
            self._stop()
        finally:
            os.close(self._log)
            with self._lock:
                os.close(self._running.root_fd)
                self._running = None
            self._done.set()

    def _watch(self, running: Running) -> None:
        ended = os.pidfd_open(running.popen.pid)
        poller = select.poll()
        poller.register(ended, select.POLLIN)
        poller.register(running.output, select.POLLIN)
        begin = time.monotonic()
        next_check = begin
        tick = 0
        try:
            while True:
                wait_ms = max(0.0, next_check - time.monotonic()) * 1000
                ready = {descriptor for descriptor, _ in poller.poll(wait_ms)}
                if running.output in ready and not self._collect(running.output):
                    poller.unregister(running.output)
                if ended in ready:
                    break
                if time.monotonic() >= next_check:
                    self._enforce(self._broken_limit(running.root, time.monotonic() - begin, tick))
                    next_check = time.monotonic() + TICK_S
                    tick += 1
            while self._collect(running.output):
                pass
        finally:
            os.close(ended)

    def _broken_limit(self, root: int, age: float, tick: int) -> str | None:
        limits = self._limits
        if age > limits.wall_s:
            return "wall"
        used = usage(root)
        if used.memory > limits.memory_mb * MIB:
            return "memory"
        if used.cpu_s > limits.cpu_s:
            return "cpu"
        # The kernel's own limit holds first; this one catches kernels that do not count by namespace.
        if used.tasks > 2 * limits.processes + 8:
            return "processes"
        if self._storage and tick % STORAGE_TICKS == 0:
            size, entries = stored(self._storage, ENTRIES_MAX)
            if size - self._stored_at_start[0] > limits.file_mb * MIB or entries > ENTRIES_MAX:
                return "storage"
        return None

    def _enforce(self, verdict: str | None) -> None:
        if verdict and not self.verdict:
            self.verdict = verdict
            self._stop()

    def _collect(self, output: int) -> bool:
        """Move one chunk of output to the log; False at its end."""
        chunk = os.read(output, 1 << 16)
        room = max(0, self._limits.output_mb * MIB - self._written)
        self._written += len(chunk)
        self._tail = (self._tail + chunk)[-TAIL:]
        kept = memoryview(chunk)[:room]
        while kept:
            kept = kept[os.write(self._log, kept) :]
        if len(chunk) > room:
            self._enforce("output")
        return bool(chunk)

    def _end(self, running: Running) -> int:
        outer = running.popen.wait()
        code = 128 - outer if outer < 0 else outer
        status = b""
        while chunk := os.read(running.status, 4096):
            status += chunk
        os.close(running.status)
        os.close(running.output)
        running.release()
        if not self._killed and b"exit-code" not in status:
            text = self._tail.decode(errors="replace").strip()
            raise InfrastructureError(f"the sandbox of the subject could not be set up: {text}")
        if not self._killed:
            self.verdict = self.verdict or SIGNAL_VERDICTS.get(code)
        return code


def _open_log(path: Path | None) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path if path else os.devnull, flags if path else os.O_WRONLY | os.O_CLOEXEC, 0o644)


def read_child(status: int, popen: subprocess.Popen[bytes], output: int) -> int:
    """Process id of the sandbox's first process, from bubblewrap's first status line.

    Raises:
        InfrastructureError: bubblewrap ended before it got that far; its message is in the text.
    """
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(status, 1)
        if not byte:
            popen.wait()
            text = os.read(output, 4096).decode(errors="replace").strip()
            raise InfrastructureError(f"bubblewrap did not start: {text}")
        line += byte
    return int(json.loads(line)["child-pid"])
