"""The command `orrery`: finds the subcommand, and turns errors into messages with a mend and an exit code.

Exit codes: 0 all scored, 1 a task or check failed its bar, 2 usage, 3 infrastructure, 130 interrupted.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
import traceback
from collections.abc import Sequence

import click
from orrery_core.errors import InfrastructureError, OrreryError

COMMANDS = {
    "check": "Prove that tasks are sound: rendered files, oracle, nop, determinism.",
    "doctor": "Show what this machine has, what is missing, and the mend.",
    "images": "Build or list the base images that tasks start from.",
    "ls": "List tasks.",
    "mutants": "Run every wrong solution; each must be caught by the criterion it names.",
    "rejudge": "Judge the stored evidence of jobs again with the current spec.",
    "render": "Write task directories from spec.toml and the templates.",
    "report": "Write the HTML report of jobs, with Markdown, CSV and JSON beside it.",
    "run": "Run an agent on tasks.",
    "show": "Show one task: request, requirements, checks, mutants.",
}
INTERRUPTED = 130


class _Lazy(click.Group):
    """Imports a subcommand only when it is used, so that `orrery --help` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"orrery.commands.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="orrery-tasks", message="orrery %(version)s")
def cli() -> None:
    """Harbor tasks about executable worlds.

    Paths are task directories, folders of tasks, or quoted globs ('tasks/luanti/l3_*').
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    try:
        result = cli.main(args=arguments, prog_name="orrery", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except OrreryError as error:
        return _tell(error)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            return _defect()
        where = error.filename or "the jobs folder"
        return _tell(
            InfrastructureError(f"the disk is full ({where})", mend="free space, then run the command again")
        )
    except Exception:
        return _defect()
    return result if isinstance(result, int) else 0


def _defect() -> int:
    """A mistake in Orrery is neither the user's nor a low score."""
    traceback.print_exc()
    return InfrastructureError.exit_code


def _tell(error: OrreryError) -> int:
    if os.environ.get("ORRERY_DEBUG"):
        raise error
    print(f"orrery: {error.message}", file=sys.stderr)
    if error.mend:
        print(f"  mend: {error.mend}", file=sys.stderr)
    return error.exit_code
