"""Find the Luanti server of this machine: Debian 12's `minetest-server` or Debian 13's `luanti-server`."""

from __future__ import annotations

import hashlib
import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from orrery_core.errors import InfrastructureError

GateMode = Literal["56", "510"]

GAME_ID = "minetest_game"

# Servers up to 5.8 add a fixed step from the main thread; from 5.9 the server thread measures it.
_MEASURED_STEP_SINCE = (5, 9)
_OLDEST = (5, 6)

_MEND = "apt-get install minetest-server (Debian 12), or luanti-server luanti-game-minetest (Debian 13)"


@dataclass(frozen=True)
class Generation:
    """Where one Debian release puts the server. The wrappers on PATH force their own log file: skip them."""

    server: str
    share: str
    games: tuple[str, ...]


GENERATIONS = (
    Generation("usr/libexec/luanti/luantiserver", "usr/share/luanti", ("usr/share/luanti/games",)),
    Generation(
        "usr/lib/minetest/minetestserver", "usr/share/games/minetest", ("usr/share/games/minetest/games",)
    ),
)


@dataclass(frozen=True)
class Install:
    """One usable server with its game.

    Attributes:
        server: the real binary, not the wrapper script.
        share: the directory with `builtin/`.
        game: the directory of Minetest Game.
        version: such as `5.6.1`.
        gate_mode: how the step gate drives this version.
    """

    server: Path
    share: Path
    game: Path
    version: str
    gate_mode: GateMode

    @property
    def games_dir(self) -> Path:
        return self.game.parent

    def versions(self) -> dict[str, str]:
        """What a report says about the engine and the game; equal values mean comparable registries."""
        return {"luanti": self.version, GAME_ID: _game_digest(self.game), "gate_mode": self.gate_mode}


def find_install(root: Path = Path("/")) -> Install:
    """Locate the newest installed server below `root`.

    Raises:
        InfrastructureError: no server, no game, or a version the step gate does not know.
    """
    for generation in GENERATIONS:
        server = root / generation.server
        if not server.is_file():
            continue
        version = parse_version(_ask_version(server))
        games = [root / path / GAME_ID for path in generation.games]
        game = next((path for path in games if (path / "game.conf").is_file()), None)
        if game is None:
            raise InfrastructureError(f"{server} is there, {GAME_ID} is not in {games[0].parent}", mend=_MEND)
        return Install(server, root / generation.share, game, version, gate_mode(version))
    looked = ", ".join(f"/{generation.server}" for generation in GENERATIONS)
    raise InfrastructureError(f"no Luanti server found (looked at {looked})", mend=_MEND)


def parse_version(output: str) -> str:
    """The version in the first line of `--version`, such as `Minetest 5.6.1 (Linux)`."""
    first = output.splitlines()[0] if output else ""
    found = re.match(r"(?:Minetest|Luanti)\s+(\d+\.\d+(?:\.\d+)?)", first)
    if not found:
        raise InfrastructureError(f"cannot read a version from {first!r}", mend=_MEND)
    return found.group(1)


def gate_mode(version: str) -> GateMode:
    """Which of the gate's two modes a server version needs."""
    number = tuple(int(part) for part in version.split("."))[:2]
    if number < _OLDEST:
        raise InfrastructureError(f"Luanti {version} is older than the oldest supported 5.6", mend=_MEND)
    return "510" if number >= _MEASURED_STEP_SINCE else "56"


def _ask_version(server: Path) -> str:
    try:
        done = subprocess.run([str(server), "--version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfrastructureError(f"{server} --version does not run: {error}", mend=_MEND) from error
    return done.stdout


@cache
def _game_digest(game: Path) -> str:
    """A short digest of the game's Lua files: packages of one version differ between releases."""
    digest = hashlib.sha256()
    for path in sorted(game.rglob("*.lua")):
        digest.update(str(path.relative_to(game)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
