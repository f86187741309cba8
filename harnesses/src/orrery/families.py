"""What the harness asks of a family: to read its specs, render its own files, judge again, describe a task.

Families are named in `spec.toml`; their packages are imported only when one of their tasks is at hand.
"""

from __future__ import annotations

import importlib
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orrery_core.errors import UserError

if TYPE_CHECKING:
    from orrery_core.results import Report

SPEC = "spec.toml"


@dataclass(frozen=True)
class Family:
    """A family, by the package that owns it.

    Attributes:
        package: the verifier package.
        own_folders: folders of a task directory that people write; everything else but the spec is rendered.
        judge: the module with `rejudge(spec, folder)`.
    """

    package: str
    own_folders: tuple[str, ...] = ()
    judge: str = "verify"

    def load_spec(self, path: Path) -> Any:
        """The spec as the family's own model.

        Raises:
            UserError: missing or malformed.
        """
        return importlib.import_module(f"{self.package}.spec").load_spec(path)

    def files(self, spec: Any) -> dict[str, bytes]:
        """Rendered files that come from no template: relative path -> content."""
        if self.package == "orrery_worldmodel":
            return _worldmodel_files(spec)
        return {"tests/spec.json": _worldedit_hidden(spec)}

    def rejudge(self, spec: Any, folder: Path) -> Report:
        """The verdict on stored evidence, without running anything."""
        report: Report = importlib.import_module(f"{self.package}.{self.judge}").rejudge(spec, folder)
        return report


_WORLD_EDITING = Family("orrery_worldedit", own_folders=("solution/mod", "mutants"))
FAMILIES = {"luanti": _WORLD_EDITING, "worldmodel": Family("orrery_worldmodel", judge="judge")}


def family_of(spec_path: Path) -> Family:
    """The family that a spec names; of an unreadable spec world editing, whose reader says what is wrong.

    Raises:
        UserError: there is no such family.
    """
    try:
        name = tomllib.loads(spec_path.read_text(encoding="utf-8")).get("family", "luanti")
    except (OSError, ValueError):
        return _WORLD_EDITING
    if name not in FAMILIES:
        raise UserError(f'{spec_path}: there is no family "{name}"', f"one of {', '.join(FAMILIES)}")
    return FAMILIES[name]


def _worldedit_hidden(spec: Any) -> bytes:
    data = spec.without_solutions().model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude_defaults=True
    )
    data["schema_version"] = spec.schema_version
    return (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode()


def _worldmodel_files(spec: Any) -> dict[str, bytes]:
    """The base model and its configuration, the experiment's limits, and what the judge is told."""
    import worldmodel_kit

    kit = Path(worldmodel_kit.__file__).parent
    config = json.loads((kit / "configs" / f"{spec.base}.json").read_text(encoding="utf-8"))[spec.profile]
    limits = {
        "game": spec.game,
        "base": spec.base,
        "profile": spec.profile,
        "seconds": spec.size.seconds,
        "steps": spec.size.steps,
        "data": f"/data/{spec.game}",
    }
    hidden = {
        "schema_version": 1,
        "id": spec.id,
        "game": spec.game,
        "base": spec.base,
        "profile": spec.profile,
    }
    return {
        "environment/train.py": (kit / "bases" / f"{spec.base}.py").read_bytes(),
        "environment/config.json": _json(config),
        "environment/task.json": _json(limits),
        "tests/spec.json": _json(hidden | {"version": spec.version}),
    }


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()
