"""The files of one world: folder, configuration, mods, and where the server's process sees them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orrery_core.isolation import Bind, Isolation

from .failures import ServerDied
from .install import GAME_ID, Install
from .modconf import name_list, read_conf

PROBE = Path(__file__).with_name("probe")

# Where the subject sees things: the same in every run, so that paths in its view tell nothing.
WORLD = "/game/world"
MODS = f"{WORLD}/worldmods"
CONFIG = "/game/config/server.conf"
CHANNEL = "/game/channel"
GATE_PAGE = "/game/gate/page"
GATE_LIBRARY = "/game/gate/gate.so"

_WORLD_MT = f"""gameid = {GAME_ID}
world_name = world
backend = sqlite3
player_backend = sqlite3
auth_backend = sqlite3
mod_storage_backend = sqlite3
"""

_SETTINGS: dict[str, str] = {
    "bind_address": "127.0.0.1",
    "server_announce": "false",
    "enable_ipv6": "false",
    "num_emerge_threads": "1",
    "static_spawnpoint": "0,9,0",
    "default_privs": "interact, shout",
    "max_users": "16",
    "max_packets_per_iteration": "4096",
    "max_simultaneous_block_sends_per_client": "64",
    "debug_log_level": "action",
    # Blocks come back from disk by a thread of their own, whenever that is: they never leave memory.
    "server_unload_unused_data_timeout": "1000000",
}

# Flat ground: the topmost solid node is at y = 8. Nothing else in it, so behaviour is repeatable to the byte.
_MAPGEN: dict[str, dict[str, str]] = {
    "flat": {
        "mg_flags": "nocaves,nodungeons,nodecorations,noores,light,nobiomes",
        "mgflat_spflags": "nolakes,nohills",
    },
    "v7": {},
    "singlenode": {},
}


def probe_name(seed: int) -> str:
    """The evaluator mod's name in a world: nothing a mod can look for, and the same for the same seed."""
    digest = hashlib.sha256(f"evaluator:{seed}".encode()).hexdigest()
    return "a" + digest[:8].translate(str.maketrans("0123456789", "ghjkmnprst"))


@dataclass(frozen=True)
class WorldFolder:
    """One world below `root`.

    Attributes:
        root: a directory of the judge, which nobody else uses.
        seed: of the map, of Lua's random numbers and of the evaluator's name.
        step_s: length of a game step in seconds.
    """

    root: Path
    seed: int
    step_s: float

    @property
    def world(self) -> Path:
        return self.root / "world"

    @property
    def mods(self) -> Path:
        return self.world / "worldmods"

    @property
    def config(self) -> Path:
        return self.root / "config" / "server.conf"

    @property
    def channel(self) -> Path:
        return self.root / "channel"

    @property
    def gate_page(self) -> Path:
        return self.root / "gate" / "page"

    @property
    def log(self) -> Path:
        return self.root / "server.log"

    def create(self, isolation: Isolation) -> None:
        """Make the folders. The world belongs to the subject, the mods in it do not."""
        for path in (self.world, self.config.parent, self.channel, self.gate_page.parent):
            path.mkdir(parents=True)
        isolation.grant(self.world)
        self.mods.mkdir()

    def add_probe(self, install: Install, candidate: str | None) -> None:
        """Copy the evaluator mod. It loads after the whole game, whose own mods are the baseline."""
        name = probe_name(self.seed)
        target = self.mods / name
        target.mkdir()
        for path in sorted(PROBE.glob("*.lua")):
            shutil.copyfile(path, target / path.name)
        game_mods = sorted(path.name for path in (install.game / "mods").iterdir() if path.is_dir())
        (target / "mod.conf").write_text(f"name = {name}\noptional_depends = {', '.join(game_mods)}\n")
        known = f"candidate = {json.dumps(candidate)}, " if candidate else ""
        (target / "place.lua").write_text(
            f"return {{{known}channel = {json.dumps(CHANNEL)}, seed = {self.seed}}}\n"
        )

    def add_mod(self, source: Path, name: str, after: str) -> None:
        """Copy a mod into the world as `name`, and let it depend on the mod `after`.

        Raises:
            ServerDied: it holds something that is neither a file nor a folder.
        """
        target = self.mods / name
        _copy_tree(source, target)
        (target / "mod.conf").write_text(extend_depends(target, name, after))

    def write_world(self, isolation: Isolation) -> None:
        """(Re)write world.mt: a mod can write to its world, but does not decide what a restart loads."""
        fresh = self.root / "world.mt"
        fresh.write_text(_WORLD_MT)
        isolation.grant(fresh)
        victim = self.world / "world.mt"
        if victim.is_dir() and not victim.is_symlink():
            shutil.rmtree(victim)
        fresh.replace(victim)

    def write_config(self, mapgen: str, port: int, metrics_port: int, extra: Mapping[str, str]) -> None:
        """(Re)write the server's configuration; `extra` wins over the defaults."""
        settings = {
            **_SETTINGS,
            "port": str(port),
            # Builds with Prometheus open this and abort where it is taken; others ignore it.
            "prometheus_listener_address": f"127.0.0.1:{metrics_port}",
            "mg_name": mapgen,
            "fixed_map_seed": str(self.seed),
            "dedicated_server_step": f"{self.step_s:g}",
            "secure.trusted_mods": probe_name(self.seed),
            **_MAPGEN[mapgen],
            **extra,
        }
        self.config.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))

    @property
    def gate_library(self) -> Path:
        return self.root / "gate" / "gate.so"

    def publish(self) -> None:
        """Let the subject read what it is shown, whatever the judge's umask is."""
        for shown in (self.mods, self.config, self.channel / "cmd", self.gate_library):
            for path in (shown, *(shown.rglob("*") if shown.is_dir() else ())):
                path.chmod(0o755 if path.is_dir() else 0o644)

    def binds(self) -> list[Bind]:
        """What the server's process sees; later ones lie on top of earlier ones."""
        return [
            Bind(self.world, WORLD, writable=True),
            Bind(self.mods, MODS),
            Bind(self.config, CONFIG),
            Bind(self.channel / "cmd", f"{CHANNEL}/cmd"),
            Bind(self.channel / "evt", f"{CHANNEL}/evt", writable=True),
            Bind(self.gate_page, GATE_PAGE, writable=True),
            Bind(self.gate_library, GATE_LIBRARY),
        ]


def _copy_tree(source: Path, target: Path) -> None:
    target.mkdir()
    for entry in sorted(os.scandir(source), key=lambda entry: entry.name):
        kind = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(kind):
            _copy_tree(Path(entry.path), target / entry.name)
        elif stat.S_ISREG(kind):
            shutil.copyfile(entry.path, target / entry.name, follow_symlinks=False)
        else:
            what = "a symbolic link" if stat.S_ISLNK(kind) else "not a file"
            raise ServerDied("load", f"{entry.name} in the mod is {what}")


def extend_depends(mod: Path, name: str, after: str) -> str:
    """A new mod.conf for a copied mod, so that the evaluator certainly loads first.

    Args:
        mod: the copy; may have a mod.conf, the older depends.txt, or neither.
        name: taken where mod.conf gives no name.
        after: the mod to depend on.
    """
    path = mod / "mod.conf"
    conf = read_conf(path) if path.is_file() else {}
    hard = name_list(conf.get("depends", ""))
    soft = name_list(conf.get("optional_depends", ""))
    legacy = mod / "depends.txt"
    if legacy.is_file() and "depends" not in conf:
        lines = legacy.read_text(errors="replace").split()
        hard += [line for line in lines if not line.endswith("?")]
        soft += [line[:-1] for line in lines if line.endswith("?")]
    lines = [f"name = {conf.get('name', name)}", f"depends = {', '.join([*hard, after])}"]
    if soft:
        lines.append(f"optional_depends = {', '.join(soft)}")
    return "\n".join(lines) + "\n"
