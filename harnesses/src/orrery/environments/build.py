"""Carries out a Dockerfile: COPY and WORKDIR inside the sandbox itself, RUN once and then from a cache."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import logging
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, cast

from orrery_core.errors import UserError

from orrery.environments.context import Context, pack_steps
from orrery.environments.dockerfile import Copy, MakeDirectory, Recipe, Run, Step
from orrery.environments.launcher import NoSuchUser, find_account
from orrery.environments.limits import Limits
from orrery.environments.output import Capture
from orrery.environments.profiles import Layers
from orrery.environments.running import BASE_ENV, RunningSandbox
from orrery.environments.session import Request
from orrery.environments.state import remove_tree, run_directory, state_dir


async def carry_out(recipe: Recipe, context: Context, sandbox: RunningSandbox) -> None:
    """Do all steps of a recipe inside a running sandbox.

    Raises:
        UserError: a step failed; file, line and the end of its output are in the message.
    """
    for runs, steps in groupby(recipe.steps, key=lambda step: isinstance(step, Run)):
        if runs:
            for step in steps:
                assert isinstance(step, Run)
                await _run(step, sandbox)
        else:
            await _copy(list(steps), context, sandbox, recipe.where)


async def _run(step: Run, sandbox: RunningSandbox) -> None:
    output = Capture()
    env = {**BASE_ENV, **step.env}
    code = await sandbox.run(Request(step.argv, step.cwd, env, step.user or "root"), output)
    if code:
        tail = (output.stdout + output.stderr)[-2000:]
        raise UserError(f"{step.where}: RUN ended with exit code {code}\n{tail}")


async def _copy(steps: Sequence[Step], context: Context, sandbox: RunningSandbox, where: str) -> None:
    accounts = ""
    if any(isinstance(step, Copy) and step.owner for step in steps):
        _, accounts = await sandbox.shell("cat /etc/passwd; printf '\\0'; cat /etc/group")

    def owner(value: str) -> tuple[int, int]:
        passwd, _, group = accounts.partition("\0")
        try:
            account = find_account(passwd, group, value)
        except NoSuchUser as error:
            raise UserError(f"{where}: --chown={value}: {error}") from error
        return account.uid, account.gid if ":" in value or not value.isdigit() else account.uid

    plain = [step for step in steps if isinstance(step, Copy | MakeDirectory)]
    with tempfile.TemporaryFile() as file:
        await asyncio.to_thread(pack_steps, context, plain, owner, cast(BinaryIO, file))
        file.flush()
        file.seek(0)
        ownership = "--no-same-owner" if sandbox.single_uid else "--same-owner --numeric-owner"
        script = f"tar -xpf - -C / {ownership} --no-overwrite-dir"
        code, printed = await sandbox.shell(script, cast(BinaryIO, file))
    if code:
        raise UserError(f"{where}: COPY failed inside the sandbox: {printed.strip()[-1000:]}")


async def built_layers(
    recipe: Recipe, context: Context, layers: Layers, *, rebuild: bool, logger: logging.Logger
) -> Layers:
    """The layers with the result of a recipe that runs code on top; built with network, then cached."""
    cache = state_dir() / "layers"
    cache.mkdir(exist_ok=True)
    key = await asyncio.to_thread(_key, recipe, context, layers)
    target = cache / key
    async with _locked(cache / f"{key}.lock"):
        if rebuild and target.exists():
            await asyncio.to_thread(remove_tree, target)
        if not target.exists():
            building = run_directory().trial()
            try:
                await _build(recipe, context, layers, building, logger)
                (building / "stores").rename(target)
            finally:
                await asyncio.to_thread(remove_tree, building)
    os.utime(target)
    return layers.over(target)


async def _build(
    recipe: Recipe, context: Context, layers: Layers, place: Path, logger: logging.Logger
) -> None:
    sandbox = RunningSandbox(logger, Limits(None, None))
    await sandbox.open(f"{place.parent.name}-{place.name}", layers.view(place / "stores"), share_network=True)
    try:
        await carry_out(recipe, context, sandbox)
    finally:
        await sandbox.close()


def _key(recipe: Recipe, context: Context, layers: Layers) -> str:
    """Changes with the recipe, its files, the base below it and this machine's packages."""
    steps = repr((recipe.image, recipe.steps, dict(recipe.env), recipe.cwd, recipe.user))
    digest = hashlib.sha256(f"{os.geteuid()} {steps} {context.digest()}".encode())
    for path in [*_bases(layers), Path("/var/lib/dpkg/status")]:
        if path.exists():
            status = path.stat()
            digest.update(f"{path} {status.st_ino} {status.st_mtime_ns}".encode())
    return digest.hexdigest()[:32]


def _bases(layers: Layers) -> Iterator[Path]:
    for lowers in layers.lowers.values():
        yield lowers[0]


@asynccontextmanager
async def _locked(path: Path) -> AsyncIterator[None]:
    with path.open("a") as file:
        await asyncio.to_thread(fcntl.flock, file, fcntl.LOCK_EX)
        yield
