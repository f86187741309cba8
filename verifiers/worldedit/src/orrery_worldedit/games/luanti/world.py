"""A running world for the judge: server, evaluator mod and players in lockstep."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Self

from orrery_core.errors import InfrastructureError
from orrery_core.isolation import Isolation
from pydantic import JsonValue

from . import diagnose, registry
from .bot import Bot
from .channel import ChannelError, Event, Reply, Transcript
from .failures import ProbeSilent, ServerDied, StepTimeout, WorldFailure
from .folder import WorldFolder, probe_name
from .gate import Gate
from .install import Install
from .mail import Mail
from .server import Server, ServerLimits

__all__ = [
    "Event",
    "ProbeSilent",
    "ServerDied",
    "ServerLimits",
    "StepTimeout",
    "World",
    "WorldFailure",
]

STEP_S = 0.09
JOIN_STEPS = 10  # from the handshake until inventory, position and the blocks around have been sent
LEAVE_STEPS = 7  # the engine takes players who have gone out of the world every half second
GENERATION_S = 300.0  # wall seconds for the arena; the game is paused meanwhile
ARENA_RADIUS, ARENA_BOTTOM, ARENA_TOP = 40, -16, 60

_EMERGE = """
C.emerge_area(arg.low, arg.high, function(_, _, remaining)
	if remaining == 0 then emit("generated", {}) end
end)
"""


class World:
    """One world with everything needed to measure in it; a context manager that starts and ends it.

    Args:
        install: the server.
        isolation: how its process is kept apart.
        mod: the candidate; None for the vanilla game.
        mod_name: its name.
        workdir: does not exist yet; the caller removes it.
        mapgen: flat, v7 or singlenode.
        seed: of map, random numbers and names.
        settings: of the server, in addition to the usual ones.
        extra_mods: trusted mods that a check needs beside the candidate; loaded before it.
        arena_radius: nodes around the origin that are generated before anything else, 0 for none; by default
            40, and none in an empty singlenode world.
        limits: what the server may use.

    Every method may raise a WorldFailure, after which the world is over; without a candidate it is an
    InfrastructureError, because then nobody's code but ours was running.
    """

    def __init__(
        self,
        install: Install,
        isolation: Isolation,
        *,
        mod: Path | None,
        mod_name: str | None,
        workdir: Path,
        mapgen: str = "flat",
        seed: int = 42,
        settings: Mapping[str, str] | None = None,
        extra_mods: Sequence[Path] = (),
        arena_radius: int | None = None,
        limits: ServerLimits | None = None,
    ) -> None:
        if (mod is None) != (mod_name is None):
            raise ValueError("mod and mod_name belong together")
        self.install = install
        self.isolation = isolation
        self.mod = mod
        self.mod_name = mod_name
        self.seed = seed
        self.extra_mods = tuple(extra_mods)
        usual = 0 if mapgen == "singlenode" else ARENA_RADIUS
        self.arena_radius = usual if arena_radius is None else arena_radius
        self.step_s = STEP_S
        self.players: dict[str, Bot] = {}
        self.failure: WorldFailure | None = None
        self.timings: dict[str, float] = {}
        self._place = WorldFolder(workdir, seed, STEP_S)
        self._server = Server(
            install,
            isolation,
            self._place,
            mapgen=mapgen,
            settings=settings or {},
            limits=limits or ServerLimits(),
        )
        self._transcript = Transcript()
        self._mail = Mail()
        self._vanilla: frozenset[str] | None = None
        self._steps_before = 0  # in earlier runs of the server on this world
        self._ahead: int | None = None  # how far the probe's count of steps is ahead of the gate's
        self._started = False

    # -- life

    def start(self) -> None:
        """Make the world, start the server, generate the arena."""
        begin = time.monotonic()
        try:
            self._place.create(self.isolation)
            self._place.add_probe(self.install, self.mod_name)
            for extra in self.extra_mods:
                self._place.add_mod(extra, extra.name, probe_name(self.seed))
            if self.mod is not None and self.mod_name is not None:
                self._place.add_mod(self.mod, self.mod_name, probe_name(self.seed))
        except WorldFailure as failure:
            self._fail(failure)
        self._launch()
        self.timings["start"] = time.monotonic() - begin
        if self.arena_radius:
            begin = time.monotonic()
            self._generate()
            self.timings["generate"] = time.monotonic() - begin

    def stop(self) -> WorldFailure | None:
        """End the world cleanly. Returns what went wrong in doing so; no effect when it is over already."""
        for name in list(self.players):
            self._close(name)
        if not self._started:
            return None
        try:
            if self.failure is None and self._server.running:
                self._shut_down()
        finally:
            # The probe's count is slightly ahead of the gate's, and the last steps are never finished.
            seen = self.events[-1].step if self.events else 0
            self._steps_before = max(self.step, seen)
            self._started = False
            self._server.release()
        return self.failure

    def _shut_down(self) -> None:
        try:
            self.failure = self._server.stop(self._request_shutdown)
            self._collect()
            if self.failure is None and (not self.events or self.events[-1].kind != "finished"):
                tail = diagnose.log_tail(self._place.log)
                self.failure = ServerDied("shutdown", "error in on_shutdown", tail)
        except (WorldFailure, ChannelError) as error:
            self.failure = error if isinstance(error, WorldFailure) else ProbeSilent("silent", str(error))

    def restart(self) -> None:
        """Stop cleanly and start again on the same world; the players who were there come back."""
        names = list(self.players)
        for name in names:
            self.leave(name)
        failure = self.stop()
        if failure is not None:
            self._fail(failure)
        self._launch()
        if self.arena_radius:
            self._generate()  # reads it back from disk, before a player needs it
        for name in names:
            self.join(name)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def step(self) -> int:
        """Game steps since the world was made."""
        return self._steps_before + (self._server.gate.done if self._started else 0)

    @property
    def events(self) -> list[Event]:
        """What happened since the world was made, restarts included."""
        return self._transcript.events

    # -- the probe

    def ask(self, lua: str, arg: Any = None) -> Any:
        """Run trusted Lua in the probe's private environment and return its value; costs one step.

        The environment has `C` (the API), `I` (methods by class, as in `I.ObjectRef.get_hp(p)`), `arg`,
        `player(name)`, `emit(kind, data)`, `vanilla` and Lua's own libraries, all captured before the
        candidate loaded. An empty table comes back as {}.

        Raises:
            LuaError: the code does not compile, or raises.
        """
        reply = self._request("eval", lua, arg)
        if not reply.ok:
            raise LuaError(f"{reply.result}")
        return reply.result

    def dump(self) -> dict[str, Any]:
        """Everything registered, in the canonical form that `registry.diff` compares."""
        reply = self._request("dump")
        if not reply.ok or not isinstance(reply.result, dict):
            self._fail(ProbeSilent("silent", f"the registry cannot be read: {str(reply.result)[:300]}"))
        return registry.canonical(reply.result)

    def tamper(self) -> list[str]:
        """Library functions, methods, API functions and tables that are no longer what the game left them."""
        reply = self._request("tamper")
        if not reply.ok or not isinstance(reply.result, list | dict):
            self._fail(ProbeSilent("silent", f"the tamper list cannot be read: {str(reply.result)[:300]}"))
        return [str(entry) for entry in reply.result]

    def vanilla_names(self) -> frozenset[str]:
        """Items, entities and commands that were registered before the candidate loaded."""
        if self._vanilla is None:
            lists = self.ask("return vanilla")
            self._vanilla = frozenset(name for names in lists.values() for name in names)
        return self._vanilla

    def _request(self, op: Any, code: str = "", arg: JsonValue = None) -> Reply:
        self._alive()
        number = self._server.channel.send(op, code, arg)
        self._steps(1)
        reply = self._transcript.replies.pop(number, None)
        if reply is None:
            self._fail(ProbeSilent("silent", "the evaluator in the game no longer answers"))
        ahead = reply.step - self._server.gate.done
        if self._ahead is None:
            self._ahead = ahead
        if ahead != self._ahead:
            self._fail(ProbeSilent("silent", "somebody else than the engine runs the evaluator's steps"))
        return reply

    def _request_shutdown(self) -> None:
        self._server.channel.send("eval", 'C.request_shutdown("", false, 0)', None)

    def _collect(self) -> None:
        """Take in what the probe has written."""
        self._transcript.take(self._server.channel.read())

    # -- time

    def run(self, seconds: float) -> None:
        """Let game time pass; players only answer what the protocol wants answered."""
        self._steps(self._count(seconds))

    def act(self, seconds: float | None = None) -> None:
        """Let what the players sent take effect, and let them see what came of it."""
        self.flush()
        self._steps(1 if seconds is None else self._count(seconds))
        self.flush()

    def move(self, seconds: float) -> None:
        """Like `run`, while the players move by their own physics and tell the server where they are."""
        for _ in range(self._count(seconds)):
            for bot in self.players.values():
                bot.tick(self.step_s)
            self._deliver()
            self._steps(1)
            self._fetch()

    def flush(self) -> None:
        """Until the server has handled all that players sent, and they what it sent back; no game time."""
        self._alive()
        while True:
            before = self._traffic()
            self._pump()
            self._deliver()
            self._fetch()
            if self._traffic() == before and all(bot.idle for bot in self._connected()):
                break
        self._guard(self._collect)

    def _count(self, seconds: float) -> int:
        return max(1, round(seconds / self.step_s))

    def _steps(self, count: int) -> None:
        self._alive()
        watch = self._server.watch("a game step took")

        def pump_and_watch() -> None:
            self._pump()
            watch()

        self._guard(lambda: self._server.gate.steps(count, pump_and_watch))
        self._guard(self._collect)

    def settle(self) -> None:
        """Until the paused server has looked for packets and found none; no game time."""
        watch = self._server.watch("handling packets took")
        self._guard(lambda: self._server.gate.settle(watch))

    def _deliver(self) -> None:
        """Until everything that players have sent has been handled by the server."""
        gate, road = self._server.gate, self._mail.to_server
        sent = self._mail.sent(self.players.values())
        watch = self._server.watch("receiving packets took")
        self._guard(lambda: Gate.wait(lambda: road.empty(sent, gate.received) and not gate.receiving, watch))
        self.settle()

    def _fetch(self) -> None:
        """Until everything that the server has sent has been taken in by the players."""
        gate, road = self._server.gate, self._mail.to_players
        watch = self._server.watch("sending to the players took")

        def taken_in() -> bool:
            if gate.sending:
                return False
            sent = gate.sent
            self._pump()
            return road.empty(sent, self._mail.arrived(self.players.values()))

        self._guard(lambda: Gate.wait(taken_in, watch))

    def _connected(self) -> list[Bot]:
        return [bot for bot in self.players.values() if bot.state != "denied"]

    def _pump(self) -> None:
        for bot in self._connected():
            bot.pump()

    def _traffic(self) -> list[tuple[int, int]]:
        return [bot.traffic for bot in self._connected()]

    # -- players

    def join(self, name: str) -> Bot:
        """Let a player join; the same number of steps every time.

        A new connection is taken up in a step, everything else of the handshake needs none.

        Raises:
            JoinDenied: the server refused, with its reason.
        """
        self._alive()
        if name in self.players:
            raise ValueError(f"{name} is in the world already")
        bot = Bot("127.0.0.1", self._server.port, name, seed=self.seed)
        self.players[name] = bot
        try:
            bot.begin()
            self._until(lambda: bot.idle or bot.state == "denied", bot, "connecting")
            self._deliver()
            self._steps(1)
            self._until(lambda: bot.state in ("joined", "denied"), bot, "joining")
            if bot.state == "joined":
                self.flush()  # the server has to hear of it before time goes on
                self._steps(JOIN_STEPS)
                self.flush()
        except BaseException:
            self._close(name)
            raise
        if bot.state == "denied":
            self._close(name)
            raise JoinDenied(f"{name} could not join: {bot.denied}")
        return bot

    def leave(self, name: str) -> None:
        """Let a player disconnect."""
        self.flush()
        self._close(name)
        self._deliver()
        self._steps(LEAVE_STEPS)
        if not self.players:
            self._mail.to_players.forgive(self._server.gate.sent, self._mail.arrived(()))

    def _close(self, name: str) -> None:
        bot = self.players.pop(name)
        bot.close()
        self._mail.gone(bot)

    def _until(self, condition: Callable[[], bool], bot: Bot, what: str) -> None:
        watch = self._server.watch(f"{what} took")

        def pump_and_watch() -> None:
            bot.pump()
            watch()

        self._guard(lambda: Gate.wait(condition, pump_and_watch))

    # -- start and failure

    def _launch(self) -> None:
        events_before = len(self.events)
        self._ahead = None

        def begun() -> None:
            self._started = True
            self._mail = Mail()
            self._transcript.new_run(self._steps_before, events_before)

        self._guard(lambda: self._server.start(begun, self._announced))
        if self.mod_name is not None and self.mod_name not in (self._transcript.mods or ()):
            reason = f"the server left out {self.mod_name}: it depends on something missing"
            self._fail(ServerDied("dependency", reason, diagnose.log_tail(self._place.log)))
        self.ask("return true")

    def _announced(self) -> bool:
        try:
            self._collect()
        except ChannelError as error:
            raise ProbeSilent("silent", str(error)) from error
        return self._transcript.mods is not None

    def _generate(self) -> None:
        """Generate the arena. Content written before that would be overwritten by the map generator later."""
        radius, seen = self.arena_radius, len(self.events)
        low = {"x": -radius, "y": ARENA_BOTTOM, "z": -radius}
        self.ask(_EMERGE, {"low": low, "high": {"x": radius, "y": ARENA_TOP, "z": radius}})
        deadline = time.monotonic() + GENERATION_S

        def generated() -> bool:
            self._collect()
            return any(event.kind == "generated" for event in self.events[seen:])

        def watch() -> None:
            if not self._server.running:
                raise self._server.death()
            if time.monotonic() > deadline:
                raise StepTimeout("time", "generating the map took longer than the time limit")

        self._guard(lambda: Gate.wait(generated, watch))

    def _alive(self) -> None:
        if self.failure is not None:
            self._raise(self.failure)
        if not self._started:
            raise RuntimeError("the world is not running")

    def _guard(self, action: Callable[[], object]) -> None:
        try:
            action()
        except WorldFailure as failure:
            self._fail(failure)
        except ChannelError as error:
            self._fail(ProbeSilent("silent", str(error)))

    def _fail(self, failure: WorldFailure) -> NoReturn:
        self.failure = failure
        if self._started:
            self._server.kill()
        self._raise(failure)

    def _raise(self, failure: WorldFailure) -> NoReturn:
        if self.mod is not None:
            raise failure
        tail = "\n".join(failure.log_tail[-5:])
        raise InfrastructureError(
            f"the vanilla server failed: {failure.reason}\n{tail}".rstrip(), mend="orrery doctor"
        ) from failure


class LuaError(Exception):
    """The evaluator's own Lua raised: usually the candidate's code, called by it."""


class JoinDenied(Exception):
    """The server refused a player."""
