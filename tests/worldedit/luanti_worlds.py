"""Worlds for the tests of the Luanti adapter: the vanilla game, alone or with one of the mods beside this."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from orrery_core.isolation import Isolation
from orrery_worldedit.games.luanti.install import Install, find_install
from orrery_worldedit.games.luanti.world import ServerLimits, World

MODS = Path(__file__).with_name("luanti_mods")


@cache
def machine() -> tuple[Install, Isolation]:
    return find_install(), Isolation.detect()


def world(tmp_path: Path, mod: Path | str | None = None, **options: Any) -> World:
    """A world that has not started; `mod` is one of the mods beside this, or a folder."""
    folder = MODS / mod if isinstance(mod, str) else mod
    options.setdefault("mapgen", "singlenode")
    return World(
        *machine(),
        mod=folder,
        mod_name="cand" if folder else None,
        workdir=tmp_path / options.pop("name", "world"),
        **options,
    )


def hasty(**seconds: float) -> ServerLimits:
    """Limits for mods that hang; a vanilla world stays well below them even on a busy machine."""
    return ServerLimits(**{"load_s": 60.0, "step_s": 10.0, **seconds})


def write_mod(folder: Path, code: str, conf: str = "name = cand\ndepends = default\n") -> Path:
    folder.mkdir(parents=True)
    (folder / "mod.conf").write_text(conf)
    (folder / "init.lua").write_text(code)
    return folder


@cache
def vanilla() -> tuple[dict[str, Any], list[str]]:
    """Registry and tamper list of the vanilla game."""
    with tempfile.TemporaryDirectory() as folder, world(Path(folder)) as running:
        return running.dump(), running.tamper()
