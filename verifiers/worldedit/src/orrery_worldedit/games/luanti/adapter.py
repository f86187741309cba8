"""Luanti as a game of the engine: machine, arms, arena, discovery. The verbs live in :mod:`.verbs`."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orrery_core.errors import InfrastructureError
from orrery_core.isolation import Isolation

from orrery_worldedit import engine
from orrery_worldedit.evidence import ArmEvidence
from orrery_worldedit.games.luanti import discovery, registry
from orrery_worldedit.games.luanti.bot import Bot
from orrery_worldedit.games.luanti.install import Install, find_install
from orrery_worldedit.games.luanti.textures import vanilla_digests
from orrery_worldedit.games.luanti.verbs import combat, forms, items, people, terrain
from orrery_worldedit.games.luanti.world import (
    JoinDenied,
    LuaError,
    ServerLimits,
    StepTimeout,
    World,
    WorldFailure,
)
from orrery_worldedit.package_gate import Package
from orrery_worldedit.scratch import remove
from orrery_worldedit.spec import Check, Subject, TaskSpec

GROUND = 9
"""Height of the first free node above the flat arena."""
SETTLE_STEPS = 100
"""Server steps a mod has to survive before it counts as loaded (9 game seconds)."""
ARM_S = 300.0
"""Wall seconds for one arm. Both arms, one after the other where they must be, and the rest of a verification
stay below the verifier's time limit (900 s), so that a slow mod ends with a score and not without one."""
SYNTAX_S = 60.0
"""Wall seconds for compiling all files of a submission."""
MEMORY_MB, DISK_MB = 1024, 256
"""What one server may use; the vanilla game stays below 150 MB of memory and 10 MB on disk."""
CAPABILITIES = frozenset({"players", "items", "nodes", "forms", "hud", "restart", "light", "physics"})


@dataclass(frozen=True)
class Machine:
    """What this machine measures with."""

    install: Install
    isolation: Isolation

    @property
    def parallel(self) -> bool:
        """Whether two servers can run at the same time: without namespaces they would share their paths."""
        return self.isolation.mode != "uid"

    @property
    def versions(self) -> dict[str, str]:
        return self.install.versions()

    @property
    def mode(self) -> dict[str, str]:
        return {
            "isolation": self.isolation.mode,
            "addresses": self.isolation.addresses,
            "gate": self.install.gate_mode,
        }


def machine() -> Machine:
    """Find the game and a way to isolate it.

    Raises:
        InfrastructureError: something is missing, with the mend.
    """
    return Machine(find_install(), Isolation.detect())


def limits(wall_s: float) -> ServerLimits:
    """Limits of a server that has so many seconds to live."""
    usual = ServerLimits()
    whole = replace(usual.whole, wall_s=max(wall_s, 0.1), memory_mb=MEMORY_MB, file_mb=DISK_MB)
    return replace(usual, whole=whole)


def syntax_errors(machine: Machine, package: Package, workdir: Path) -> list[str]:
    """Compile every Lua file of a submission in a vanilla server's own interpreter, without running any of
    it.

    Returns:
        One message per file that does not compile, with the line.
    """
    found, name = [], ""
    try:
        with World(
            machine.install,
            machine.isolation,
            mod=None,
            mod_name=None,
            workdir=workdir,
            mapgen="singlenode",
            limits=limits(SYNTAX_S),
        ) as world:
            for name in package.lua_files:
                text = (package.root / name).read_bytes().decode("latin-1").replace("\0", "\u0100")
                answer = world.ask(_COMPILE, {"name": f"={name}", "text": text})
                if isinstance(answer, str):
                    found.append(answer[:300])
    except InfrastructureError as failure:
        # The server had come up and was only compiling: no file of an honest mod makes that fail.
        if not name or not isinstance(failure.__cause__, WorldFailure):
            raise
        found.append(f"{name}: cannot be compiled: {failure.__cause__.reason}")
    finally:
        remove(workdir)
    return found


_COMPILE = """
local function byte(c) return string.char(string.byte(c) + 64) end
local text = string.gsub(arg.text, "\\196\\128", "\\0")
text = string.gsub(text, "\\195([\\128-\\191])", byte)
text = string.gsub(text, "\\194([\\128-\\191])", "%1")
local chunk, problem = loadstring(text, arg.name)
return chunk and true or problem
"""
# The text comes as Latin-1 in UTF-8, so that any bytes survive the channel; it is turned back first. A zero
# byte, which would end the text there, comes as code point 256.


def diff(before: dict[str, Any], after: dict[str, Any]) -> list[registry.Change]:
    """Registry changes between two dumps of the same engine and game."""
    return registry.diff(before, after)


def arm(machine: Machine, spec: TaskSpec, mod: Path | None, workdir: Path) -> LuantiArm:
    """One side of a verification; ``mod`` is None for the vanilla control."""
    return LuantiArm(machine, spec, mod, workdir)


class LuantiArm:
    """Loads one arm, runs all checks on it, and takes the dumps."""

    def __init__(self, machine: Machine, spec: TaskSpec, mod: Path | None, workdir: Path) -> None:
        self._spec = spec
        self._game = LuantiGame(machine, spec, mod, workdir)

    def run(self) -> tuple[ArmEvidence, list[dict[str, Any]]]:
        """See :class:`orrery_worldedit.verify.Arm`."""
        game, dumps = self._game, []
        try:
            try:
                game.load()
                dumps.append(game.world.dump())
            except WorldFailure as failure:
                return ArmEvidence(loaded=False, load_reason=failure.reason, log_tail=failure.log_tail), []
            except Exception as fault:
                return ArmEvidence(loaded=False, load_reason=self._blame(fault)), []
            evidence = engine.run_checks(self._spec, game)
            try:
                game.note_tampering()
                dumps.append(game.world.dump())
            except WorldFailure as failure:
                game.tampered.add(f"the probe fell silent: {failure.reason}")
            except Exception as fault:
                game.tampered.add(self._blame(fault))
            evidence.tampered = sorted(game.tampered)
            evidence.game_seconds = game.game_seconds
            return evidence, dumps
        finally:
            game.close()

    def _blame(self, fault: Exception) -> str:
        """What an unforeseen exception says about the submission.

        Without one, or where the machine is at fault, the exception goes on.
        """
        if isinstance(fault, InfrastructureError) or not self._game.hostile:
            raise fault
        return f"what it registers cannot be read ({type(fault).__name__}: {fault})"[:300]


class LuantiGame(terrain.Terrain, items.Items, people.People, combat.Combat, forms.Forms):
    """A live Luanti server for the engine; every verb is a method of one of the base classes."""

    capabilities = CAPABILITIES

    def __init__(self, machine: Machine, spec: TaskSpec, mod: Path | None, workdir: Path) -> None:
        self._machine = machine
        self._spec = spec
        self._mod = mod
        self._workdir = workdir
        self._worlds = 0
        self._worlds_ended = 0
        self._seconds_before = 0.0
        self._deadline = time.monotonic() + ARM_S
        self.hostile = mod is not None
        self.tampered: set[str] = set()
        """What was found replaced, in any of this arm's worlds."""
        self.world: World
        self.names = []
        self._open = {}
        digest = hashlib.sha256(f"{spec.id}:{spec.seed}".encode()).digest()
        self._offset = (digest[0] % 9 - 4, digest[1] % 9 - 4)
        self._salt = digest[2:8].hex()

    # -- life cycle

    def load(self) -> None:
        """Start a new world, generate the arena and let it settle.

        Raises:
            WorldFailure: the server did not come up or fell over.
        """
        self.close()
        self.names.clear()
        self._open.clear()
        left = self._deadline - time.monotonic()
        if self.hostile and left <= 0:
            raise StepTimeout("time", f"the time for all checks together, {ARM_S:.0f} seconds, is used up")
        self._worlds += 1
        self.world = World(
            self._machine.install,
            self._machine.isolation,
            mod=self._mod,
            mod_name=self._spec.mod.name if self._mod else None,
            workdir=self._workdir / f"world{self._worlds}",
            seed=self._spec.seed,
            limits=limits(left),
        )
        self.world.start()
        self.world.run(SETTLE_STEPS * self.world.step_s)

    def close(self) -> None:
        """End the server, if one runs, and drop its world."""
        if not self._worlds:
            return
        self._seconds_before = self.game_seconds
        self._worlds_ended = self._worlds
        try:
            self.world.stop()
        except InfrastructureError:
            raise
        except Exception:
            if not self.hostile:
                raise
        finally:
            remove(self._workdir / f"world{self._worlds}")

    @property
    def game_seconds(self) -> float:
        """Game time so far, over all worlds of this arm."""
        running = self.world.step * self.world.step_s if self._worlds > self._worlds_ended else 0.0
        return round(self._seconds_before + running, 2)

    def note_tampering(self) -> None:
        """Take the tamper list of the world as it is; a later world may have a clean one."""
        self.tampered.update(self.world.tamper())

    def revive(self) -> None:
        """See :class:`orrery_worldedit.engine.Game`."""
        with self.guard():
            self.load()

    # -- what every check starts from

    def prepare(self, check: Check) -> None:
        """See :class:`orrery_worldedit.engine.Game`.

        Arena cleared, players joined, healed, emptied and put in place.
        """
        with self.guard():
            if check.fresh:
                self.note_tampering()
                self.load()
            self.reset_arena()
            for index, name in enumerate(check.players):
                self.admit(name, index)
            for name in [n for n in self.names if n not in check.players]:
                self.dismiss(name)

    def call(self, verb: str, arguments: dict[str, Any]) -> Any:
        """See :class:`orrery_worldedit.engine.Game`."""
        with self.guard():
            return getattr(self, verb)(**arguments)

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Tell the engine what happened.

        A dead server, an error in the mod's code under a verb, a refused player.
        """
        try:
            yield
        except WorldFailure as failure:
            raise engine.GameDied(failure.reason) from failure
        except (LuaError, JoinDenied) as refusal:
            raise engine.StepStopped(str(refusal)[:300]) from refusal

    def find(self, subject: Subject) -> list[str]:
        """See :class:`orrery_worldedit.engine.Game`."""
        with self.guard():
            return discovery.find(self.world, subject, self._spec.mod.name if self._mod else None)

    def position(self, at: list[float]) -> dict[str, float]:
        """Arena coordinates to world coordinates."""
        dx, dz = self._offset
        return {"x": at[0] + dx, "y": at[1] + GROUND, "z": at[2] + dz}

    def player_name(self, name: str) -> str:
        """The real, seed-derived name behind a name of the spec.

        A mod must not know the evaluator by its players.
        """
        return hashlib.sha256(f"{self._salt}:{name}".encode()).hexdigest()[:8].translate(_LETTERS)

    def bot(self, name: str) -> Bot:
        """The player behind a name of the spec.

        Raises:
            StepStopped: not connected (left, kicked).
        """
        bot = self.world.players.get(self.player_name(name))
        if bot is None or bot.state != "joined":
            raise engine.StepStopped(f"player {name} is not connected")
        return bot

    def vanilla_pictures(self) -> frozenset[str]:
        """See :class:`.verbs.base.VerbsBase`."""
        install = self._machine.install
        return vanilla_digests(install.game, install.share / "textures")


_LETTERS = str.maketrans("0123456789abcdef", "aeioumnrstlkdbvg")

Game = LuantiGame
