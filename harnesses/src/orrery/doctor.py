"""What this machine has, what is missing or broken, and the mend; every answer comes from trying."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from orrery_core.errors import InfrastructureError, OrreryError

State = Literal["ok", "missing", "broken"]
HARBOR = "0.26.0"
SETUP = "scripts/setup"
FREE_GB = 2


@dataclass(frozen=True)
class Check:
    """The answer of one probe. Only a `required` one that is not ok makes `orrery doctor` fail."""

    name: str
    state: State
    detail: str
    mend: str = ""
    required: bool = True


class Missing(InfrastructureError):
    """A tool that is not there, as opposed to one that is there and fails."""


@dataclass(frozen=True)
class Probe:
    """One thing to try: `attempt` returns what it found, or raises an error with the mend."""

    name: str
    attempt: Callable[[], str]
    required: bool = True

    def run(self) -> Check:
        try:
            return Check(self.name, "ok", self.attempt(), required=self.required)
        except Missing as error:
            return Check(self.name, "missing", error.message, error.mend, self.required)
        except OrreryError as error:
            return Check(self.name, "broken", error.message, error.mend, self.required)
        except (
            Exception
        ) as error:  # a probe that trips over a strange machine must not hide the other answers
            return Check(self.name, "broken", f"{type(error).__name__}: {error}", SETUP, self.required)


def examine() -> list[Check]:
    """Runs every probe; takes a few seconds."""
    return [probe.run() for probe in PROBES]


def _python() -> str:
    return f"{sys.version.split()[0]} at {sys.executable}"


def _environment() -> str:
    if sys.prefix == sys.base_prefix:
        raise InfrastructureError("not in a virtual environment", mend=f"{SETUP}, then .venv/bin/orrery")
    if version("harbor") != HARBOR:
        raise InfrastructureError(f"harbor {version('harbor')} is installed, {HARBOR} is needed", mend=SETUP)
    return f"{sys.prefix}, harbor {HARBOR}"


def _luanti() -> str:
    from orrery_worldedit.games.luanti.install import GENERATIONS, find_install

    if not any((Path("/") / place.server).exists() for place in GENERATIONS):
        raise Missing("no Luanti server", mend=f"{SETUP} as root, which installs it")
    install = find_install()
    return f"{install.version} at {install.server}"


def _gate() -> str:
    from orrery_worldedit.games.luanti import gate

    if not any(shutil.which(tool) for tool in ("cc", "gcc", "clang")) and not os.environ.get(
        "ORRERY_GATE_LIBRARY"
    ):
        raise Missing(
            "no C compiler, so game time cannot be controlled", mend="apt-get install gcc libc6-dev"
        )
    return f"built: {gate.library().name}"


def _bubblewrap() -> str:
    from orrery.environments.boot import find_bwrap

    path = find_bwrap()
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20)
    if done.returncode != 0:
        raise InfrastructureError(f"{path} does not run: {done.stderr.strip()}", mend=SETUP)
    return done.stdout.strip()


def _sandbox() -> str:
    from orrery.environments.sandbox import SandboxEnvironment

    try:
        SandboxEnvironment.preflight({})
    except SystemExit as refusal:
        raise InfrastructureError(
            str(refusal.code), mend="run as root, or allow user namespaces"
        ) from refusal
    return "namespaces work" + (", as root" if os.geteuid() == 0 else ", with one uid")


def _isolation() -> str:
    from orrery_core.isolation import Isolation
    from orrery_core.isolation.ground import MODES

    chosen = Isolation.detect().mode
    others = [mode for mode in MODES if mode != chosen and _holds(mode)]
    return chosen + (f"; also {', '.join(others)}" if others else "")


def _holds(mode: str) -> bool:
    from orrery_core.isolation import Isolation

    try:
        Isolation.probe(mode)
    except InfrastructureError:
        return False
    return True


def _control_groups() -> str:
    from orrery.environments.limits import Limits, make_groups

    if os.geteuid() != 0:
        raise Missing("only root may make control groups; memory is watched instead", mend="run as root")
    groups = make_groups(f"doctor-{os.getpid()}", Limits(memory_mb=64, cpus=None))
    if groups is None:
        raise Missing("no writable control group; memory is watched instead", mend="mount cgroups writable")
    kind = groups.kind
    asyncio.run(groups.remove())
    return kind


def _engine() -> str:
    found = [tool for tool in ("docker", "podman") if shutil.which(tool)]
    if not found:
        raise Missing(
            "neither docker nor podman; only needed for --env engine", mend="scripts/setup-engine as root"
        )
    from orrery.environments.engine_service import connect

    return connect().mode


def _disk() -> str:
    from orrery.environments.state import state_dir

    places = {"here": Path.cwd(), "sandboxes": state_dir()}
    free = {name: shutil.disk_usage(path).free / 1e9 for name, path in places.items()}
    short = [f"{places[name]}" for name, size in free.items() if size < FREE_GB]
    if short:
        raise InfrastructureError(
            f"less than {FREE_GB} GB free at {', '.join(short)}", mend="free some space"
        )
    return ", ".join(f"{size:.0f} GB free ({name})" for name, size in free.items())


def _hidden_key() -> str:
    if not os.environ.get("ORRERY_HIDDEN_KEY"):
        raise Missing(
            "not set: hidden splits come from the public development key and are marked dev-split",
            mend="export ORRERY_HIDDEN_KEY for results to publish; Luanti tasks do not need it",
        )
    return "set"


PROBES = (
    Probe("python", _python),
    Probe("environment", _environment),
    Probe("luanti", _luanti),
    Probe("gate", _gate),
    Probe("bubblewrap", _bubblewrap),
    Probe("sandbox", _sandbox),
    Probe("isolation", _isolation),
    Probe("disk", _disk),
    Probe("control groups", _control_groups, required=False),
    Probe("engine", _engine, required=False),
    Probe("hidden key", _hidden_key, required=False),
)
