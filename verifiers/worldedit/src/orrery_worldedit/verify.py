"""One verification, end to end: package gate, two arms side by side, evidence, verdicts, files."""

from __future__ import annotations

import hashlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from orrery_core.errors import InfrastructureError
from orrery_core.reports import EVIDENCE, ReportWriter, read_evidence
from orrery_core.results import Report

from orrery_worldedit import games, verdict
from orrery_worldedit.evidence import ArmEvidence, Change, Evidence
from orrery_worldedit.package_gate import Package, PackageRejected, inspect_package
from orrery_worldedit.spec import TaskSpec

MAX_CHANGES = 20_000
"""Registry changes kept as evidence; an honest mod makes some hundred."""
MAX_VALUE = 20_000
"""Characters of one value of a change, written as JSON."""


class Arm(Protocol):
    """What a game adapter runs for one side of a verification."""

    def run(self) -> tuple[ArmEvidence, list[dict[str, Any]]]:
        """Load, run every check.

        Returns the evidence and the registry dumps taken (after loading, at the end).
        """


def verify(spec: TaskSpec, submission: Path, out: Path, workdir: Path) -> Report:
    """Judge a submission and write `report.json`, `reward.json` and `evidence.json` into ``out``.

    Args:
        spec: the task with its hidden checks.
        submission: the mod folder as the agent left it; hostile.
        out: where the files go; `report.json` says `error` until the last moment.
        workdir: an empty private folder for worlds and channels.

    Raises:
        InfrastructureError: this machine cannot measure; the report then says `error` and no reward is
            written.
    """
    with ReportWriter(out, task=spec.id, family=spec.family, level=spec.level) as writer:
        started = time.monotonic()
        evidence = collect(spec, submission, workdir)
        writer.evidence(evidence)
        report = verdict.judge(spec, evidence)
        report = report.model_copy(update={"timings": {"verify_s": round(time.monotonic() - started, 3)}})
        writer.finish(report)
    return report


def rejudge(spec: TaskSpec, folder: Path) -> Report:
    """Judge stored evidence again, without running anything.

    Args:
        spec: the task as it is now.
        folder: a verifier folder with `evidence.json`.
    """
    return verdict.judge(spec, Evidence.model_validate(read_evidence(folder / EVIDENCE)))


def spec_hash(spec: TaskSpec) -> str:
    """SHA-256 of everything in a spec that can move a verdict."""
    return hashlib.sha256(spec.without_solutions().model_dump_json(by_alias=True).encode()).hexdigest()


def collect(spec: TaskSpec, submission: Path, workdir: Path) -> Evidence:
    """Measure a submission and its vanilla control; no verdicts."""
    evidence = Evidence(spec_hash=spec_hash(spec), submission_hash="", seed=spec.seed)
    try:
        package = inspect_package(submission, spec.mod.name)
    except PackageRejected as broken_rule:
        evidence.rejected = str(broken_rule)
        return evidence
    evidence.submission_hash = package.digest
    adapter = games.adapter(spec.family)
    machine = adapter.machine()
    evidence.versions, evidence.mode = machine.versions, machine.mode
    evidence.syntax_errors = adapter.syntax_errors(machine, package, workdir / "syntax")
    if evidence.syntax_errors:
        return evidence
    _run_arms(spec, package, machine, adapter, workdir, evidence)
    return evidence


def _run_arms(
    spec: TaskSpec, package: Package, machine: Any, adapter: Any, workdir: Path, evidence: Evidence
) -> None:
    """Both arms at the same time where the machine allows: they share nothing but the processor."""

    def run(name: str, root: Path | None) -> tuple[ArmEvidence, list[dict[str, Any]]]:
        arm: Arm = adapter.arm(machine, spec, root, workdir / name)
        return arm.run()

    with ThreadPoolExecutor(max_workers=2 if machine.parallel else 1) as pool:
        candidate = pool.submit(run, "candidate", package.root)
        control = pool.submit(run, "vanilla", None)
    evidence.candidate, dumps = candidate.result()
    try:
        evidence.vanilla, controls = control.result()
        sound = all(check.outcome != "unmeasurable" for check in evidence.vanilla.checks.values())
    except (InfrastructureError, OSError):
        if not machine.parallel:
            raise
        sound = False
    if not sound and machine.parallel:
        # A submission that takes all it can get starves its neighbour; alone, only the machine is at fault.
        evidence.vanilla, controls = run("vanilla_alone", None)
    evidence.changes = _changes(adapter, controls, dumps)


def _changes(adapter: Any, controls: list[dict[str, Any]], dumps: list[dict[str, Any]]) -> list[Change]:
    """Differences of all pairs of dumps, the first value seen for each path."""
    found: dict[str, Change] = {}
    for before, after in zip(controls, dumps, strict=False):
        for change in adapter.diff(before, after):
            kept = Change(path=change.path, before=_short(change.before), after=_short(change.after))
            found.setdefault(change.path, kept)
    paths = sorted(found)
    left_out = paths[MAX_CHANGES:]
    changes = [found[path] for path in paths[:MAX_CHANGES]]
    if left_out:
        changes.append(Change(path="(more)", after=f"{len(left_out)} more changes"))
    return changes


def _short(value: Any) -> Any:
    """A value as it is kept as evidence: a long one by its digest."""
    text = json.dumps(value, sort_keys=True)
    if len(text) <= MAX_VALUE:
        return value
    return f"<{len(text)} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
