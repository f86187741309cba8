"""The doctor: every state has its mend, and only what is required decides the exit code."""

from __future__ import annotations

import json

import pytest
from orrery import cli, doctor
from orrery_core.errors import InfrastructureError


def ok() -> str:
    return "there"


def missing() -> str:
    raise doctor.Missing("not there", mend="install it")


def broken() -> str:
    raise InfrastructureError("does not run", mend="mend it")


def strange() -> str:
    raise OSError("what is this")


@pytest.mark.parametrize(
    ("attempt", "state", "detail", "mend"),
    [
        (ok, "ok", "there", ""),
        (missing, "missing", "not there", "install it"),
        (broken, "broken", "does not run", "mend it"),
        (strange, "broken", "OSError: what is this", "scripts/setup"),
    ],
)
def test_states(attempt: object, state: str, detail: str, mend: str) -> None:
    check = doctor.Probe("thing", attempt).run()  # type: ignore[arg-type]
    assert (check.state, check.detail, check.mend) == (state, detail, mend)


@pytest.mark.parametrize(("required", "code"), [(True, 3), (False, 0)])
def test_only_what_is_required_fails(
    required: bool, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    probes = (doctor.Probe("good", ok), doctor.Probe("bad", missing, required=required))
    monkeypatch.setattr(doctor, "PROBES", probes)
    assert cli.main(["doctor"]) == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["ok", "good", "there"]
    assert lines[2].strip() == "mend: install it"
    assert cli.main(["doctor", "--json"]) == code
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert [set(check) for check in checks] == [{"name", "state", "detail", "mend", "required"}] * 2


def test_the_doctor_looks_at_everything_that_runs_need() -> None:
    names = {probe.name for probe in doctor.PROBES}
    assert names >= {"python", "environment", "luanti", "gate", "bubblewrap", "sandbox", "isolation", "disk"}
    assert names >= {"control groups", "engine", "hidden key"}


@pytest.mark.e2e
def test_this_machine_is_sound() -> None:
    assert [check for check in doctor.examine() if check.required and check.state != "ok"] == []
