"""Whole Harbor jobs on the sandbox: oracle and nop, separate verifier, time-outs, allowlist."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e

IMAGE = "orrery/luanti-verifier:1"
AGENT_IMAGE = "orrery/luanti-agent:1"

TASK = """\
schema_version = "1.4"
artifacts = ["/app/out"]
[task]
name = "test/tiny"
[environment]
network_mode = "no-network"
memory_mb = 512
cpus = 1
[agent]
timeout_sec = {agent_s}
[verifier]
environment_mode = "separate"
timeout_sec = {verifier_s}
[verifier.environment]
network_mode = "no-network"
"""

CHECK = """\
#!/bin/bash
cd /logs/verifier
ls -A /app > app.txt
if grep -qs answer /app/out/result; then echo 1; else echo 0; fi > reward.txt
"""


@pytest.fixture
def tiny(tmp_path):
    """Writes a task: `tiny(solve, check=..., agent_s=..., verifier_s=...)`."""

    def write(solve: str, check: str = CHECK, agent_s: float = 60, verifier_s: float = 60) -> Path:
        root = tmp_path / "tiny"
        files = {
            "task.toml": TASK.format(agent_s=agent_s, verifier_s=verifier_s),
            "instruction.md": "Write the answer.\n",
            "environment/Dockerfile": f"FROM {AGENT_IMAGE}\nWORKDIR /app\nCOPY start.txt out/\n",
            "environment/start.txt": "start\n",
            "tests/Dockerfile": f"FROM {IMAGE}\nCOPY . /tests/\nWORKDIR /app\n",
            "tests/test.sh": check,
            "solution/solve.sh": f"#!/bin/bash\n{solve}\n",
        }
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return root

    return write


def run(
    task: Path, agent: str, sandbox_state: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, Any], Path]:
    """Result and directory of the one trial of a job."""
    from harbor.job import Job
    from harbor.models.job.config import JobConfig
    from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig

    monkeypatch.setenv("ORRERY_STATE", str(sandbox_state))
    jobs = task.parent / "jobs"

    async def main() -> None:
        job = await Job.create(
            JobConfig(
                job_name=agent,
                jobs_dir=jobs,
                quiet=True,
                environment=EnvironmentConfig(import_path="orrery.environments.sandbox:SandboxEnvironment"),
                agents=[AgentConfig(name=agent)],
                tasks=[TaskConfig(path=task)],
            )
        )
        await job.run()

    asyncio.run(main())
    (trial,) = (path for path in (jobs / agent).iterdir() if path.is_dir())
    assert not list((sandbox_state / "run").glob("*/t-*"))
    return json.loads((trial / "result.json").read_text()), trial


def test_the_oracle_scores_and_only_artifacts_cross(tiny, sandbox_state, monkeypatch):
    task = tiny(
        "echo answer > /app/out/result; echo x > /app/hidden; "
        "mkdir -p /logs/verifier; echo 9 > /logs/verifier/reward.txt"
    )
    result, trial = run(task, "oracle", sandbox_state, monkeypatch)
    assert result["exception_info"] is None
    assert result["verifier_result"]["rewards"] == {"reward": 1.0}
    assert (trial / "verifier/app.txt").read_text() == "out\n"
    assert (trial / "artifacts/app/out/start.txt").read_text() == "start\n"
    modes = json.loads((trial / "sandbox.json").read_text())
    assert {"agent"} < modes.keys() and len(modes) == 2
    assert all(entry["mode"].startswith("sandbox:host:") for entry in modes.values())


def test_doing_nothing_scores_nothing(tiny, sandbox_state, monkeypatch):
    result, _ = run(tiny("true"), "nop", sandbox_state, monkeypatch)
    assert result["exception_info"] is None
    assert result["verifier_result"]["rewards"] == {"reward": 0.0}


def test_what_an_agent_left_running_ends_at_its_timeout(tiny, sandbox_state, monkeypatch):
    # The sleeps are killed, and no shell must take that as a sign to go on.
    write = "echo answer > /app/out/result"
    late = f"(setsid sh -c 'sleep 1000; {write}' &); sleep 1000; {write}"
    result, trial = run(tiny(late, agent_s=2), "oracle", sandbox_state, monkeypatch)
    assert result["exception_info"]["exception_type"] in ("AgentTimeoutError", "RuntimeError")
    assert result["verifier_result"]["rewards"] == {"reward": 0.0}
    assert not (trial / "artifacts/app/out/result").exists()


def test_a_verifier_without_an_answer_is_no_score(tiny, sandbox_state, monkeypatch):
    result, _ = run(
        tiny("true", check="#!/bin/bash\nsleep 60\n", verifier_s=2), "nop", sandbox_state, monkeypatch
    )
    assert result["exception_info"]["exception_type"] == "VerifierTimeoutError"
    assert result["verifier_result"] is None


def test_a_missing_tool_is_an_error_of_the_machine_and_no_score(tiny, sandbox_state, monkeypatch):
    from orrery.environments import profiles
    from orrery_core.errors import InfrastructureError

    def missing() -> None:
        raise InfrastructureError("no Luanti server found", mend="apt-get install it")

    monkeypatch.setitem(profiles.HOST_TOOLS, "luanti", missing)
    result, _ = run(tiny("true"), "nop", sandbox_state, monkeypatch)
    assert result["exception_info"]["exception_type"] == "InfrastructureError"
    assert result["verifier_result"] is None
