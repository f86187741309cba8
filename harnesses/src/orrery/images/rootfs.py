"""Unpacked images for the sandbox's rootfs profile: the container's tools without a container engine."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from orrery_core.errors import InfrastructureError

from orrery.environments.state import locked, remove_tree, require_space, rootfs_dir, state_dir
from orrery.images.content import content_hash, stage
from orrery.images.files import root_file, root_of
from orrery.images.roots import Report, debian_archive

_NEEDED_MB = 2048


def unpack(names: Sequence[str], *, force: bool, report: Report) -> list[str]:
    """Unpacks images where the sandbox looks for them; returns those that were not there or not current.

    As an ordinary user everything belongs to that user, which is the one user such a sandbox has.

    Raises:
        InfrastructureError: mmdebstrap is missing or failed, or the disk is full.
    """
    state = state_dir()
    with locked(state / "rootfs.lock"):
        due = [name for name in names if force or not _is_current(name)]
        for root in dict.fromkeys(root_of(name) for name in due):
            require_space(state, _NEEDED_MB)
            with tempfile.TemporaryDirectory(prefix="unpack-", dir=state) as scratch:
                archive = Path(scratch) / "root.tar"
                debian_archive(root_file(root), archive, report)
                for name in due:
                    if root_of(name) == root:
                        report(f"{name}: unpacking to {rootfs_dir(name)}")
                        _unpack(name, archive, Path(scratch))
    return due


def _mark(name: str) -> Path:
    """Holds the hash of what was unpacked; beside the tree, so that nothing inside tells of it."""
    target = rootfs_dir(name)
    return target.with_name(target.name + ".content")


def _is_current(name: str) -> bool:
    mark = _mark(name)
    return rootfs_dir(name).is_dir() and mark.exists() and mark.read_text() == content_hash(name)


def _unpack(name: str, archive: Path, scratch: Path) -> None:
    target, mark, content = rootfs_dir(name), _mark(name), content_hash(name)
    tree, layer = scratch / "tree", scratch / f"{target.name}-layer"
    tree.mkdir(mode=0o755)
    _run("tar", "-xpf", archive, "--numeric-owner", "--exclude=./dev/*", "-C", tree)
    stage(name, layer)
    _run("cp", "-a", "--no-preserve=ownership", f"{layer}/.", tree)
    target.parent.mkdir(parents=True, exist_ok=True)
    mark.unlink(missing_ok=True)
    if target.exists():
        remove_tree(target)
    tree.rename(target)
    mark.write_text(content)


def _run(*command: str | Path) -> None:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise InfrastructureError(f"{command[0]} failed: {done.stderr.strip()[-500:]}")
