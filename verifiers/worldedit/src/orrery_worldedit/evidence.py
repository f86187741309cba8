"""What a verification measured.

Verdicts are a pure function of this and the spec, so scores can be re-judged later.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class CheckEvidence(Model):
    """One check on one arm (with the mod, or vanilla).

    `outcome` says how the steps ended: `measured` (all ran), `stopped` (a step could not be done in this
    world; `reason` says
    which), `died` (the game server fell over during the check), `skipped` (earlier failures left no world to
    measure in),
    `unmeasurable` (the adapter lacks a capability, or the evaluator itself failed: never the submission's
    fault).
    """

    outcome: Literal["measured", "stopped", "died", "skipped", "unmeasurable"]
    reason: str = ""
    values: dict[str, Any] = {}


class ArmEvidence(Model):
    """Everything measured with the mod (`candidate`) or without it (`vanilla`)."""

    loaded: bool
    load_reason: str = ""
    log_tail: list[str] = []
    subjects: dict[str, list[str]] = {}
    """Subject id -> everything that matched; sound only with exactly one."""
    checks: dict[str, CheckEvidence] = {}
    game_seconds: float = 0.0
    """Game time that the checks took, over all servers that were started for them."""
    tampered: list[str] = []
    """Captured library functions, methods and tables that are no longer themselves."""


class Change(Model):
    """One difference between the vanilla registry dump and the one with the mod."""

    path: str
    before: Any = None
    after: Any = None


class Evidence(Model):
    """A whole verification."""

    spec_hash: str
    submission_hash: str
    rejected: str = ""
    """The stated rule that the submission broke; empty when it was accepted for judging."""
    syntax_errors: list[str] = []
    candidate: ArmEvidence | None = None
    vanilla: ArmEvidence | None = None
    changes: list[Change] = []
    seed: int
    versions: dict[str, str] = {}
    mode: dict[str, str] = {}
