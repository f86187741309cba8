"""The one source of a world-model task: `spec.toml`, and what a profile makes of it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal

from orrery_core.errors import UserError
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from worldmodel_kit import schema

CRITERIA = ("submitted", "runs", "beats_frozen", "beats_base")
"""What is judged, in report order.

A whole submission is there; it answers every window by the protocol; its skill on the test split is above zero; its
final score is above that of the base which was trained beside it (`unreached` where none was).
"""


class Strict(BaseModel):
    """A model that refuses unknown fields, so that a misspelt one is an error and not silence."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Profile(Strict):
    """How large an experiment and its judging are.

    Attributes:
        seconds: wall-clock limit of one experiment.
        steps: limit of its optimiser steps, None for none.
        session_seconds: wall-clock limit of the agent.
        scale: share of the ordinary splits that the agent is given.
        windows: judged windows of the test split, one from each episode.
        cases: judged cases of each scenario.
        model_seconds: wall-clock limit of one evaluation (start, load, all windows).
        memory_mb: of the agent's and of the verifier's container.
    """

    name: str
    seconds: int
    steps: int | None
    session_seconds: int
    scale: float
    windows: int
    cases: int
    model_seconds: int
    memory_mb: int


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(
            name="gpu",
            seconds=600,
            steps=None,
            session_seconds=21600,
            scale=1.0,
            windows=3000,
            cases=40,
            model_seconds=900,
            memory_mb=32768,
        ),
        Profile(
            name="cpu",
            seconds=300,
            steps=400,
            session_seconds=3600,
            scale=0.02,
            windows=256,
            cases=8,
            model_seconds=300,
            memory_mb=6144,
        ),
    )
}


class TaskSpec(Strict):
    """A whole task. The profile is the task's own, `gpu`, unless a run asks for another."""

    schema_version: Literal[1] = 1
    family: Literal["worldmodel"] = "worldmodel"
    id: str
    version: Annotated[str, Field(pattern=r"^\d+\.\d+$")] = "1.0"
    status: Literal["proven", "unproven"] = "proven"
    game: Literal["asteroids", "breakout", "frogger", "kong", "platformer", "pong", "racer", "snake"]
    base: Literal["dreamer", "ar_transformer", "d3pm", "maskgit"]
    profile: Literal["gpu", "cpu"] = "gpu"

    @model_validator(mode="after")
    def _consistent(self) -> TaskSpec:
        if self.id != f"{self.game}_{self.base}":
            raise ValueError(f'id is "{self.id}", but game and base make "{self.game}_{self.base}"')
        return self

    @property
    def title(self) -> str:
        """For people."""
        bases = {
            "dreamer": "Dreamer",
            "ar_transformer": "AR-Transformer",
            "d3pm": "D3PM",
            "maskgit": "MaskGIT",
        }
        return f"Improve a {bases[self.base]} world model of {self.game.capitalize()}"

    @property
    def level(self) -> None:
        """World-model tasks have none."""

    @property
    def criteria(self) -> list[str]:
        """Ids of everything that is judged."""
        return list(CRITERIA)

    @property
    def size(self) -> Profile:
        """The numbers of the task's profile."""
        return PROFILES[self.profile]

    @property
    def grid(self) -> tuple[int, int]:
        """Bins of the discrete bases in x and y."""
        return schema.GRID[self.game]


def load_spec(path: Path) -> TaskSpec:
    """Reads `spec.toml` or its rendered form `spec.json`.

    Raises:
        UserError: missing or malformed; every problem is listed with its field.
    """
    try:
        text = path.read_bytes().decode()
        if path.suffix == ".json":
            return TaskSpec.model_validate_json(text)
        return TaskSpec.model_validate(tomllib.loads(text))
    except OSError as problem:
        raise UserError(
            f"{path}: cannot be read ({problem.strerror})", "give a task directory that has a spec.toml"
        ) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise UserError(f"{path}: not TOML: {problem}", "mend the line named here") from None
    except ValidationError as problem:
        lines = [
            f"{path}: {'.'.join(map(str, error['loc']))}{': ' if error['loc'] else ''}"
            f"{error['msg'].removeprefix('Value error, ')}"
            for error in problem.errors()
        ]
        raise UserError("\n".join(lines), "mend the fields named here") from None
