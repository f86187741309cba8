"""Task directories and calls of the command line, for the tests of the runner."""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from orrery.cli import main

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


@dataclass(frozen=True)
class Result:
    """What a command left: like a finished process, but run here, which saves importing Harbor every time."""

    returncode: int
    stdout: str
    stderr: str


def orrery(*arguments: str | Path, cwd: Path, control: Path | None = None) -> Result:
    """Runs `orrery` in this process, in the folder `cwd`."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(stdout), redirect_stderr(stderr):
        patch.chdir(cwd)
        if control is not None:
            patch.setenv("ORRERY_FAKE", str(control))
        code = main(list(map(str, arguments)))
    return Result(code, stdout.getvalue(), stderr.getvalue())


def as_json(result: Result) -> Any:
    return json.loads(result.stdout)
