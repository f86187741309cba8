"""The command of the verifier and agent images."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from orrery_core.errors import OrreryError
from orrery_core.results import canonical_json

from orrery_worldedit.scratch import scratch_folder


def main(argv: list[str] | None = None) -> int:
    """Entry point of `orrery-worldedit`.

    Exit codes: 0 done, 1 a problem in the mod, 2 usage, 3 infrastructure.
    """
    parser = argparse.ArgumentParser(
        prog="orrery-worldedit", description="Judge or try out a mod of a world-editing task."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    verify = commands.add_parser("verify", help="judge a submission against a hidden spec")
    verify.add_argument("--spec", type=Path, required=True)
    verify.add_argument("--submission", type=Path, required=True)
    verify.add_argument("--out", type=Path, required=True)
    attempt = commands.add_parser("try", help="build and load a mod, and say what it adds or breaks")
    attempt.add_argument("mod", type=Path)
    attempt.add_argument(
        "--seconds", type=float, default=10.0, help="game seconds to run after loading (default 10)"
    )
    commands.add_parser("paths", help="where the game's and the engine's sources are")
    options = parser.parse_args(argv)
    try:
        with scratch_folder() as folder:
            return _COMMANDS[options.command](options, folder)
    except OrreryError as problem:
        print(f"orrery-worldedit: {problem}", file=sys.stderr)
        return problem.exit_code


def _verify(options: argparse.Namespace, workdir: Path) -> int:
    from orrery_worldedit.spec import load_spec
    from orrery_worldedit.verify import verify

    report = verify(load_spec(options.spec), options.submission, options.out, workdir)
    for criterion in report.criteria:
        print(f"{criterion.status.value:10} {criterion.id}  {criterion.reason}")
    print(f"{report.status.value}: reward {report.reward}")
    return 0


def _try(options: argparse.Namespace, workdir: Path) -> int:
    from orrery_worldedit.attempt import attempt

    outcome = attempt(options.mod, options.seconds, workdir)
    print(canonical_json(outcome), end="")
    return 0 if outcome.ok else 1


def _paths(options: argparse.Namespace, workdir: Path) -> int:
    from orrery_worldedit.games.luanti.install import find_install

    install = find_install()
    print(f"game {install.game}\nengine {install.share}\nserver {install.server}")
    return 0


_COMMANDS = {"verify": _verify, "try": _try, "paths": _paths}
