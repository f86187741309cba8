"""`orrery ls`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from orrery.commands import _options

if TYPE_CHECKING:
    from orrery.tasks import TaskDir


@click.command()
@click.argument("paths", nargs=-1)
@_options.as_json
def command(paths: tuple[str, ...], as_json: bool) -> int:
    """List the tasks that PATHS name (by default all), with their family, level, criteria and status.

    Status: proven or unproven as the spec says, or invalid when the task cannot run.
    """
    from orrery.tasks import all_tasks, find_tasks

    rows = [describe(task) for task in (find_tasks(paths) if paths else all_tasks())]
    if as_json:
        click.echo(json.dumps({"tasks": [row for row, _ in rows]}, indent=2))
    else:
        _print(rows)
    return 1 if any(problem for _, problem in rows) else 0


def describe(task: TaskDir) -> tuple[dict[str, object], str]:
    """One entry of the stable JSON shape, and why the task is invalid (empty when it is not)."""
    from orrery_core.errors import UserError

    from orrery.paths import shown
    from orrery.specs import read_spec

    row: dict[str, object] = {
        "path": shown(task.path),
        "family": task.family,
        "level": task.level,
        "criteria": None,
        "status": "invalid",
    }
    try:
        spec = read_spec(task)
    except UserError as error:
        return row, error.message
    problem = task.problem()
    row |= {
        "level": spec.level,
        "criteria": len(spec.criteria),
        "status": "invalid" if problem else spec.status,
    }
    return row, problem or ""


def _print(rows: list[tuple[dict[str, object], str]]) -> None:
    from rich import box
    from rich.table import Table

    from orrery.tables import console

    if not rows:
        click.echo("no tasks")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("path", "family", "level", "criteria", "status"):
        table.add_column(title, justify="right" if title in ("level", "criteria") else "left", no_wrap=True)
    for row, _ in rows:
        table.add_row(*("-" if value is None else str(value) for value in row.values()))
    output = console()
    output.print(table)
    for row, problem in rows:
        if problem:
            output.print(f"{row['path']}: {problem}", markup=False, soft_wrap=True)
