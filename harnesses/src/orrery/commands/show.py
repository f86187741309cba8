"""`orrery show`."""

from __future__ import annotations

from typing import Any

import click
from orrery_core.errors import UserError


@click.command()
@click.argument("path", metavar="TASK|FAMILY")
@click.option("--verbs", is_flag=True, help="Instead, list the verbs that checks of a family can use.")
def command(path: str, verbs: bool) -> None:
    """Show one task: what the agent is asked and how it is judged.

    Hidden checks and mutants are for authors and reviewers; an agent never sees them.
    """
    if verbs:
        _show_verbs(path)
        return
    from orrery.paths import shown
    from orrery.specs import read_spec
    from orrery.tasks import find_tasks

    tasks = find_tasks([path])
    if len(tasks) != 1:
        raise UserError(f"{path}: names {len(tasks)} tasks", mend="name one; `orrery ls` lists them")
    spec = read_spec(tasks[0])
    describe = _world_model if spec.family == "worldmodel" else _world_editing
    lines = [
        spec.title,
        shown(tasks[0].path) + f"  version {spec.version}, {spec.status}",
        "",
        *describe(spec),
    ]
    click.echo("\n".join(lines))


def _world_model(spec: Any) -> list[str]:
    size = spec.size
    limit = f"{size.seconds} s" + (f" and {size.steps} steps" if size.steps else "")
    return [
        f"profile {size.name}: {limit} per experiment, {size.session_seconds} s for the agent",
        f"judged on {size.windows} windows of hidden test episodes and {size.cases} cases of each scenario",
        "",
        "criteria",
        *(f"  {name}" for name in spec.criteria),
    ]


def _world_editing(spec: Any) -> list[str]:
    lines = [
        f"level {spec.level}, {spec.genre}",
        "",
        spec.request.strip(),
        "",
        "requirements",
        *(f"  {number}. {text.strip()}" for number, text in enumerate(spec.requirements, 1)),
    ]
    for stage in dict.fromkeys(check.stage for check in spec.checks):
        lines += ["", f"{stage} checks"]
        lines += [
            f"  {check.id}  (requirement {check.requirement})  {check.action}: {check.outcome}"
            for check in spec.checks
            if check.stage == stage
        ]
    lines += ["", "mutants"]
    lines += [f"  {mutant.id}  caught by {mutant.criterion}: {mutant.mistake}" for mutant in spec.mutants]
    return lines


def _show_verbs(family: str) -> None:
    from orrery_worldedit.games import FAMILIES, verbs_class
    from orrery_worldedit.verbs import Kind, verbs_of

    if family not in FAMILIES:
        raise UserError(f"{family}: no family with verbs", mend=f"name one of: {', '.join(FAMILIES)}")
    verbs = verbs_of(verbs_class(family)).values()
    for kind in Kind:
        click.echo(f"{kind.value} verbs")
        for verb in (verb for verb in verbs if verb.kind is kind):
            arguments = ", ".join(n if required else f"[{n}]" for n, (_, required) in verb.parameters.items())
            click.echo(f"  {verb.name}({arguments})  {verb.doc}")
        click.echo("")
