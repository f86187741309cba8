"""Harbor's job with one change: a trial that cannot be created is that trial's error, not the end of the job.

Kept apart so that importing the runner stays cheap. It leans on Harbor's insides; the tests pin them.
"""

from __future__ import annotations

from asyncio import TaskGroup
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, override

from harbor.job import Job
from harbor.models.trial.config import TrialConfig
from harbor.models.trial.paths import TrialPaths
from harbor.models.trial.result import AgentInfo, ExceptionInfo, TrialResult


class GuardedJob(Job):
    """Calls `when_refused` with the name of a trial that could not be created; no hook of Harbor's tells."""

    when_refused: Callable[[str], None]

    @override
    async def _run_trials_with_queue(self, *_progress: Any) -> list[TrialResult]:
        configs = self._remaining_trial_configs
        coroutines = self._trial_queue.submit_batch(configs)
        async with TaskGroup() as group:
            tasks = [
                group.create_task(self._guarded(config, coroutine))
                for config, coroutine in zip(configs, coroutines, strict=True)
            ]
        return [task.result() for task in tasks]

    async def _guarded(self, config: TrialConfig, trial: Coroutine[Any, Any, TrialResult]) -> TrialResult:
        try:
            return await trial
        except Exception as error:
            if (config.trials_dir / config.trial_name / "result.json").exists():
                raise  # it ran; what failed is keeping its result
            result = self._record_failure(config, error)
            self.when_refused(config.trial_name)
            return result

    def _record_failure(self, config: TrialConfig, error: Exception) -> TrialResult:
        paths = TrialPaths(config.trials_dir / config.trial_name)
        paths.mkdir()
        now = datetime.now(UTC)
        result = TrialResult(
            task_name=config.task.get_task_id().get_name(),
            trial_name=config.trial_name,
            trial_uri=paths.trial_dir.resolve().as_uri(),
            task_id=config.task.get_task_id(),
            source=config.task.source,
            task_checksum="",
            config=config,
            agent_info=AgentInfo(name=config.agent.name or config.agent.import_path or "", version="unknown"),
            exception_info=ExceptionInfo.from_exception(error),
            started_at=now,
            finished_at=now,
        )
        paths.config_path.write_text(config.model_dump_json(indent=4))
        paths.result_path.write_text(result.model_dump_json(indent=4))
        return result
