"""A system-call filter for subjects: no tracing, no new namespaces, no memory that hides from accounting.

The filter refuses; it does not kill, so that a program which only probes for a call goes on without it.
"""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass

from orrery_core.errors import InfrastructureError

ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
LOAD, JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16

NEW_NAMESPACES = 0x7E020000
"""CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}; CLONE_NEWTIME exists only in calls refused altogether."""

# The same number on every architecture from 424 on.
COMMON = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435,
    "pidfd_getfd": 438, "mount_setattr": 442, "memfd_secret": 447,
}  # fmt: skip

X86_64 = COMMON | {
    "shmget": 29, "socket": 41, "clone": 56, "ptrace": 101, "pivot_root": 155, "mount": 165,
    "umount2": 166, "init_module": 175, "add_key": 248, "request_key": 249, "keyctl": 250,
    "unshare": 272, "perf_event_open": 298, "setns": 308, "process_vm_readv": 310,
    "process_vm_writev": 311, "finit_module": 313, "memfd_create": 319, "kexec_load": 246,
    "bpf": 321, "userfaultfd": 323,
}  # fmt: skip

AARCH64 = COMMON | {
    "shmget": 194, "socket": 198, "clone": 220, "ptrace": 117, "pivot_root": 41, "mount": 40,
    "umount2": 39, "init_module": 105, "add_key": 217, "request_key": 218, "keyctl": 219,
    "unshare": 97, "perf_event_open": 241, "setns": 268, "process_vm_readv": 270,
    "process_vm_writev": 271, "finit_module": 273, "memfd_create": 279, "kexec_load": 104,
    "bpf": 280, "userfaultfd": 282,
}  # fmt: skip

SPECIAL = ("clone", "clone3", "socket")


@dataclass(frozen=True)
class Machine:
    """The kernel's token of an architecture, start of a second call table (0: none), and call numbers."""

    token: int
    second_table: int
    numbers: dict[str, int]


MACHINES = {
    "x86_64": Machine(0xC000003E, 0x40000000, X86_64),
    "aarch64": Machine(0xC00000B7, 0, AARCH64),
}


def build(*, sockets: bool, machine: str = "") -> bytes:
    """The filter as an array of `struct sock_filter`.

    Args:
        sockets: whether new sockets may be made; those handed over work either way.

    Raises:
        InfrastructureError: the call numbers of this machine are not known here.
    """
    name = machine or platform.machine()
    if name not in MACHINES:
        raise InfrastructureError(
            f"no system-call filter for machine type {name!r}", mend=f"use one of {', '.join(MACHINES)}"
        )
    target = MACHINES[name]
    numbers = target.numbers
    program = [
        _step(LOAD, ARCHITECTURE),
        _step(JUMP_EQUAL, target.token, 1, 0),
        _step(RETURN, KILL),
        _step(LOAD, NUMBER),
    ]
    if target.second_table:
        program += [_step(JUMP_GREATER_EQUAL, target.second_table, 0, 1), _step(RETURN, KILL)]
    for call in sorted(numbers.keys() - set(SPECIAL)):
        program += _refuse(numbers[call], errno.EPERM)
    # A library falls back to clone, whose flags can be seen, where clone3 does not exist.
    program += _refuse(numbers["clone3"], errno.ENOSYS)
    if not sockets:
        program += _refuse(numbers["socket"], errno.EACCES)
    program += [
        _step(JUMP_EQUAL, numbers["clone"], 0, 3),
        _step(LOAD, FIRST_ARGUMENT),
        _step(JUMP_ANY_BIT, NEW_NAMESPACES, 0, 1),
        _step(RETURN, ERRNO | errno.EPERM),
        _step(RETURN, ALLOW),
    ]
    return b"".join(program)


def _refuse(number: int, code: int) -> list[bytes]:
    return [_step(JUMP_EQUAL, number, 0, 1), _step(RETURN, ERRNO | code)]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
