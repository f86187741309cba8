"""Verdicts of a world-editing task: pure functions of spec and evidence."""

from __future__ import annotations

from typing import Any

from orrery_core.results import Criterion, Report, Status, TrialStatus

from orrery_worldedit import expression
from orrery_worldedit.evidence import ArmEvidence, CheckEvidence, Evidence
from orrery_worldedit.preservation import offending
from orrery_worldedit.spec import Check, TaskSpec

SHOWN_CHANGES = 20


def judge(spec: TaskSpec, evidence: Evidence) -> Report:
    """Turn evidence into a report.

    Args:
        spec: the task; its acceptance expressions and allowances decide.
        evidence: what was measured; may be older than the spec (re-judging), as long as the measured names
            still exist.

    Returns:
        A report without timings. A criterion that could not be measured makes the trial an `error` without a
        reward.
    """
    criteria = _criteria(spec, evidence)
    broken = [criterion for criterion in criteria if criterion.status is Status.ERROR]
    if evidence.rejected:
        status, reason = TrialStatus.REJECTED, evidence.rejected
    elif broken:
        status, reason = TrialStatus.ERROR, f"{broken[0].id}: {broken[0].reason}"
    else:
        status, reason = TrialStatus.SCORED, ""
    rewards = {} if status is TrialStatus.ERROR else _rewards(criteria)
    return Report(
        task=spec.id,
        family=spec.family,
        level=spec.level,
        status=status,
        reason=reason,
        reward=rewards.get("reward"),
        rewards=rewards,
        criteria=tuple(criteria),
        seeds={"world": evidence.seed},
        versions={"task": spec.version, "spec": evidence.spec_hash[:16], **evidence.versions},
        mode=evidence.mode,
    )


def _rewards(criteria: list[Criterion]) -> dict[str, float]:
    passed = {criterion.id: criterion.status is Status.PASS for criterion in criteria}
    kept = [passed[c.id] for c in criteria if c.stage in ("regression", "integrity")]
    return {
        "reward": float(all(passed.values())),
        "cpr": round(sum(passed.values()) / len(passed), 6),
        "built": float(passed["built"]),
        "loaded": float(passed["loaded"]),
        "preservation": round(sum(kept) / len(kept), 6),
        "criteria": float(len(passed)),
        "passed": float(sum(passed.values())),
    }


def _criteria(spec: TaskSpec, evidence: Evidence) -> list[Criterion]:
    built = _built(evidence)
    loaded = _loaded(evidence, built.status is Status.PASS)
    alive = loaded.status is Status.PASS
    arm = evidence.candidate if alive else None
    checks = [_check(spec, check, evidence, arm) for check in spec.checks]
    return [
        built,
        loaded,
        _survives(arm),
        _registry(spec, evidence, arm),
        _untampered(evidence, arm),
        *checks,
    ]


def _built(evidence: Evidence) -> Criterion:
    def ended(status: Status, reason: str = "") -> Criterion:
        return Criterion(
            id="built",
            stage="build",
            status=status,
            reason=reason,
            evidence={"submission": evidence.submission_hash},
        )

    if evidence.rejected:
        return ended(Status.FAIL, f"rejected: {evidence.rejected}")
    if evidence.syntax_errors:
        return ended(Status.FAIL, "; ".join(evidence.syntax_errors[:5]))
    return ended(Status.PASS)


def _loaded(evidence: Evidence, built: bool) -> Criterion:
    arm = evidence.candidate
    if not built or arm is None:
        return Criterion(id="loaded", stage="load", status=Status.UNREACHED, reason="the mod was not built")
    status = Status.PASS if arm.loaded else Status.FAIL
    return Criterion(
        id="loaded", stage="load", status=status, reason=arm.load_reason, evidence={"log": arm.log_tail}
    )


def _survives(arm: ArmEvidence | None) -> Criterion:
    if arm is None:
        return _unreached("survives", "behaviour")
    deaths = {name: check.reason for name, check in arm.checks.items() if check.outcome == "died"}
    if deaths:
        name, reason = next(iter(deaths.items()))
        return Criterion(
            id="survives",
            stage="behaviour",
            status=Status.FAIL,
            reason=f"during {name}: {reason}",
            evidence=dict(deaths),
        )
    return Criterion(id="survives", stage="behaviour", status=Status.PASS)


def _registry(spec: TaskSpec, evidence: Evidence, arm: ArmEvidence | None) -> Criterion:
    if arm is None:
        return _unreached("registry_preserved", "integrity")
    bad = offending(evidence.changes, spec.preservation, spec.mod.name)
    shown: dict[str, Any] = {c.path: [c.before, c.after] for c in bad[:SHOWN_CHANGES]}
    return Criterion(
        id="registry_preserved",
        stage="integrity",
        status=Status.FAIL if bad else Status.PASS,
        reason=f"{len(bad)} changes that the request does not ask for, first {bad[0].path}" if bad else "",
        evidence={"compared_changes": len(evidence.changes), "offending": shown},
    )


def _untampered(evidence: Evidence, arm: ArmEvidence | None) -> Criterion:
    if arm is None or evidence.vanilla is None:
        return _unreached("untampered", "integrity")
    found = sorted(set(arm.tampered) - set(evidence.vanilla.tampered))
    return Criterion(
        id="untampered",
        stage="integrity",
        status=Status.FAIL if found else Status.PASS,
        reason=f"replaced: {', '.join(found[:5])}" if found else "",
        evidence={"replaced": found[:SHOWN_CHANGES]},
    )


def _unreached(name: str, stage: str, requirement: int | None = None) -> Criterion:
    return Criterion(
        id=name, stage=stage, status=Status.UNREACHED, reason="the mod did not load", requirement=requirement
    )


def _check(spec: TaskSpec, check: Check, evidence: Evidence, arm: ArmEvidence | None) -> Criterion:
    if arm is None:
        return _unreached(check.id, check.stage, check.requirement)
    control = evidence.vanilla.checks.get(check.id) if evidence.vanilla else None
    measured = arm.checks.get(check.id)
    if control is None or measured is None:
        status, reason = Status.ERROR, "was not measured"
    else:
        status, reason = _control_problem(check, control) or _outcome(
            check, measured, control, _subjects(arm)
        )
    return Criterion(
        id=check.id,
        stage=check.stage,
        status=status,
        reason=reason,
        requirement=check.requirement,
        evidence={
            "measured": measured.values if measured else {},
            "vanilla": control.values if control else {},
            "acceptance": list(check.acceptance),
            "outcome": check.outcome,
        },
    )


def _control_problem(check: Check, control: CheckEvidence) -> tuple[Status, str] | None:
    """A check that cannot fail without the mod, or fails where nothing was changed, is defective.

    It judges nobody.
    """
    if control.outcome in ("died", "unmeasurable", "skipped"):
        return Status.ERROR, f"vanilla control: {control.reason}"
    status, reason = _outcome(check, control, control, {})
    if check.expected_vanilla == "pass" and status is not Status.PASS:
        return Status.ERROR, f"defective check: the unmodified game does not pass it ({reason})"
    if check.expected_vanilla == "fail" and status is Status.PASS:
        return Status.ERROR, "defective check: the unmodified game passes it"
    return None


def _subjects(arm: ArmEvidence) -> dict[str, str]:
    """Names of the subjects that were found without doubt; expressions may compare with them."""
    return {subject: found[0] for subject, found in arm.subjects.items() if len(found) == 1}


def _outcome(
    check: Check, measured: CheckEvidence, control: CheckEvidence, subjects: dict[str, str]
) -> tuple[Status, str]:
    match measured.outcome:
        case "stopped" | "died":
            return Status.FAIL, measured.reason
        case "skipped":
            return Status.UNREACHED, measured.reason
        case "unmeasurable":
            return Status.ERROR, measured.reason
    scope = {**subjects, **measured.values, "vanilla": control.values}
    for gate in check.gates:
        if not _holds(gate, scope):
            return Status.UNREACHED, f"gate does not hold: {gate}"
    for rule in check.acceptance:
        try:
            if not expression.evaluate(rule, scope):
                return Status.FAIL, f"does not hold: {rule}{_seen(rule, measured.values)}"
        except expression.ExpressionError as problem:
            return Status.FAIL, f"does not hold: {problem}"[:400]
    return Status.PASS, ""


def _holds(rule: str, scope: dict[str, Any]) -> bool:
    try:
        return bool(expression.evaluate(rule, scope))
    except expression.ExpressionError:
        return False


def _seen(rule: str, values: dict[str, Any]) -> str:
    seen = ", ".join(
        f"{name} = {values[name]!r}" for name in sorted(expression.names(rule)) if name in values
    )
    return f" ({seen[:200]})" if seen else ""
