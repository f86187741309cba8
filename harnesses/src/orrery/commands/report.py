"""`orrery report`."""

from __future__ import annotations

from pathlib import Path

import click
from orrery_core.errors import UserError


@click.command()
@click.argument("jobs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "out_dir", type=click.Path(path_type=Path, file_okay=False), help="Where to write it.")
def command(jobs: tuple[Path, ...], out_dir: Path | None) -> None:
    """Write one HTML page about JOBS (job folders), with Markdown, CSV and JSON beside it.

    Several jobs make one comparison. Without -o it goes into the folder `report` of the only job.
    """
    from orrery.paths import shown
    from orrery.report import build

    if out_dir is None:
        if len(jobs) > 1:
            raise UserError(
                "a report about several jobs belongs into none of them", mend="say where with -o DIR"
            )
        out_dir = jobs[0] / "report"
    click.echo(shown(build(list(jobs), out_dir)))
