"""The runner on a real task in the sandbox: a killed run leaves nothing behind and goes on where it was."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import as_json, command, environment, orrery

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).parents[2]
TASKS = ("tasks/luanti/l1_hearty_apples", "tasks/luanti/l1_steel_pick")


def wait_until(happened: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 300
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)


def descendants(pid: int) -> set[int]:
    """The process and everything below it that is still alive."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            children.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found, queue = set(), [pid]
    while queue:
        current = queue.pop()
        found.add(current)
        queue += children.get(current, [])
    return found


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if (Path("/proc") / str(pid)).exists()}


def test_after_kill_9_no_process_stays_and_the_job_goes_on(tmp_path: Path) -> None:
    arguments = ("run", *TASKS, "-n", "1", "-o", str(tmp_path), "--job-name", "job", "--json")
    process = subprocess.Popen(
        command(*arguments),
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    job = tmp_path / "job"
    wait_until(lambda: any(job.glob("l1_hearty_apples__*/result.json")), process)
    wait_until(lambda: any(job.glob("l1_steel_pick__*/sandbox.json")), process)
    below: set[int] = set()

    def a_sandbox_runs() -> bool:  # between the agent's sandbox and the verifier's there is none for a moment
        below.update(descendants(process.pid) - {process.pid})
        return bool(alive(below))

    wait_until(a_sandbox_runs, process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    deadline = time.monotonic() + 30
    while left := alive(below):
        assert time.monotonic() < deadline, f"still alive: {left}"
        time.sleep(0.05)
    finished = {path.parent.name: path.read_text() for path in job.glob("*__*/result.json")}
    assert [name.partition("__")[0] for name in finished] == ["l1_hearty_apples"]

    again = orrery(*arguments, cwd=ROOT)
    assert again.returncode == 0, again.stderr
    assert [trial["reward"] for trial in as_json(again)["trials"]] == [1.0, 1.0]
    assert "1 of 2 trials are kept" in again.stderr
    assert (
        finished.items()
        <= {path.parent.name: path.read_text() for path in job.glob("*__*/result.json")}.items()
    )
    assert as_json(again)["mode"]["environment"].startswith("sandbox:")
