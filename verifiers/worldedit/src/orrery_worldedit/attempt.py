"""Build and load a mod the way the verifier does, for the agent.

No checks, only what any modder's console shows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from orrery_worldedit.games.luanti import adapter, registry
from orrery_worldedit.games.luanti.modconf import read_conf
from orrery_worldedit.games.luanti.world import World, WorldFailure
from orrery_worldedit.package_gate import PackageRejected, inspect_package

SHOWN = 200


class Attempt(BaseModel):
    """What a try showed.

    Attributes:
        ok: the package is acceptable, compiles, loads and runs.
        stage: how far it came: package, syntax, load, run.
        problem: what stopped it, empty when nothing did.
        log: the last lines of the server, warnings and errors among them.
        added: registrations that are new, by registry path.
        changed: registrations of the game that differ from the unmodified game.
    """

    ok: bool
    stage: str
    problem: str = ""
    log: list[str] = []
    added: list[str] = []
    changed: list[str] = []


def attempt(mod: Path, seconds: float, workdir: Path) -> Attempt:
    """Package gate, syntax, load, and some game time under the verifier's own probe and clock.

    Args:
        mod: the mod folder.
        seconds: game seconds to run after loading.
        workdir: an empty private folder.
    """
    conf = mod / "mod.conf"
    name = read_conf(conf).get("name") if conf.is_file() else None
    try:
        package = inspect_package(mod, name or "")
    except PackageRejected as rule:
        return Attempt(ok=False, stage="package", problem=str(rule))
    if not name:
        return Attempt(ok=False, stage="package", problem="mod.conf: the name is empty")
    machine = adapter.machine()
    errors = adapter.syntax_errors(machine, package, workdir / "syntax")
    if errors:
        return Attempt(ok=False, stage="syntax", problem="; ".join(errors))
    vanilla = _dump(machine, None, None, workdir / "vanilla", 0.0)
    try:
        dump = _dump(machine, mod, name, workdir / "mod", seconds)
    except WorldFailure as failure:
        return Attempt(ok=False, stage="load", problem=failure.reason, log=failure.log_tail)
    changes = registry.diff(vanilla, dump)
    return Attempt(
        ok=True,
        stage="run",
        added=[change.path for change in changes if change.before is None][:SHOWN],
        changed=[change.path for change in changes if change.before is not None][:SHOWN],
    )


def _dump(
    machine: adapter.Machine, mod: Path | None, name: str | None, workdir: Path, seconds: float
) -> dict[str, Any]:
    with World(machine.install, machine.isolation, mod=mod, mod_name=name, workdir=workdir) as world:
        world.run(max(seconds, world.step_s))
        return world.dump()
