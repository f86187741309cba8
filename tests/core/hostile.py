"""A submission that attacks the judge: prints whatever it gets hold of, one finding per line.

Run as `hostile.py ATTACK [JSON]`. Standard library of any Python 3 only.
"""

import ctypes
import json
import os
import re
import signal
import socket
import sys
import time

TOKEN = re.compile(rb"TOKEN-[0-9a-f]+")
libc = ctypes.CDLL(None, use_errno=True)


def found(*words):
    print("FOUND", *words, flush=True)


def attempt(action, *args):
    try:
        return action(*args)
    except OSError:
        return None


def works(action, *args):
    try:
        action(*args)
    except OSError:
        return False
    return True


def processes(known):
    listed = [int(name) for name in attempt(os.listdir, "/proc") or [] if name.isdigit()]
    return sorted({*known, os.getppid(), 1, *listed} - {os.getpid()})


def read(path):
    return attempt(contents, path, 0, 1 << 20) or b""


def contents(path, start, length):
    with open(path, "rb") as file:
        file.seek(start)
        return file.read(length)


def tokens(data, where):
    for token in set(TOKEN.findall(data)):
        found(token.decode(), where)


def environ(given):
    for pid in processes(given["pids"]):
        tokens(read(f"/proc/{pid}/environ"), "environ")


def memory(given):
    for pid in processes(given["pids"]):
        for line in read(f"/proc/{pid}/maps").decode().splitlines():
            if "[stack]" in line:
                low, high = (int(word, 16) for word in line.split()[0].split("-"))
                data = attempt(contents, f"/proc/{pid}/mem", low, high - low)
                tokens(data or b"", "memory")
    for pid in given["pids"]:
        local = ctypes.create_string_buffer(64)
        vector = (ctypes.c_void_p * 2)(ctypes.addressof(local), 64)
        remote = (ctypes.c_void_p * 2)(0x400000, 64)
        if libc.process_vm_readv(pid, vector, 1, remote, 1, 0) > 0:
            found("process_vm_readv", pid)


def trace(given):
    for pid in processes(given["pids"]):
        if libc.ptrace(16, pid, 0, 0) == 0:
            found("ptrace", pid)


def signals(given):
    for pid in given["pids"]:
        if works(os.kill, pid, signal.SIGKILL):
            found("killed", pid)


def files(given):
    for path in given["secrets"] + ["/etc/shadow"]:
        data = read(path)
        tokens(data, path)
        if path == "/etc/shadow" and data:
            found("/etc/shadow")


def descriptors(given):
    for descriptor in range(3, 1024):
        if works(os.fstat, descriptor):
            found("descriptor", descriptor)


def write(given):
    for folder in given["folders"]:
        path = folder + "/hostile-was-here"
        if works(os.open, path, os.O_CREAT | os.O_WRONLY):
            found("wrote", path)
            os.unlink(path)
    for path in given["read_only"]:
        if works(os.open, path, os.O_WRONLY) or works(os.chmod, path, 0o777):
            found("changed", path)


def network(given):
    for family, address in (
        (socket.AF_INET, ("127.0.0.1", given["port"])),
        (socket.AF_UNIX, given["abstract"]),
    ):
        if works(connect, family, address):
            found("connected", family)


def connect(family, address):
    socket.socket(family).connect(address)


def privileges(given):
    if works(os.setuid, 0):
        found("setuid")
    if libc.unshare(0x10000000) == 0:
        found("unshare")
    if works(os.memfd_create, "x"):
        found("memfd")


def forks(given):
    while True:
        attempt(os.fork)


def breed(given):
    """Fork until it is refused, up to a number that a broken limit shows by."""
    number = 0
    while number < given["enough"]:
        pid = attempt(os.fork)
        if pid is None:
            break
        if pid == 0:
            time.sleep(1000)
        number += 1
    print(number, flush=True)


def bloat(given):
    kept = []
    while True:
        kept.append(bytearray(b"x" * 1_000_000))


def chatter(given):
    while True:
        os.write(1, b"x" * 65536)


def spin(given):
    while True:
        pass


def sleep(given):
    print("ready", flush=True)
    time.sleep(1000)


def fill(given):
    for number in range(1_000_000):
        with open(f"{given['folder']}/{number}", "wb") as file:
            file.write(b"x" * 500_000)


def daemon(given):
    """Leave a process that has its own session and no living parent, and ignores what can be ignored."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            print("daemon", flush=True)
            time.sleep(1000)
        os._exit(0)
    os.wait()
    if given.get("stay"):
        time.sleep(1000)


if __name__ == "__main__":
    globals()[sys.argv[1]](json.loads(sys.argv[2]) if len(sys.argv) > 2 else {})
    print("END", flush=True)
