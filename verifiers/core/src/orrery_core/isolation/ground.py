"""Which isolation this machine allows, found by running it, and the start of subjects in it."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from orrery_core.errors import InfrastructureError
from orrery_core.isolation import apart, seccomp
from orrery_core.isolation.launch import Order, sandbox, words
from orrery_core.isolation.model import SUBJECT_UID, Bind, Limits
from orrery_core.isolation.process import Running, SubjectProcess, read_child
from orrery_core.isolation.tools import addresses_can_be_fixed, find_bwrap, find_tool
from orrery_core.isolation.userns import user_namespace

NESTED_UID, NESTED, UID = "nested-uid", "nested", "uid"
MODES = (NESTED_UID, NESTED, UID)
PROBE_LIMITS = Limits(wall_s=60, cpu_s=5, memory_mb=256, file_mb=16, processes=16, output_mb=1)
MEND = (
    "run the verifier as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
    "kernel.apparmor_restrict_unprivileged_userns=0) and install bubblewrap"
)


class Isolation:
    """A way to run submitted code on this machine; made by `detect`.

    Attributes:
        mode: "nested-uid": other uid and own namespaces. "nested": own namespaces, the judge's uid, an empty
            /proc. "uid": other uid, limits and file permissions only; no private view of the file system.
        uid: the user that the subject is, as it sees itself.
    """

    def __init__(self, mode: str, *, fresh_proc: bool = False) -> None:
        self.mode = mode
        self.uid = apart.free_uid() if mode == UID else SUBJECT_UID
        self._fresh_proc = fresh_proc

    @classmethod
    def detect(cls) -> Isolation:
        """The strongest mode that holds here.

        Raises:
            InfrastructureError: none does; each one's reason is in the text.
        """
        reasons = []
        for mode in MODES:
            try:
                return cls.probe(mode)
            except InfrastructureError as error:
                reasons.append(f"{mode}: {error.message}")
        raise InfrastructureError("submitted code cannot be isolated here: " + "; ".join(reasons), mend=MEND)

    @classmethod
    def probe(cls, mode: str) -> Isolation:
        """Try `mode` by running a subject that looks for a secret of the judge.

        Raises:
            InfrastructureError: it cannot run here, or does not hold.
        """
        if mode not in MODES:
            raise ValueError(f"unknown isolation mode {mode!r}")
        if mode != NESTED and os.geteuid() != 0:
            raise InfrastructureError("the judge is not root")
        isolation = cls(mode)
        try:
            isolation._prove(proc=False)
        except OSError as error:
            raise InfrastructureError(f"the probe could not be prepared: {error}") from error
        if mode != UID:
            isolation._fresh_proc = True
            try:
                isolation._prove(proc=True)
            except InfrastructureError:
                isolation._fresh_proc = False
        return isolation

    @property
    def addresses(self) -> str:
        """ "fixed" where `fixed_addresses` can be had here, else "random"; part of comparability."""
        return "fixed" if addresses_can_be_fixed() else "random"

    def grant(self, path: Path) -> None:
        """Hand a file, or a directory with all it holds, to the subject; symbolic links are not followed."""
        if self.mode == NESTED:
            return
        os.chown(path, self.uid, self.uid, follow_symlinks=False)
        if path.is_symlink() or not path.is_dir():
            return
        for _, folders, files, descriptor in os.fwalk(path, follow_symlinks=False):
            for name in folders + files:
                os.chown(name, self.uid, self.uid, dir_fd=descriptor, follow_symlinks=False)

    def spawn(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        binds: Sequence[Bind] = (),
        env: Mapping[str, str],
        limits: Limits,
        cwd: str = "/",
        proc: bool = False,
        network: bool = True,
        fixed_addresses: bool = False,
        stdout: Path | None = None,
        stdin: int | None = None,
    ) -> SubjectProcess:
        """Start a program as the subject.

        Args:
            argv: the program and its arguments, named as the subject sees them.
            binds: what it sees besides /usr, a private /tmp and the usual devices.
            env: its whole environment; acts on the program itself alone (LD_PRELOAD).
            proc: whether /proc shows its own processes; empty otherwise.
            network: whether it shares the judge's network; otherwise a private one with nothing in it.
            fixed_addresses: no randomisation of its address space, where that can be had (see `addresses`).
            stdout: file for its standard output and error together; dropped where None.
            stdin: descriptor for its standard input (one end of a socket, see `pipes`); /dev/null where None.

        Raises:
            InfrastructureError: a bind is missing, or the sandbox does not start.
        """
        fixed = fixed_addresses and addresses_can_be_fixed()
        order = Order(words(argv), tuple(binds), dict(env), limits, cwd, proc, network, fixed)
        for bind in order.binds:
            if not bind.source.exists():
                raise InfrastructureError(f"bind {bind.target}: {bind.source} does not exist")
        storage = tuple(bind.source for bind in order.binds if bind.writable)

        def start() -> Running:
            return self._start(order, subprocess.DEVNULL if stdin is None else stdin)

        return SubjectProcess(start, limits, stdout=stdout, storage=storage)

    def _start(self, order: Order, stdin: int) -> Running:
        if self.mode == UID:
            return self._start_apart(order, stdin)
        if self.mode == NESTED:
            return self._start_sandbox(order, stdin, [])
        with user_namespace() as path:
            enter = [find_tool("nsenter"), f"--user={path}", "--preserve-credentials", "--"]
            return self._start_sandbox(order, stdin, enter)

    def _start_apart(self, order: Order, stdin: int) -> Running:
        status, status_end = os.pipe()
        output, output_end = os.pipe()
        try:
            popen, release = apart.start(order, self.uid, stdin=stdin, output=output_end, status=status_end)
        except BaseException:
            os.close(status)
            os.close(output)
            raise
        finally:
            os.close(status_end)
            os.close(output_end)
        return Running(popen, popen.pid, output, status, signal.SIGTERM, release)

    def _start_sandbox(self, order: Order, stdin: int, enter: list[str]) -> Running:
        bwrap, proc, steps = find_bwrap(), self._proc(order.proc), seccomp.build(sockets=True)
        status, status_end = os.pipe()
        output, output_end = os.pipe()
        filter_fd = _in_pipe(steps)
        theirs = (status_end, output_end, filter_fd)
        own_user = self.mode == NESTED_UID
        line = sandbox(bwrap, order, own_user=own_user, proc=proc, status_fd=status_end, filter_fd=filter_fd)
        try:
            try:
                popen = subprocess.Popen(
                    enter + line,
                    stdin=stdin,
                    stdout=output_end,
                    stderr=output_end,
                    env={},
                    pass_fds=(status_end, filter_fd),
                )
            finally:
                for descriptor in theirs:
                    os.close(descriptor)
            return Running(popen, read_child(status, popen, output), output, status)
        except BaseException:
            os.close(status)
            os.close(output)
            raise

    def _proc(self, wanted: bool) -> str:
        if not wanted:
            return "empty"
        if self._fresh_proc:
            return "fresh"
        if self.mode == NESTED:
            raise InfrastructureError(
                "a /proc for the subject would show the judge's processes here",
                mend="run the verifier as root",
            )
        return "outer"

    def _prove(self, *, proc: bool) -> None:
        """Run a subject that reports who it is, tries two secrets and writes where it may."""
        secret = secrets.token_hex(16)
        with tempfile.TemporaryDirectory(prefix="orrery-probe-") as name:
            folder = Path(name)
            hidden, given, log = folder / "hidden", folder / "given", folder / "log"
            hidden.mkdir(mode=0o700)
            (hidden / "secret").write_text(secret)
            given.mkdir()
            self.grant(given)
            # A path of its own: without namespaces it is a real one, and another probe may run too.
            target = f"/{folder.name}"
            script = f"id -u; cat {hidden}/secret /proc/{os.getpid()}/environ; echo done > {target}/trace"
            process = self.spawn(
                [find_tool("sh"), "-c", script],
                binds=[Bind(given, target, writable=True)],
                env={"PATH": "/usr/bin:/bin"},
                limits=PROBE_LIMITS,
                proc=proc,
                stdout=log,
            )
            process.wait()
            said = log.read_text(errors="replace")
            if said.split("\n")[0] != str(self.uid):
                ended = f"limit {process.verdict}, " if process.verdict else ""
                raise InfrastructureError(f"the probe did not run: {ended}{said.strip()[-300:]}")
            # Only an environment file holds zero bytes.
            if secret in said or "\0" in said:
                raise InfrastructureError("the probe read what belongs to the judge")
            trace = given / "trace"
            owner = os.geteuid() if self.mode == NESTED else self.uid
            if not trace.is_file() or trace.stat().st_uid != owner:
                raise InfrastructureError("the probe could not write to a directory handed to it")


def _in_pipe(data: bytes) -> int:
    """Read end of a pipe that holds `data` (smaller than a pipe's buffer)."""
    read, write = os.pipe()
    with os.fdopen(write, "wb") as file:
        file.write(data)
    return read
