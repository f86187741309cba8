"""What `--agent` and `--env` may say, and what Harbor is told for it."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from orrery_core.errors import UserError

if TYPE_CHECKING:
    from harbor.models.trial.config import AgentConfig, EnvironmentConfig

OWN_ENVIRONMENTS = {
    "sandbox": "orrery.environments.sandbox:SandboxEnvironment",
    "engine": "orrery.environments.engine:EngineEnvironment",
}
UTILITY_AGENTS = ("oracle", "nop")


def agent_config(name: str, model: str | None) -> AgentConfig:
    """Harbor's configuration of one agent.

    Args:
        name: `oracle`, `nop`, any agent that Harbor registers, or `module:Class`.

    Raises:
        UserError: no such agent, or the class cannot be imported.
    """
    from harbor.agents.factory import AgentFactory
    from harbor.agents.installed.acp_registry import is_acp_registry_shorthand
    from harbor.models.trial.config import AgentConfig

    known = AgentFactory.registered_names()
    if name in known or is_acp_registry_shorthand(name):
        return AgentConfig(name=name, model_name=model)
    if ":" in name:
        _require_importable(name, "agent")
        return AgentConfig(import_path=name, model_name=model)
    raise UserError(f"--agent {name}: there is no such agent", mend=_choose(name, known))


def require_skills_support(config: AgentConfig) -> None:
    """Refuses an agent that cannot take the skills of a task, before Harbor does so in every single trial.

    Raises:
        UserError: its class does not declare the capability; `oracle` and `nop` are free to ignore skills.
    """
    from harbor.agents.factory import AgentFactory

    if config.name in UTILITY_AGENTS or AgentFactory.get_agent_class_from_config(config).capabilities.skills:
        return
    raise UserError(
        f"--agent {config.name or config.import_path} does not support skills, which the tasks bring along",
        mend="add --no-skills, or declare capabilities = AgentCapabilities(skills=True) in its class",
    )


def environment_config(name: str) -> EnvironmentConfig:
    """Harbor's configuration of an environment: `sandbox`, `engine`, one of Harbor's, or `module:Class`."""
    from harbor.environments.factory import EnvironmentFactory
    from harbor.models.environment_type import EnvironmentType
    from harbor.models.trial.config import EnvironmentConfig

    known = EnvironmentFactory.registered_names()
    if ":" in name or name in OWN_ENVIRONMENTS:
        path = OWN_ENVIRONMENTS.get(name, name)
        _require_importable(path, "env")
        return EnvironmentConfig(import_path=path)
    if name in known:
        return EnvironmentConfig(type=EnvironmentType(name))
    raise UserError(
        f"--env {name}: there is no such environment", mend=_choose(name, [*OWN_ENVIRONMENTS, *known])
    )


def _choose(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, n=3)
    if near:
        return f"did you mean {' or '.join(near)}? A class of your own is written module:Class"
    return f"one of {', '.join(names)}; or a class of your own, written module:Class"


def _require_importable(path: str, option: str) -> None:
    module_name, _, attribute = path.partition(":")
    if "" not in sys.path:
        sys.path.insert(
            0, ""
        )  # a console script does not look into the current folder, where such classes are
    try:
        found = hasattr(importlib.import_module(module_name), attribute)
    except ImportError as error:
        raise UserError(
            f"--{option} {path}: cannot import {module_name}: {error}",
            mend="install the package, or put its folder on PYTHONPATH",
        ) from error
    if not found:
        raise UserError(
            f"--{option} {path}: {module_name} has no {attribute}", mend="write it as module:Class"
        )
