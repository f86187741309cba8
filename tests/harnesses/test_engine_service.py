"""The engine's socket: our Podman service, its private configuration, and what dead runners leave."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from docker.errors import NotFound
from engine_support import IMAGE, need_engine
from orrery.environments import engine_service
from orrery.environments.engine_service import connect, is_dead, owner, private_configuration, sweep
from orrery_core.errors import UserError


def test_a_machine_without_trouble_gets_no_configuration() -> None:
    assert private_configuration(hard_limits={}, hybrid_cgroups=False) == ""


def test_the_configuration_names_what_the_machine_needs() -> None:
    text = private_configuration(hard_limits={"nofile": 20, "nproc": 30}, hybrid_cgroups=True)
    assert 'default_ulimits = ["nofile=20:20", "nproc=30:30"]' in text
    assert 'runtime = "runc"' in text


def test_only_an_ended_process_of_this_machine_is_dead() -> None:
    host, namespace, pid, started = owner().split("|")
    assert not is_dead(owner())
    assert is_dead("|".join((host, namespace, pid, str(int(started) + 1)))), "the pid was given to another"
    with subprocess.Popen(["true"]) as ended:
        pass
    assert is_dead(f"{host}|{namespace}|{ended.pid}|{started}")
    assert not is_dead(f"elsewhere|{namespace}|{ended.pid}|{started}")
    assert not is_dead("")


def test_a_remote_engine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://10.0.0.1:2375")
    with pytest.raises(UserError, match="DOCKER_HOST"):
        engine_service._docker_socket()


RUNNER = """
import sys
from orrery.environments.engine_service import OWNER_LABEL, connect, owner
engine = connect()
made = engine.client.containers.run(
    sys.argv[1], ["sleep", "1000"], detach=True, network_mode="none", labels={OWNER_LABEL: owner()}
)
service = engine_service._service
print(made.id, engine.socket, service._process.pid if service else 0, flush=True)
sys.stdin.read()
"""


@pytest.mark.e2e
@pytest.mark.engine
def test_a_killed_runner_leaves_no_service_and_its_container_is_swept() -> None:
    need_engine()
    script = "from orrery.environments import engine_service\n" + textwrap.dedent(RUNNER)
    runner = subprocess.Popen(
        [sys.executable, "-c", script, IMAGE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert runner.stdout is not None and runner.stdin is not None
    container, socket_path, service = runner.stdout.readline().split()
    api = connect().client.api
    assert container not in "".join(sweep(connect().client)), "a living runner keeps its containers"
    assert api.inspect_container(container)["State"]["Running"]
    watch = os.pidfd_open(int(service)) if int(service) else None
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    runner.stdin.close()
    runner.stdout.close()
    if watch is not None:
        signalled = _ends_within(watch, 20)
        assert signalled, "the Podman service outlived its runner"
    sweep(connect().client)
    with pytest.raises(NotFound):
        api.inspect_container(container)
    if watch is not None:
        assert not Path(socket_path).parent.exists()


def _ends_within(pidfd: int, seconds: float) -> bool:
    ready, _, _ = select.select([pidfd], [], [], seconds)
    os.close(pidfd)
    return bool(ready)
