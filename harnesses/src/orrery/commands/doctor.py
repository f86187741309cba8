"""`orrery doctor`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click
from orrery_core.errors import InfrastructureError

from orrery.commands import _options

if TYPE_CHECKING:
    from orrery.doctor import Check


@click.command()
@_options.as_json
def command(as_json: bool) -> int:
    """Try out what Orrery needs on this machine; exit 3 when something required is missing or broken."""
    from orrery.doctor import examine

    checks = examine()
    if as_json:
        click.echo(json.dumps({"checks": [asdict(check) for check in checks]}, indent=2))
    else:
        for check in checks:
            _print(check)
    failed = any(check.required and check.state != "ok" for check in checks)
    return InfrastructureError.exit_code if failed else 0


def _print(check: Check) -> None:
    optional = "" if check.required or check.state == "ok" else " (optional)"
    click.echo(f"{check.state:8} {check.name:15} {check.detail}{optional}")
    if check.mend:
        click.echo(f"{'':24} mend: {check.mend}")
