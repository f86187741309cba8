"""Task directories and subprocess calls for the tests of the runner."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FAKE = "fake_environment:FakeEnvironment"

TASK_TOML = """\
schema_version = "1.4"
artifacts = ["/app/mod"]

[task]
name = "orrery/{name}"
description = "A task for tests"

[metadata]
level = 1

[environment]
network_mode = "no-network"
skills_dir = "/skills"

[verifier]
environment_mode = "separate"
"""


def make_task(family: Path, name: str, *, behaviour: str = "", at: str = "tests") -> Path:
    """A task that the fake environment can run; the right answer is `yes`."""
    task = family / name
    for folder in ("environment/mod", "environment/skills", "tests", "solution/mod", "mutants/wrong"):
        (task / folder).mkdir(parents=True)
    files = {
        "task.toml": TASK_TOML.format(name=name),
        "instruction.md": "Say yes.\nNotes are in `/skills`.\n",
        "environment/Dockerfile": "FROM fake\nCOPY mod /app/mod\nCOPY skills /skills\n",
        "environment/skills/modding.md": "how to mod\n",
        "tests/Dockerfile": "FROM fake\nCOPY . /tests\n",
        "tests/test.sh": "exit 0\n",
        "tests/expected.txt": "yes",
        "solution/solve.sh": "cp -r /solution/mod/. /app/mod\n",
        "solution/mod/answer.txt": "yes",
        "mutants/wrong/answer.txt": "no",
    }
    if behaviour:
        files[f"{at}/behaviour.txt"] = behaviour
    for path, text in files.items():
        (task / path).write_text(text)
    return task


def environment(control: Path | None = None) -> dict[str, str]:
    extra = {"PYTHONPATH": str(HERE), "COLUMNS": "200"}
    if control is not None:
        extra["ORRERY_FAKE"] = str(control)
    return {**os.environ, **extra}


def command(*arguments: str | Path) -> list[str]:
    code = "import sys; from orrery.cli import main; sys.exit(main())"
    return [sys.executable, "-c", code, *map(str, arguments)]


def orrery(
    *arguments: str | Path, cwd: Path | None = None, control: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs `orrery` as a process of its own."""
    return subprocess.run(
        command(*arguments), cwd=cwd, env=environment(control), capture_output=True, text=True, timeout=120
    )


def as_json(result: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(result.stdout)
