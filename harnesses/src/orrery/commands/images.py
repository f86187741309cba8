"""`orrery images`."""

from __future__ import annotations

import json

import click

from orrery.commands import _options


@click.group()
def command() -> None:
    """Build or list the base images that tasks start from, for --env engine."""


@command.command("ls")
@_options.as_json
def list_command(as_json: bool) -> None:
    """List the images with their state: current, stale (its sources changed) or missing."""
    from dataclasses import asdict

    from orrery.images import list_images

    images = [asdict(state) for state in list_images()]
    if as_json:
        click.echo(json.dumps({"images": images}, indent=2))
        return
    for image in images:
        click.echo("  ".join(str(value) for value in image.values()))


@command.command("build")
@click.argument("names", nargs=-1)
@click.option("--force", is_flag=True, help="Build again even where the image is current.")
@click.option("--rootfs", is_flag=True, help="Unpack them for the sandbox's rootfs profile; needs no engine.")
def build_command(names: tuple[str, ...], force: bool, rootfs: bool) -> None:
    """Build the images NAMES (by default all) in the local engine, roots included."""
    from orrery.images import build

    build(names, rootfs=rootfs, force=force, report=lambda line: click.echo(line, err=True))
