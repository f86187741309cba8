"""Root's helper for the mode without namespaces: runs one subject as another user and leaves nothing behind.

Started as `python -I -S supervisor.py ORDER STATUS`, with descriptors of an order and for the exit code.
It adopts every orphan of the subject (a "child subreaper"), so that daemons cannot escape; it ends with the
subject, on SIGTERM, and when the judge dies. Standard library only: it runs before anything else is there.
"""

# ruff: noqa: PTH123, PTH207  (no pathlib: its import costs more than all the rest)
from __future__ import annotations

import contextlib
import ctypes
import errno
import glob
import json
import os
import resource
import signal
import sys
from typing import Any, NoReturn

SET_PARENT_DEATH_SIGNAL, SET_CHILD_SUBREAPER, SET_NO_NEW_PRIVILEGES, SET_SECCOMP = 1, 36, 38, 22
DROP_BOUNDING, CAP_LAST = 24, 63
SECCOMP_MODE_FILTER = 2
FIXED_ADDRESSES = 0x0040000
NOT_A_PROGRAM = (errno.ENOENT, errno.EACCES, errno.ENOTDIR, errno.ENOEXEC)

libc = ctypes.CDLL(None, use_errno=True)


class FilterProgram(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def control(option: int, value: int, pointer: Any = 0) -> None:
    """prctl(2), raising OSError."""
    if libc.prctl(option, ctypes.c_ulong(value), pointer, 0, 0):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def become_subject(order: dict[str, Any]) -> None:
    """Give up root, take on the limits and the filter."""
    os.setsid()
    for name, (soft, hard) in order["rlimits"].items():
        resource.setrlimit(getattr(resource, name), (soft, hard))
    for capability in range(CAP_LAST):
        if libc.prctl(DROP_BOUNDING, capability, 0, 0, 0):
            break
    os.setgroups([])
    os.setresgid(order["uid"], order["uid"], order["uid"])
    os.setresuid(order["uid"], order["uid"], order["uid"])
    if order["fixed_addresses"]:
        libc.personality(FIXED_ADDRESSES)
    os.chdir(order["cwd"])
    control(SET_NO_NEW_PRIVILEGES, 1)
    steps = bytes.fromhex(order["filter"])
    program = FilterProgram(len(steps) // 8, steps)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    control(SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program))


def become_program(order: dict[str, Any], trouble: int) -> NoReturn:
    """Turn into the subject's program; a byte in `trouble` says that a failure is not its fault."""
    stage = "set up"
    try:
        become_subject(order)
        stage = order["argv"][0]
        os.execvpe(stage, order["argv"], order["env"])  # noqa: S606
    except OSError as error:
        print(f"{stage}: {error}", file=sys.stderr, flush=True)
        if stage == "set up" or error.errno not in NOT_A_PROGRAM:
            os.write(trouble, b"!")
        os._exit(127 if error.errno == errno.ENOENT else 126)


def descendants() -> list[int]:
    """Every process of the subject, ended and not yet reaped ones included."""
    found = [os.getpid()]
    for pid in found:
        for path in glob.glob(f"/proc/{pid}/task/*/children"):
            with contextlib.suppress(OSError), open(path) as file:
                found.extend(int(word) for word in file.read().split())
    return found[1:]


def end_all() -> None:
    """Kill until nothing is left; all are stopped first, or a fork bomb would replace the dead."""
    stopped: set[int] = set()
    while new := set(descendants()) - stopped:
        for pid in new:
            os.kill(pid, signal.SIGSTOP)
        stopped |= new
    while True:
        for pid in descendants():
            os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def supervise(main: int) -> int:
    """Reap until the main program ends or SIGTERM comes; return the exit code in the shell's manner."""
    while True:
        number = signal.sigwait({signal.SIGCHLD, signal.SIGTERM})
        if number == signal.SIGTERM:
            return 128 + signal.SIGKILL
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid == main:
                code = os.waitstatus_to_exitcode(status)
                return 128 - code if code < 0 else code


def run(order: dict[str, Any], status: int) -> int:
    """Run the subject to its end; its exit code goes to `status` too, unless it could not be set up."""
    os.set_inheritable(status, False)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM})
    control(SET_CHILD_SUBREAPER, 1)
    control(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    trouble, trouble_end = os.pipe()
    main = os.fork()
    if main == 0:
        become_program(order, trouble_end)
    os.close(trouble_end)
    set_up = not os.read(trouble, 1)
    try:
        code = supervise(main)
    finally:
        end_all()
    if set_up:
        os.write(status, b'{"exit-code": %d}\n' % code)
    return code


if __name__ == "__main__":
    with os.fdopen(int(sys.argv[1])) as source:
        given = json.load(source)
    sys.exit(run(given, int(sys.argv[2])))
