"""Mods that try to make their own trial an `error`, which would leave it out of the mean."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from orrery_core.results import TrialStatus
from submissions import HONEST, attacked, code, group, hurry, judged, task, write_mod

pytestmark = pytest.mark.e2e

JUDGE_MB = 1500
"""How much memory floods may cost the judge: with the two servers it stays below the verifier's 4 GiB."""


@pytest.mark.parametrize("name", group("odd_data", sample=4))
def test_data_that_nobody_expects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    hurry(monkeypatch, arm_s=45.0)
    report = attacked(tmp_path, HONEST + code("odd_data", name), task(restart=True))
    assert report.status is TrialStatus.SCORED


@pytest.mark.parametrize("name", group("floods_the_players", sample=4))
def test_floods_towards_the_players(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    hurry(monkeypatch, arm_s=30.0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report = judged(tmp_path, write_mod(tmp_path / "mod", HONEST + code("floods_the_players", name)))
    assert report.status is TrialStatus.SCORED
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    assert grown < JUDGE_MB, f"the judge grew by {grown} MiB"


def test_many_things_to_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)
    report = attacked(tmp_path, HONEST + code("single", "many_things_to_find"))
    assert report.status is TrialStatus.SCORED
