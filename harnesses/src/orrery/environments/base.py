"""What every Orrery environment shares: how commands run, how trees travel, what is recorded.

A backend gives `start`, `stop`, `type`, `_validate_definition` and one way to run a command, `_execute`. It
must not override the transfer methods: they move everything through a command *inside*, so that the host
never resolves a path that hostile code may have replaced by a link, and they unpack archives with our own
bounds.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import tarfile
import tempfile
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.tar_transfer import tar_pack_succeeded
from harbor.utils.path_filter import filter_paths_by_patterns
from orrery_core.errors import InfrastructureError
from pydantic import BaseModel

from orrery.environments.output import Capture, FileOutput, Output, TooLarge
from orrery.environments.transfer import MAX_BYTES, RefusedArchive, pack_tree, unpack_tree

TRANSFER_S = 300
RECORD_FILE = "sandbox.json"


@dataclass(frozen=True)
class Command:
    """One bash command line as a backend runs it; None means the image's own default."""

    script: str
    cwd: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    user: str | int | None = None


class EnvironmentRecord(BaseModel):
    """How one environment of a trial was run; part of the comparability of its scores."""

    mode: str
    details: dict[str, str | float]


class OrreryEnvironment(BaseEnvironment):
    """Transfers, exec semantics and the mode record on top of `_execute`."""

    @abstractmethod
    async def _execute(self, command: Command, output: Output, stdin: BinaryIO | None = None) -> int:
        """Run a command to its end and return its exit code (128 + n when signal n ended it).

        Output goes chunk by chunk to `output.write`. When the call is cancelled or `output.write` raises,
        everything the command started must be dead before the exception leaves, also what changed session or
        was orphaned. Processes left in the background by a command that ended by itself live on.

        Raises:
            InfrastructureError: the command could not be started.
        """

    @property
    def role(self) -> str:
        """`agent`, or `verifier` (with the name of its key when there is one)."""
        suffix = self.session_id.partition("__")[2].partition("__")[2]
        return suffix if suffix.startswith("verifier") else "agent"

    def _record(self, record: EnvironmentRecord) -> None:
        """Log the mode and keep it beside the trial's results, one entry per role."""
        self.logger.info("%s environment runs as %s", self.role, record.mode)
        path = self.trial_paths.trial_dir / RECORD_FILE
        known: dict[str, object] = {}
        with suppress(FileNotFoundError):
            known = json.loads(path.read_text())
        known[self.role] = record.model_dump()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(known, indent=2) + "\n")

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        run = Command(
            command, cwd or self.task_env_config.workdir, self._merge_env(env) or {}, self._resolve_user(user)
        )
        output = Capture(self._output_callback())
        try:
            async with asyncio.timeout(timeout_sec):
                code = await self._execute(run, output)
        except TimeoutError:
            raise RuntimeError(f"Command timed out after {timeout_sec} seconds") from None
        return ExecResult(stdout=output.stdout, stderr=output.stderr, return_code=code)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        source = Path(source_path).resolve(strict=True)
        # A directory as the target means "into it", as with docker cp; only inside can tell.
        script = (
            f't={shlex.quote(target_path)}; [ -d "$t" ] && t="$t"/{shlex.quote(Path(source_path).name)}; '
            'mkdir -p "$(dirname "$t")" && rm -f "$t" && cat > "$t" && '
            f'chmod {source.stat().st_mode & 0o777:o} "$t"'
        )
        with source.open("rb") as file:
            await self._unpack_inside(file, script, f"{source.name} to {target_path}")

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        source = Path(source_dir)
        quoted = shlex.quote(target_dir)
        with tempfile.TemporaryFile() as file:
            await asyncio.to_thread(pack_tree, source, cast(BinaryIO, file))
            file.flush()
            script = f"mkdir -p {quoted} && tar -xf - --no-same-owner -C {quoted}"
            await self._unpack_inside(cast(BinaryIO, file), script, f"{source.name} to {target_dir}")

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        target = Path(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".orrery-", delete=False) as file:
            kept = Path(file.name)
            try:
                await self._pack_inside(
                    f"cat -- {shlex.quote(source_path)}", cast(BinaryIO, file), source_path, None
                )
                file.flush()
                kept.chmod(0o644)
                kept.replace(target)
            finally:
                kept.unlink(missing_ok=True)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        await self._download_tree(source_dir, Path(target_dir), ".")

    async def download_dir_with_exclusions(
        self, *, source_dir: str, target_dir: Path | str, exclude: list[str]
    ) -> None:
        options = " ".join(f"--exclude={shlex.quote(pattern)}" for pattern in exclude)
        await self._download_tree(source_dir, Path(target_dir), f"{options} .")

    async def download_dir_filtered(
        self,
        *,
        source_dir: str,
        target_dir: Path | str,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        protect: Sequence[str] | None = None,
    ) -> None:
        listing = await self.exec(
            f"cd {shlex.quote(source_dir)} && find . -type f", timeout_sec=TRANSFER_S, user="root", cwd="/"
        )
        if listing.return_code != 0:
            raise RuntimeError(f"cannot list {source_dir} inside: {listing.stderr or listing.stdout}")
        paths = [line.removeprefix("./") for line in (listing.stdout or "").splitlines()]
        chosen = set(filter_paths_by_patterns(paths, include=include, exclude=exclude))
        chosen |= set(protect or ()) & set(paths)
        if not chosen:
            Path(target_dir).mkdir(parents=True, exist_ok=True)
            return
        with tempfile.TemporaryFile() as names:
            names.write("".join(f"./{path}\0" for path in sorted(chosen)).encode(errors="surrogateescape"))
            names.seek(0)
            await self._download_tree(source_dir, Path(target_dir), "--null -T -", cast(BinaryIO, names))

    async def _download_tree(
        self, source: str, target: Path, selection: str, stdin: BinaryIO | None = None
    ) -> None:
        with tempfile.TemporaryFile() as file:
            script = f"tar -cf - -C {shlex.quote(source)} {selection}"
            await self._pack_inside(script, cast(BinaryIO, file), source, stdin)
            file.seek(0)
            try:
                refused = await asyncio.to_thread(unpack_tree, cast(BinaryIO, file), target)
            except (RefusedArchive, tarfile.TarError) as error:
                raise RuntimeError(f"download of {source} refused: {error}") from error
        for reason in refused[:20]:
            self.logger.warning("download of %s: left out %s", source, reason)

    async def _pack_inside(self, script: str, file: BinaryIO, source: str, stdin: BinaryIO | None) -> None:
        output = FileOutput(file, MAX_BYTES)
        try:
            async with asyncio.timeout(TRANSFER_S):
                code = await self._execute(Command(script, cwd="/", user="root"), output, stdin)
        except TimeoutError:
            raise RuntimeError(f"download of {source} timed out after {TRANSFER_S} seconds") from None
        except TooLarge as error:
            raise RuntimeError(f"download of {source} refused: {error}") from None
        if not tar_pack_succeeded(code, stderr=output.stderr, logger=self.logger):
            raise RuntimeError(f"download of {source} failed: {output.stderr.strip()[-2000:]}")

    async def _unpack_inside(self, file: BinaryIO, script: str, what: str) -> None:
        file.seek(0)
        output = Capture()
        try:
            async with asyncio.timeout(TRANSFER_S):
                code = await self._execute(Command(script, cwd="/", user="root"), output, file)
        except TimeoutError:
            raise RuntimeError(f"upload of {what} timed out after {TRANSFER_S} seconds") from None
        if code == 0:
            return
        reason = output.stderr.strip()[-2000:]
        if "No space left on device" in reason:
            raise InfrastructureError(f"upload of {what} failed: {reason}", mend="free some disk space")
        raise RuntimeError(f"upload of {what} failed ({code}): {reason}")
