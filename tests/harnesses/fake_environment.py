"""A FAKE environment, for tests of the runner's orchestration only: it runs no command and isolates nothing.

A trial's file system is a folder; `solve.sh` copies the solution's mod, `test.sh` compares `mod/answer.txt`
with `expected.txt` beside the test. `behaviour.txt` beside it says how the verifier ends; the folder named
by ORRERY_FAKE says from outside which trial blocks or breaks, so that a test can interrupt it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities
from orrery_core.reports import ReportWriter
from orrery_core.results import Criterion, Report, Status, TrialStatus


class FakeEnvironment(BaseEnvironment):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="orrery-fake-"))
        super().__init__(*args, **kwargs)

    @staticmethod
    def type() -> str:
        return "fake"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True)

    def _validate_definition(self) -> None:
        if self._behaviour() == "constructor-fails":
            raise ValueError("this definition is not supported")

    async def start(self, force_build: bool) -> None:
        if self._behaviour() == "start-fails":
            raise RuntimeError("the fake did not start")

    async def stop(self, delete: bool) -> None:
        shutil.rmtree(self._root, ignore_errors=True)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        if "/solution/solve.sh" in command and "chmod" not in command:
            await self._obey()
            shutil.copytree(self._root / "solution/mod", self._root / "app/mod", dirs_exist_ok=True)
        elif "/tests/test.sh" in command and "chmod" not in command:
            self._grade()
        return ExecResult(stdout="", stderr="", return_code=0)

    async def _obey(self) -> None:
        control = Path(os.environ.get("ORRERY_FAKE", "/nonexistent"))
        if (control / f"break-{self.environment_name}").exists():
            raise RuntimeError("the fake broke")
        if (control / f"block-{self.environment_name}").exists():
            (control / f"reached-{self.environment_name}").touch()
            await asyncio.Event().wait()

    def _behaviour(self) -> str:
        path = self.environment_dir / "behaviour.txt"
        return path.read_text().strip() if path.exists() else ""

    def _grade(self) -> None:
        behaviour = self._behaviour()
        out = self._root / "logs/verifier"
        if behaviour == "no-report":
            return
        answer = self._root / "app/mod/answer.txt"
        expected = (self.environment_dir / "expected.txt").read_text()
        right = answer.exists() and answer.read_text() == expected
        with ReportWriter(
            out,
            task=self.environment_name,
            family="fake",
            level=int(self.environment_name[1]),
            mode={"isolation": "none"},
        ) as writer:
            if behaviour == "error":
                raise RuntimeError("the fake verifier broke")
            if behaviour == "random":
                right_again = {"drawn": os.urandom(8).hex()}
            else:
                right_again = {}
            writer.finish(
                _report(self.environment_name, right, rejected=behaviour == "reject", seeds=right_again)
            )

    def _host(self, path: str) -> Path:
        return self._root / path.lstrip("/")

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        self._host(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, self._host(target_path))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        shutil.copytree(source_dir, self._host(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        shutil.copy(self._host(source_path), target_path)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        shutil.copytree(self._host(source_dir), target_dir, dirs_exist_ok=True)

    async def is_dir(self, path: str, user: str | int | None = None) -> bool:
        return self._host(path).is_dir()

    async def is_file(self, path: str, user: str | int | None = None) -> bool:
        return self._host(path).is_file()


def _report(task: str, right: bool, *, rejected: bool, seeds: dict[str, str]) -> Report:
    criteria = (
        Criterion(
            id="answer",
            stage="behaviour",
            status=Status.PASS if right else Status.FAIL,
            reason="" if right else "wrong",
        ),
        Criterion(id="walking", stage="regression", status=Status.PASS),
    )
    solved = right and not rejected
    rewards = {
        "reward": float(solved),
        "cpr": 0.0 if rejected else (1.0 if right else 0.5),
        "built": float(not rejected),
        "loaded": float(not rejected),
        "preservation": float(not rejected),
    }
    return Report(
        task=task,
        family="fake",
        level=int(task[1]),
        status=TrialStatus.REJECTED if rejected else TrialStatus.SCORED,
        reason="broke a rule" if rejected else "",
        reward=float(solved),
        rewards=rewards,
        criteria=criteria,
        seeds=dict(seeds),
        mode={"isolation": "none"},
        timings={"total": 0.1},
    )
