"""A whole Harbor job on containers: oracle and nop on a small task with a separate verifier."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from engine_support import IMAGE, need_engine
from orrery.environments.base import RECORD_FILE

pytestmark = [pytest.mark.e2e, pytest.mark.engine]

TASK = """\
schema_version = "1.4"
artifacts = ["/app/mod"]

[task]
name = "orrery/tiny"
description = "Say yes"

[environment]
network_mode = "no-network"

[verifier]
environment_mode = "separate"

[verifier.environment]
network_mode = "no-network"
"""

# The verifier sees the artifact, and nothing else that the agent did.
TEST = """\
test -e /app/forged && exit 1
score=0; [ "$(cat /app/mod/answer 2>/dev/null)" = yes ] && score=1
echo "{\\"reward\\": $score}" >/logs/verifier/reward.json
"""


def tiny_task(folder: Path) -> Path:
    files = {
        "task.toml": TASK,
        "instruction.md": "Say yes.\n",
        "environment/Dockerfile": f"FROM {IMAGE}\nCOPY mod /app/mod\nWORKDIR /app\n",
        "environment/mod/init": "",
        "tests/Dockerfile": f"FROM {IMAGE}\nCOPY . /tests/\nWORKDIR /app\n",
        "tests/test.sh": TEST,
        "solution/solve.sh": "touch /app/forged; echo yes >/app/mod/answer\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1.0), ("nop", 0.0)])
def test_a_job_scores_the_oracle_and_the_empty_answer(
    agent: str, reward: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_engine()
    monkeypatch.setenv("HARBOR_TELEMETRY", "0")
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from harbor.job import Job
    from harbor.models.job.config import JobConfig
    from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig

    config = JobConfig(
        job_name="job",
        jobs_dir=tmp_path / "jobs",
        quiet=True,
        environment=EnvironmentConfig(import_path="orrery.environments.engine:EngineEnvironment"),
        agents=[AgentConfig(name=agent)],
        tasks=[TaskConfig(path=tiny_task(tmp_path / "tiny"), source="tiny")],
    )

    async def whole() -> None:
        job = await Job.create(config)
        await job.run()

    asyncio.run(whole())
    trials = [path.parent for path in (tmp_path / "jobs/job").glob("*/result.json")]
    assert len(trials) == 1
    result = json.loads((trials[0] / "result.json").read_text())
    assert result["exception_info"] is None
    assert result["verifier_result"]["rewards"] == {"reward": reward}
    modes = json.loads((trials[0] / RECORD_FILE).read_text())
    assert {entry["mode"].split(":")[0] for entry in modes.values()} == {"engine"}
    assert len(modes) == 2
