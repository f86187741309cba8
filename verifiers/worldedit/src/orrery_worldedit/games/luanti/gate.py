"""The step gate: exact control of a server's game time through a preloaded library and a shared page."""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from orrery_core.errors import InfrastructureError

from .install import GateMode

SOURCE = Path(__file__).with_name("gate.c")
PREBUILT = Path("/opt/orrery/lib")  # images without a compiler carry the library here, under its cache name

_FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared", "-fvisibility=hidden")
_LIBS = ("-ldl", "-lpthread")

_PAGE = 4096
_MAGIC = 0x4F525259
_LAYOUT = 4
# Slots of `struct page` in gate.c, eight bytes each.
_TARGET, _DONE, _IDLE_WAITS = 1, 2, 3
_FREERUN, _STEP_US, _ATTACHED, _RECEIVING, _SENDING, _RECEIVED, _SENT, _ENDING = range(5, 13)

_POLL_S = 0.0002  # how often the page is looked at: a step of an empty world takes about this long

Watch = Callable[[], None]
"""Called while waiting. Raises when waiting is hopeless: the server died, or a limit has passed."""


@cache
def library() -> Path:
    """The gate's shared library, built on first use.

    Looks at `ORRERY_GATE_LIBRARY`, then at the image's prebuilt libraries, then in the cache; compiles last.

    Raises:
        InfrastructureError: no library and no compiler, or the compiler fails.
    """
    given = os.environ.get("ORRERY_GATE_LIBRARY")
    if given:
        if not Path(given).is_file():
            raise InfrastructureError(
                f"ORRERY_GATE_LIBRARY={given} is not a file", mend="unset it or build the library there"
            )
        return Path(given)
    name = _library_name()
    for folder in (PREBUILT, _cache_folder()):
        if (folder / name).is_file():
            return folder / name
    return build(_cache_folder())


def build(folder: Path) -> Path:
    """Compile the library into `folder` under a name that holds the source's digest.

    Several processes may do this at once: each compiles to its own file and renames it into place.
    """
    compiler = next((tool for tool in ("cc", "gcc", "clang") if shutil.which(tool)), None)
    if compiler is None:
        raise InfrastructureError(
            "no C compiler for the step gate, without which game time cannot be controlled",
            mend="apt-get install gcc libc6-dev, or set ORRERY_GATE_LIBRARY to a built gate library",
        )
    folder.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix="gate-", suffix=".tmp", dir=folder)
    os.close(handle)
    unfinished = Path(name)
    try:
        done = subprocess.run(
            [compiler, *_FLAGS, str(SOURCE), "-o", name, *_LIBS], capture_output=True, text=True, timeout=120
        )
        if done.returncode != 0:
            raise InfrastructureError(
                f"{compiler} cannot build the step gate:\n{done.stderr.strip()}",
                mend="apt-get install gcc libc6-dev",
            )
        unfinished.chmod(0o755)
        return unfinished.rename(folder / _library_name())
    finally:
        unfinished.unlink(missing_ok=True)


def _library_name() -> str:
    digest = hashlib.sha256(SOURCE.read_bytes() + " ".join(_FLAGS).encode()).hexdigest()[:16]
    return f"luanti-gate-{digest}.so"


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "orrery"


class Gate:
    """The judge's side of one server's gate.

    Args:
        page: file to create for the shared page.
        step_s: length of one game step in seconds.
        mode: see `Install.gate_mode`.
    """

    EPOCH = 1_700_000_000
    # Of what is random in the process, such as the order of pairs(). Not the world's seed: registries of
    # worlds with different seeds stay comparable.
    SEED = 42

    def __init__(self, page: Path, step_s: float, mode: GateMode) -> None:
        self.page = page
        self.step_us = round(step_s * 1_000_000)
        self.mode = mode
        slots = [0] * (_PAGE // 8)
        slots[0], slots[_STEP_US] = _MAGIC, self.step_us
        page.write_bytes(struct.pack(f"<{len(slots)}Q", *slots))
        with page.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _PAGE)

    def environment(self, page: str, library: str) -> dict[str, str]:
        """What the server's process needs; the library takes it out of the environment before any mod runs.

        Args:
            page: where the server's process sees the page.
            library: where it sees the gate's library.
        """
        return {
            "LD_PRELOAD": library,
            "GATE_PAGE": page,
            "GATE_MODE": self.mode,
            "GATE_EPOCH": str(self.EPOCH),
            "GATE_SEED": str(self.SEED),
        }

    def _get(self, slot: int) -> int:
        return int(struct.unpack_from("<Q", self._map, 8 * slot)[0])

    def _set(self, slot: int, value: int) -> None:
        struct.pack_into("<Q", self._map, 8 * slot, value)

    @property
    def done(self) -> int:
        """Steps finished since the server started."""
        return self._get(_DONE)

    @property
    def attached(self) -> bool:
        """Whether the library is loaded in the server; raises when it was built for another page layout."""
        layout = self._get(_ATTACHED)
        if layout not in (0, _LAYOUT):
            raise InfrastructureError(
                f"the step gate's library speaks layout {layout}, not {_LAYOUT}",
                mend="rebuild the library ORRERY_GATE_LIBRARY points to",
            )
        return layout == _LAYOUT

    @property
    def idle_waits(self) -> int:
        """How often the server has looked for a packet and found none; grows while the server is paused."""
        return self._get(_IDLE_WAITS)

    @property
    def receiving(self) -> bool:
        """Whether a datagram is on its way from the server's socket to its packet queue."""
        return bool(self._get(_RECEIVING))

    @property
    def sending(self) -> bool:
        """Whether the server still has something to put into its socket."""
        return bool(self._get(_SENDING))

    @property
    def received(self) -> int:
        """Datagrams that the server has taken from its socket."""
        return self._get(_RECEIVED)

    @property
    def sent(self) -> int:
        """Datagrams that the server has put into its socket."""
        return self._get(_SENT)

    def grant(self, steps: int) -> int:
        """Let the server take `steps` more steps; returns the value of `done` when it has."""
        target = self.done + steps
        self._set(_TARGET, target)
        return target

    def steps(self, count: int, watch: Watch) -> None:
        """Run exactly `count` steps, then the server is paused again."""
        target = self.grant(count)
        self.wait(lambda: self.done >= target, watch)

    def settle(self, watch: Watch) -> None:
        """Wait until the paused server has handled every packet in its queue.

        The first empty look may have begun before the last packet arrived; the second has not.
        """
        seen = self.idle_waits
        self.wait(lambda: self.idle_waits >= seen + 2, watch)

    def end(self, watch: Watch) -> None:
        """Let a server whose shutdown was requested take the step in which it hears of it, and no other."""
        if self.mode == "510":  # the main thread leaves by itself once that step is over
            self.grant(1)
            return
        self.steps(1, watch)
        self._set(_ENDING, 1)
        self.wait(lambda: self._get(_ENDING) == 2, watch)
        self.grant(1)  # the main thread wakes; what it adds then is taken by nobody

    def freerun(self) -> None:
        """Open the gate for good: the server runs in real time from here on."""
        self._set(_FREERUN, 1)

    @staticmethod
    def wait(condition: Callable[[], bool], watch: Watch) -> None:
        while not condition():
            watch()
            if not condition():
                time.sleep(_POLL_S)

    def close(self) -> None:
        self._map.close()
