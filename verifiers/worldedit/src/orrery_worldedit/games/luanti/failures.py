"""How a world can fail. With a candidate loaded the failure is the candidate's; without one it is ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Cause = Literal[
    "syntax",  # a file of the mod does not compile
    "load",  # an error while the mod's files ran
    "dependency",  # the mod was left out because something it depends on is missing
    "mods_loaded",  # an error in on_mods_loaded
    "callback",  # an error in a callback, a globalstep or core.after
    "shutdown",  # an error while the server was shutting down
    "exit",  # the server ended without being asked
    "time",
    "memory",
    "output",
    "killed",  # a signal, such as a crash of the engine itself
    "silent",  # the probe no longer answers, or what it says is not its own protocol
]


class WorldFailure(Exception):
    """The world stopped being usable.

    Args:
        cause: machine-readable kind.
        reason: one sentence for the report.
        log_tail: the last relevant lines of the server's log. Diagnostics only: a mod can print any line, so
            no verdict rests on them.
    """

    def __init__(self, cause: Cause, reason: str, log_tail: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.cause = cause
        self.reason = reason
        self.log_tail = list(log_tail)


class ServerDied(WorldFailure):
    """The server process ended, or never came up."""


class ProbeSilent(WorldFailure):
    """The server runs but the evaluator mod in it does not answer as it must."""


class StepTimeout(WorldFailure):
    """One game step, or loading, took longer than any honest mod needs."""
