"""Starts every command of a sandbox. Runs as an own trusted process outside of it, one per sandbox.

It joins the sandbox's namespaces itself instead of going through `nsenter` and `setpriv`: a `setpriv` that
runs after `nsenter` is loaded from the sandbox's file system, where a hostile root could replace it (or a
library of it) and so run code that still holds the host's capabilities. Here they are gone before anything
from inside runs.

Per command it forks a *supervisor* into the sandbox: the supervisor drops privileges, becomes the reaper of
every orphan below it, forks the command and reports its exit code. So everything the command started stays
below the supervisor for as long as the command runs, whatever session it moved to, and dies by walking that
tree.

Runs under `python -I -S` with the standard library only. After start-up nothing may be imported: the files
that it sees are not ours any more.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

PR_SET_DUMPABLE, PR_SET_NAME, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_CAP_AMBIENT = 4, 15, 24, 36, 47
AMBIENT_CLEAR_ALL = 4
CAPABILITY_VERSION = 0x20080522

KEPT_CAPABILITIES = frozenset(
    # chown, dac_override, fowner, fsetid, kill, setgid, setuid, setpcap, net_bind_service, sys_chroot and
    # setfcap: what Docker grants, less the raw sockets, mknod and audit writes that nothing here needs.
    {0, 1, 3, 4, 5, 6, 7, 8, 10, 18, 31}
)

FILE_LIMIT = 1 << 20


class NoSuchUser(Exception):
    """The image has no such user or group."""


@dataclass(frozen=True)
class Account:
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


class _CapabilityHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _CapabilityData(ctypes.Structure):
    _fields_ = [
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    ]


_libc = ctypes.CDLL(None, use_errno=True)


def find_account(passwd: str, group: str, user: str) -> Account:
    """Resolve `name`, `uid`, `name:group` or `uid:gid` as Docker does.

    Args:
        passwd, group: the texts of the image's /etc/passwd and /etc/group.

    Raises:
        NoSuchUser: a name that is not there; numbers need no entry.
    """
    name, _, wanted = user.partition(":")
    rows = [row for row in (line.split(":") for line in passwd.splitlines()) if len(row) >= 7]
    groups = [row for row in (line.split(":") for line in group.splitlines()) if len(row) >= 4]
    entry = next((row for row in rows if name in (row[0], row[2])), None)
    if entry is None and name == "root":  # our own commands must run even where an agent emptied the list
        return Account(0, 0, (), "/root")
    if entry is None and not name.isdigit():
        raise NoSuchUser(f"the image has no user {name!r}")
    uid = int(entry[2]) if entry else int(name)
    gid = int(entry[3]) if entry else 0
    if wanted:
        found = next((row for row in groups if wanted in (row[0], row[2])), None)
        if found is None and not wanted.isdigit():
            raise NoSuchUser(f"the image has no group {wanted!r}")
        gid = int(found[2]) if found else int(wanted)
    extra = () if wanted or not entry else tuple(int(g[2]) for g in groups if entry[0] in g[3].split(","))
    return Account(uid, gid, extra, (entry[5] if entry else "") or "/")


def _prctl(option: int, *arguments: int) -> int:
    padded = (*arguments, 0, 0, 0, 0)[:4]
    return int(_libc.prctl(option, *(ctypes.c_ulong(value) for value in padded)))


def _drop_capabilities() -> None:
    """Leave only KEPT_CAPABILITIES in force and obtainable, for this process and all that follow it."""
    capability = 0
    while True:
        if capability not in KEPT_CAPABILITIES and _prctl(PR_CAPBSET_DROP, capability) != 0:
            if ctypes.get_errno() != errno.EINVAL:
                raise OSError(ctypes.get_errno(), "cannot shrink the bounding set")
            break  # beyond the last capability that the kernel knows
        capability += 1
    _prctl(PR_CAP_AMBIENT, AMBIENT_CLEAR_ALL)
    header = _CapabilityHeader(CAPABILITY_VERSION, 0)
    data = (_CapabilityData * 2)()
    for capability in KEPT_CAPABILITIES:
        word = data[capability // 32]
        word.effective |= 1 << capability % 32
        word.permitted |= 1 << capability % 32
    if _libc.capset(ctypes.byref(header), ctypes.byref(data)) != 0:
        raise OSError(ctypes.get_errno(), "cannot drop capabilities")


def _read_inside(path: str) -> str:
    """Read a small file of the sandbox; it may be anything, also a pipe."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(handle, FILE_LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(handle)


def _become(user: str, single_uid: bool) -> str:
    """Drop to `user` and to the kept capabilities; returns the home directory."""
    account = find_account(_read_inside("/etc/passwd"), _read_inside("/etc/group"), user)
    if not single_uid:
        os.setgroups(account.groups)
        os.setresgid(account.gid, account.gid, account.gid)
    _drop_capabilities()  # before the uid changes, while the bounding set may still be shrunk
    if not single_uid:
        os.setresuid(account.uid, account.uid, account.uid)
    return account.home


def _exec(request: dict[str, Any], home: str, stdio: list[int]) -> NoReturn:
    """Become the command; what fails from here on fails as a shell would, on standard error."""
    code, what = 126, f"cannot enter {request['cwd']}"
    try:
        os.setsid()
        for target, handle in enumerate(stdio):
            os.dup2(handle, target)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        os.umask(0o022)
        os.chdir(request["cwd"])
        if request["cpus"]:
            os.sched_setaffinity(0, request["cpus"])
        argv = request["argv"]
        code, what = 127, f"cannot run {argv[0]}"
        os.execve(argv[0], argv, {"HOME": home, **request["env"]})  # noqa: S606  its job
    except OSError as error:
        with suppress(OSError):
            os.write(2, f"{what}: {error.strerror}\n".encode())
    os._exit(code)


def _supervise(
    request: dict[str, Any], stdio: list[int], status: socket.socket, attached: dict[str, Any], pidfd: int
) -> None:
    """Enter the sandbox, run one command below this process and report how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for handle in attached["cgroups"]:
        os.write(handle, b"0")
    os.setns(pidfd, attached["namespaces"])
    if "listen" in request:
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", request["listen"]))
        server.listen(128)
        socket.send_fds(status, [b"{}"], [server.fileno()])
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    home = _become(request["user"], attached["single_uid"])
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    command = os.fork()
    if command == 0:
        _exec(request, home, stdio)
    for handle in stdio:
        os.close(handle)
    while True:
        child, how = os.wait()
        if child == command:
            break
    status.send(json.dumps({"exit": os.waitstatus_to_exitcode(how)}).encode())


def _serve(control: socket.socket, attached: dict[str, Any], pidfd: int) -> None:
    """One fork per request; the reply is the supervisor's pid as the host sees it."""
    while True:
        message, handles, _, _ = socket.recv_fds(control, 1, 8)
        if not message:
            return
        for handle in handles:
            os.set_inheritable(handle, False)  # received ones are, and recv_fds ignores its flags
        body, status, *stdio = handles
        with os.fdopen(body, "rb") as file:
            request = json.load(file)
        try:
            child = os.fork()
        except OSError as error:  # the sandbox's first process is dead
            control.send(json.dumps({"error": f"the sandbox has ended ({error.strerror})"}).encode())
        else:
            if child == 0:
                _child(request, stdio, socket.socket(fileno=status), attached, pidfd, control)
            control.send(json.dumps({"pid": child}).encode())
        for handle in (status, *stdio):
            os.close(handle)


def _child(
    request: dict[str, Any],
    stdio: list[int],
    status: socket.socket,
    attached: dict[str, Any],
    pidfd: int,
    control: socket.socket,
) -> NoReturn:
    try:
        control.close()
        _supervise(request, stdio, status, attached, pidfd)
        os._exit(0)
    except NoSuchUser as error:
        status.send(json.dumps({"error": str(error), "kind": "user"}).encode())
    except BaseException as error:
        with suppress(OSError):
            status.send(json.dumps({"error": f"cannot enter the sandbox: {error}"}).encode())
    os._exit(125)


def _hide() -> None:
    """Keep our memory, our binary and our command line out of reach of the processes inside.

    Supervisors are visible in the sandbox's process list. While they are not dumpable nobody without the
    host's CAP_SYS_PTRACE can open their /proc/<pid>/exe and, through it, write to the host's interpreter.
    """
    if _prctl(PR_SET_DUMPABLE, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot become undumpable")
    with open("/proc/self/stat") as file:  # noqa: PTH123
        start, end = map(int, file.read().rpartition(")")[2].split()[45:47])
    ctypes.memset(start, 0, end - start)
    name = ctypes.create_string_buffer(b"orrery-exec")
    _libc.prctl(PR_SET_NAME, name, 0, 0, 0)


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    _hide()
    order = json.loads(control.recv(65536))
    pidfd = os.pidfd_open(order["pid"])
    shared = os.CLONE_NEWNS | os.CLONE_NEWIPC | os.CLONE_NEWUTS | os.CLONE_NEWCGROUP
    attached: dict[str, Any] = {
        "namespaces": shared | (os.CLONE_NEWNET if order["own_network"] else 0),
        "single_uid": order["single_uid"],
        "cgroups": [os.open(path, os.O_WRONLY | os.O_CLOEXEC) for path in order["cgroups"]],
    }
    try:
        os.setns(pidfd, os.CLONE_NEWPID | (os.CLONE_NEWUSER if order["single_uid"] else 0))
    except OSError as error:
        control.send(json.dumps({"error": f"cannot join the sandbox: {error}"}).encode())
        return
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # finished supervisors vanish by themselves
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the runner's to handle
    # From here on children see the sandbox's files, so no import may ever look for one.
    sys.path.clear()
    sys.meta_path.clear()
    sys.path_hooks.clear()
    control.send(b"{}")
    _serve(control, attached, pidfd)


if __name__ == "__main__":
    main()
