"""The base files of the host profile: an allow-listed copy of /etc with own accounts, and empty places.

Nothing of the host's /home, /root, /var, /tmp or /opt is ever shown, and of /etc only what programs need to
run.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from orrery_core.errors import InfrastructureError

from orrery.environments.state import make_directory, remove_tree, write_file

FORMAT = 2
"""Raise when the content below changes, so that cached skeletons are built anew."""

ETC = """
    ImageMagick-* X11 adduser.conf alternatives apt bash.bashrc bash_completion.d bindresvport.blacklist
    ca-certificates ca-certificates.conf chromium chromium.d dbus-1 debconf.conf debian_version default
    deluser.conf dpkg environment ethertypes fonts gai.conf glvnd groff gss gtk-* host.conf init.d inputrc
    iproute2 issue java* ld.so.cache ld.so.conf ld.so.conf.d libaudit.conf locale.alias locale.gen
    localtime login.defs lsb-release magic magic.mime manpath.config maven mime.types minetest luanti mono
    mke2fs.conf nanorc netconfig networks nsswitch.conf os-release pam.conf pam.d perl profile profile.d
    protocols pulse python3* rc?.d rmt rpc security selinux services sgml shells skel ssl terminfo
    timezone ucf.conf vim vulkan wgetrc xattr.conf xdg xml
""".split()  # noqa: SIM905
PRIVATE = ("ssl/private", "apt/auth.conf", "apt/auth.conf.d", "security/opasswd")

PLACES = """
    app logs tests solution tmp var/tmp var/lib/dpkg var/lib/apt var/log var/cache/apt run root home opt
    srv mnt media proc dev usr opt/orrery/python opt/orrery/site opt/orrery/src
""".split()  # noqa: SIM905
LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")

ACCOUNTS = {
    "passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
}


@cache
def skeleton(state: Path) -> Path:
    """The cached skeleton that matches this machine's /etc as first seen; built when missing."""
    cache = state / "skeleton"
    cache.mkdir(exist_ok=True)
    target = cache / _fingerprint()
    if target.exists():
        os.utime(target)
        return target
    building = Path(tempfile.mkdtemp(prefix="building-", dir=cache))
    try:
        _build(building / "root")
        with suppress(OSError):  # another process was faster
            (building / "root").rename(target)
    finally:
        remove_tree(building)
    return target


def _chosen() -> list[Path]:
    return sorted(
        path for path in Path("/etc").iterdir() if any(fnmatch.fnmatch(path.name, pattern) for pattern in ETC)
    )


def _walk(path: Path) -> Iterator[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path))


def _fingerprint() -> str:
    digest = hashlib.sha256(f"{FORMAT} {os.geteuid()}".encode())
    for path in [*_chosen(), Path("/etc/resolv.conf")]:
        rows = [(str(path), path.lstat())] if path.exists() else []
        if path.is_dir() and not path.is_symlink():
            rows += [(entry.path, entry.stat(follow_symlinks=False)) for entry in _walk(path)]
        for name, status in sorted(rows, key=lambda row: row[0]):
            digest.update(f"{name} {status.st_mtime_ns} {status.st_size} {status.st_mode}\n".encode())
    return digest.hexdigest()[:24]


def _build(root: Path) -> None:
    for place in PLACES:
        make_directory(root / place)
    for place in ("tmp", "var/tmp"):
        (root / place).chmod(0o1777)
    (root / "root").chmod(0o700)
    for name in LINKS:
        path = Path("/", name)
        if path.is_symlink():
            (root / name).symlink_to(path.readlink())
        elif path.is_dir():
            raise InfrastructureError(
                f"{path} is not a link into /usr, the host profile needs a merged /usr",
                mend="--ek profile=rootfs",
            )
    make_directory(root / "etc")
    for path in _chosen():
        _copy(path, root / "etc" / path.name)
    write_identity(root)


def write_identity(root: Path) -> None:
    """Accounts (Debian's own list where it is at hand), host name and resolver under `root`/etc."""
    write_network_files(root)
    for name, text in ACCOUNTS.items():
        master = Path(f"/usr/share/base-passwd/{name}.master")
        if master.exists():
            text = master.read_text().replace(":*:", ":x:")
        write_file(root / "etc" / name, text)
        names = [line.split(":")[0] for line in text.splitlines()]
        secret, suffix = ("shadow", ":*:19000:0:99999:7:::") if name == "passwd" else ("gshadow", ":*::")
        write_file(root / "etc" / secret, "".join(f"{name}{suffix}\n" for name in names), 0o640)


def write_network_files(root: Path) -> None:
    """Host name, hosts and this machine's resolver under `root`/etc."""
    write_file(root / "etc/hostname", "sandbox\n")
    write_file(root / "etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n")
    with suppress(OSError):
        write_file(root / "etc/resolv.conf", Path("/etc/resolv.conf").read_text())


def _copy(source: Path, target: Path) -> None:
    """Copy what this user may read, links as links, without the private parts."""
    relative = str(source.relative_to("/etc"))
    if relative in PRIVATE:
        return
    if source.is_symlink():
        target.symlink_to(source.readlink())
    elif source.is_dir():
        make_directory(target)
        with suppress(PermissionError):
            for child in source.iterdir():
                _copy(child, target / child.name)
    elif source.is_file() and os.access(source, os.R_OK):
        shutil.copy2(source, target)
