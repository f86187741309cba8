"""Players: who is there, how they are, what they see and say."""

from __future__ import annotations

import re
from typing import Any

from orrery_worldedit.engine import StepStopped
from orrery_worldedit.games.luanti.verbs.base import VerbsBase
from orrery_worldedit.verbs import Kind, Position, verb

_RESET_PLAYER = """
local p = player(arg.name)
if not p then return false end
if I.ObjectRef.get_hp(p) <= 0 then return false end
local inv = I.ObjectRef.get_inventory(p)
for _, list in ipairs({"main", "craft", "craftpreview", "craftresult"}) do
	for i = 1, I.InvRef.get_size(inv, list) do I.InvRef.set_stack(inv, list, i, "") end
end
I.ObjectRef.set_hp(p, 20)
I.ObjectRef.set_pos(p, arg.at)
I.ObjectRef.set_look_horizontal(p, 0)
I.ObjectRef.set_look_vertical(p, 0)
return true
"""


class People(VerbsBase):
    """Verbs about players as such."""

    names: list[str]
    """Spec names of the players who were joined, in order."""

    def admit(self, name: str, index: int) -> None:
        """Join a player, or bring one who is there back to the start: alive, healed, empty-handed."""
        if name not in self.names:
            self.names.append(name)
        real = self.player_name(name)
        if real not in self.world.players:
            self.world.join(real)
        place = self.position([2 * index, -0.5, -2])
        if not self.ask(_RESET_PLAYER, {"name": real, "at": place}):
            self.respawn(name)
            if not self.ask(_RESET_PLAYER, {"name": real, "at": place}):
                raise StepStopped(f"player {name} cannot be brought back to life")
        self.bot(name).select(0)
        self.world.act(0.5)

    def dismiss(self, name: str) -> None:
        """Send a player away whom the next check does not need."""
        self.names.remove(name)
        self.world.leave(self.player_name(name))

    @verb(Kind.FIXTURE)
    def set_hp(self, player: str, hp: int) -> None:
        """Set a player's health, 1 to 20."""
        self.ask("I.ObjectRef.set_hp(player(arg.name), arg.hp)", {"name": self.player_name(player), "hp": hp})
        self.world.act()

    @verb(Kind.FIXTURE)
    def teleport(self, player: str, at: Position) -> None:
        """Put a player somewhere; y = -0.5 is standing on the ground."""
        self.ask(
            "I.ObjectRef.set_pos(player(arg.name), arg.at)",
            {"name": self.player_name(player), "at": self.position(at)},
        )
        self.world.act(0.3)

    @verb(Kind.FIXTURE)
    def grant(self, player: str, privilege: str) -> None:
        """Give a player one more privilege."""
        self.ask(
            "local p = C.get_player_privs(arg.name) p[arg.privilege] = true C.set_player_privs(arg.name, p)",
            {"name": self.player_name(player), "privilege": privilege},
        )
        self.world.act()

    @verb(Kind.ACT)
    def join(self, player: str) -> None:
        """Connect a player who had left."""
        self.world.join(self.player_name(player))
        self.world.act(0.5)

    @verb(Kind.ACT)
    def leave(self, player: str) -> None:
        """Disconnect a player."""
        self.world.leave(self.player_name(player))
        self.world.run(0.5)

    @verb(Kind.ACT, capability="restart")
    def restart(self) -> None:
        """Stop the server cleanly, start it again on the same world, and let every player back in."""
        self.note_tampering()
        self.world.restart()
        self.world.act(1.0)

    @verb(Kind.ACT)
    def walk(self, player: str, direction: str, seconds: float) -> dict[str, Any]:
        """Hold a direction ("forward", "back", "left", "right") for a time; answers the distance in nodes."""
        bot = self.bot(player)
        start = tuple(bot.pos)
        bot.controls.add(direction)
        try:
            self.world.move(seconds)
        finally:
            bot.controls.discard(direction)
        end = tuple(bot.pos)
        self.world.act()
        distance = ((end[0] - start[0]) ** 2 + (end[2] - start[2]) ** 2) ** 0.5
        return {"distance": round(distance, 3), "rise": round(end[1] - start[1], 3)}

    @verb(Kind.ACT)
    def kill(self, player: str) -> None:
        """Let a player die (damage from nowhere)."""
        self.bot(player).damage(60000)
        self.world.act(0.5)

    @verb(Kind.ACT)
    def respawn(self, player: str) -> None:
        """Answer the death screen, on both engine generations."""
        bot = self.bot(player)
        bot.respawn()
        bot.fields("__builtin:death", {"quit": "true"})
        self.world.act(0.5)

    @verb(Kind.ACT)
    def say(self, player: str, text: str) -> list[str]:
        """Type a line of chat or a /command; answers the lines this player got back, colour codes removed."""
        bot = self.bot(player)
        before = len(bot.chat)
        bot.say(text)
        self.world.act(0.3)
        return [plain(line) for line in bot.chat[before:]]

    @verb(Kind.MEASURE)
    def hp(self, player: str) -> int:
        """Health, 0 to 20 (or what the mod made of it).

        The client's view, which must agree with the server's.
        """
        self.world.act()
        bot = self.bot(player)
        server = int(self.ask("return I.ObjectRef.get_hp(player(arg))", self.player_name(player)))
        if bot.hp != server:
            raise StepStopped(f"the server says {server} hp for {player}, the client was told {bot.hp}")
        return server

    @verb(Kind.MEASURE, capability="physics")
    def physics(self, player: str) -> dict[str, float]:
        """Speed, jump and gravity factors as the client was told; 1.0 before anything was sent."""
        self.world.act()
        sent = self.bot(player).physics
        return {key: round(float(getattr(sent, key)), 4) for key in ("speed", "jump", "gravity")}

    @verb(Kind.MEASURE, capability="hud")
    def hud(self, player: str) -> list[dict[str, Any]]:
        """HUD elements the client shows: kind, name, text, number, item; colour codes removed."""
        self.world.act()
        elements = sorted(self.bot(player).hud.items())
        return [
            {
                "kind": hud.type,
                "name": hud.name,
                "text": plain(hud.text),
                "number": hud.number,
                "item": hud.item,
            }
            for _, hud in elements
        ]

    @verb(Kind.MEASURE)
    def chat(self, player: str) -> list[str]:
        """Everything this player has read in chat since joining, colour codes removed."""
        self.world.act()
        return [plain(line) for line in self.bot(player).chat]


_ESCAPE = re.compile("\x1b(?:\\([^)]*\\)|.)")


def plain(text: str) -> str:
    """Text without the engine's colour and translation escapes."""
    return _ESCAPE.sub("", text).strip()
