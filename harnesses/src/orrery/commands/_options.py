"""Options that several subcommands share."""

from __future__ import annotations

from pathlib import Path

import click

environment = click.option(
    "--env",
    "-e",
    "environment",
    default="sandbox",
    show_default=True,
    help="sandbox, engine (Docker or Podman), a Harbor environment, or module:Class.",
)
concurrent = click.option(
    "-n", "concurrent", type=click.IntRange(min=1), default=2, show_default=True, help="Trials at a time."
)
jobs_dir = click.option(
    "-o",
    "jobs_dir",
    type=click.Path(path_type=Path, file_okay=False),
    default="jobs",
    show_default=True,
    help="Jobs folder.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
task_paths = click.argument("paths", nargs=-1, required=True)
