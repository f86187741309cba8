"""Unpacked images for the sandbox's rootfs profile: the container's tools without a container engine."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from orrery_core.errors import InfrastructureError

from orrery.environments.state import locked, remove_tree, require_space, rootfs_dir, state_dir
from orrery.images.content import content_hash, stage
from orrery.images.files import root_file, root_of
from orrery.images.roots import Report, debian_archive

_HASH = ".orrery-content"  # beside the folder's tree, so that nothing inside tells of it
_NEEDED_MB = 2048


def unpack(name: str, *, force: bool, report: Report) -> bool:
    """Unpacks an image where the sandbox looks for it; false when the one there is current.

    As an ordinary user everything belongs to that user, which is the one user such a sandbox has.

    Raises:
        InfrastructureError: mmdebstrap is missing or failed, or the disk is full.
    """
    target = rootfs_dir(name)
    mark = target.with_name(target.name + _HASH)
    content = content_hash(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    with locked(target.with_name(target.name + ".lock")):
        if not force and target.is_dir() and mark.exists() and mark.read_text() == content:
            return False
        require_space(state_dir(), _NEEDED_MB)
        with tempfile.TemporaryDirectory(prefix="orrery-root-", dir=target.parent) as scratch:
            archive, tree, layer = Path(scratch) / "root.tar", Path(scratch) / "tree", Path(scratch) / "layer"
            debian_archive(root_file(root_of(name)), archive, report)
            report(f"{name}: unpacking to {target}")
            tree.mkdir(mode=0o755)
            _run("tar", "-xpf", archive, "--numeric-owner", "--exclude=./dev/*", "-C", tree)
            stage(name, layer)
            _run("cp", "-a", "--no-preserve=ownership", f"{layer}/.", tree)
            mark.unlink(missing_ok=True)
            if target.exists():
                remove_tree(target)
            tree.rename(target)
        mark.write_text(content)
        return True


def _run(*command: str | Path) -> None:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise InfrastructureError(f"{command[0]} failed: {done.stderr.strip()[-500:]}")
