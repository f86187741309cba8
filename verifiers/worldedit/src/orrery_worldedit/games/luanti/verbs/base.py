"""What every group of verbs builds on: the world in lockstep and the players in it."""

from __future__ import annotations

from typing import Any

from orrery_worldedit.engine import StepStopped
from orrery_worldedit.games.luanti.bot import Bot
from orrery_worldedit.games.luanti.world import World


class VerbsBase:
    """Interface between the verbs and the adapter that owns world and names."""

    world: World

    def bot(self, name: str) -> Bot:
        """The connected player behind a name of the spec."""
        raise NotImplementedError

    def player_name(self, name: str) -> str:
        """The real name behind a name of the spec."""
        raise NotImplementedError

    def position(self, at: list[float]) -> dict[str, float]:
        """Arena coordinates to world coordinates."""
        raise NotImplementedError

    def node_position(self, at: list[float]) -> tuple[int, int, int]:
        """Arena coordinates of a node to integer world coordinates."""
        where = self.position(at)
        return (round(where["x"]), round(where["y"]), round(where["z"]))

    def vanilla_pictures(self) -> frozenset[str]:
        """Digests of the unmodified game's pictures, as the media list carries them."""
        raise NotImplementedError

    def note_tampering(self) -> None:
        """Look for replaced functions before this run of the server ends."""
        raise NotImplementedError

    def ask(self, lua: str, arg: Any = None) -> Any:
        """Evaluate trusted Lua beside the mod; an error in it is a fact about this world."""
        return self.world.ask(lua, arg)


def stack_name(text: str) -> str:
    """Item name of an item string such as `default:pick_steel 1 364`; empty for an empty slot."""
    return text.split(" ", 1)[0]


def stack_count(text: str) -> int:
    """How many items an item string stands for."""
    parts = text.split(" ")
    if not parts[0]:
        return 0
    try:
        return int(parts[1]) if len(parts) > 1 else 1
    except ValueError:
        raise StepStopped(f"the server sent an unreadable item: {text[:80]!r}") from None


def stack_wear(text: str) -> int:
    """Wear of a tool, 0 (new) to 65535."""
    parts = text.split(" ")
    return int(parts[2]) if len(parts) > 2 and parts[2].isdigit() else 0
