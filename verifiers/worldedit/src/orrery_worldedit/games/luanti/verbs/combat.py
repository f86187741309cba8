"""Hits between players."""

from __future__ import annotations

from typing import Any

from orrery_worldedit.engine import StepStopped
from orrery_worldedit.games.luanti.bot import Bot
from orrery_worldedit.games.luanti.verbs.base import VerbsBase
from orrery_worldedit.verbs import Kind, verb


class Combat(VerbsBase):
    """Verbs about fighting."""

    @verb(Kind.ACT)
    def face_off(self, attacker: str, target: str) -> None:
        """Put two players one and a half nodes apart, the attacker looking at the target, and let both rest
        for five seconds.
        """
        for name, z in ((attacker, -1.0), (target, 0.5)):
            self.ask(
                "I.ObjectRef.set_pos(player(arg.name), arg.at)",
                {"name": self.player_name(name), "at": self.position([0, -0.5, z])},
            )
        self.world.act(5.0)

    @verb(Kind.ACT)
    def punch(self, attacker: str, target: str, interval: float = 1.0) -> dict[str, Any]:
        """Wait for an interval, then hit another player once with what is in hand.

        Answers `damage` (health the target lost by this hit) and `hp` (what is left).
        """
        bot, victim = self.bot(attacker), self.bot(target)
        self.world.act(interval)
        name = self.player_name(target)
        objects = [number for number, thing in bot.objects.items() if thing.is_player and thing.name == name]
        if not objects:
            raise StepStopped(f"{attacker} does not see {target}")
        before = _health(victim)
        bot.punch(objects[0])
        self.world.act()
        return {"damage": before - _health(victim), "hp": _health(victim)}

    @verb(Kind.ACT)
    def fall(self, player: str, height: float) -> dict[str, Any]:
        """Let a player fall onto the arena's ground; answers `damage`."""
        bot = self.bot(player)
        before = _health(bot)
        self.ask(
            "I.ObjectRef.set_pos(player(arg.name), arg.at)",
            {"name": self.player_name(player), "at": self.position([0, height - 0.5, 0])},
        )
        self.world.act()
        self.world.move(2.0 + height / 8.0)
        self.world.act()
        return {"damage": before - _health(bot)}

    @verb(Kind.FIXTURE)
    def heal(self, player: str) -> None:
        """Full health."""
        self.ask("I.ObjectRef.set_hp(player(arg), 20)", self.player_name(player))
        self.world.act()


def _health(bot: Bot) -> int:
    if bot.hp is None:
        raise StepStopped(f"{bot.name} was never told its health")
    return bot.hp
