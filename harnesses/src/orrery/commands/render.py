"""`orrery render`."""

from __future__ import annotations

import click

from orrery.commands import _options


@click.command()
@_options.task_paths
@click.option("--check", "only_check", is_flag=True, help="Write nothing; fail where a file has drifted.")
def command(paths: tuple[str, ...], only_check: bool) -> int:
    """Write the Harbor directories of tasks from their spec.toml and the templates."""
    from orrery import compile as compiler
    from orrery.paths import shown
    from orrery.tasks import find_tasks

    tasks = find_tasks(paths)
    if not only_check:
        for task in tasks:
            changed = compiler.write(task.path)
            click.echo(f"{shown(task.path)}: {', '.join(changed) if changed else 'up to date'}")
        return 0
    drifted = [line for task in tasks for line in compiler.drift(task.path)]
    for line in drifted:
        click.echo(line)
    return 1 if drifted else 0
