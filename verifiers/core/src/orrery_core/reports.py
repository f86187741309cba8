"""Writers and readers of what a verifier leaves in /logs/verifier.

The order of the writes is what makes them trustworthy: a stale reward is removed first, then comes a
report that says "did not finish", and only at the very end the final report, followed by the reward. A
verifier killed at any instant leaves no reward, or a reward whose report is there and says the same.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import tempfile
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from types import TracebackType
from typing import Any, Self

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from orrery_core.errors import InfrastructureError, OrreryError
from orrery_core.results import Number, Report, TrialStatus, canonical_json, clean_json, error_report

REPORT = "report.json"
REWARD = "reward.json"
EVIDENCE = "evidence.json"
FAILURE = "verifier-error.txt"
UNFINISHED = "the verifier did not finish"
FRAMES = 8


class ReportWriter:
    """Context manager around one verification.

    Leaving the block writes the report given to `finish`. Leaving it by an exception, or without a report,
    writes a report with status error, and the exception goes on to the caller.

    Args:
        out_dir: created where missing.
        head: fields of the report that are known before anything ran: task, family, level, versions,
            mode, seeds.
    """

    def __init__(self, out_dir: Path, **head: Any) -> None:
        self.out_dir = out_dir
        self._head = head
        self._report: Report | None = None

    def __enter__(self) -> Self:
        try:
            self.out_dir.mkdir(parents=True, exist_ok=True)
            for name in (REWARD, FAILURE, EVIDENCE):
                (self.out_dir / name).unlink(missing_ok=True)
        except OSError as error:
            raise _unwritable(self.out_dir, error) from error
        self._write_report(error_report(UNFINISHED, **self._head))
        return self

    def about(self, **head: Any) -> None:
        """Add fields of the report as soon as they are known, so that a report of a failure has them too."""
        self._head.update(head)
        self._write_report(error_report(UNFINISHED, **self._head))

    def evidence(self, value: BaseModel | JsonValue | Mapping[str, Any]) -> None:
        """Write evidence.json: what was measured, enough to judge again without running anything."""
        write_atomic(self.out_dir / EVIDENCE, canonical_json(value))

    def finish(self, report: Report) -> None:
        """Set the final report; it is written when the block is left."""
        if self._report is not None:
            raise RuntimeError("finish was called twice")
        self._report = report

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            write_atomic(self.out_dir / FAILURE, short_traceback(error))
            self._write_report(error_report(_reason(error), **self._head))
        elif self._report is None:
            self._write_report(error_report("the verifier ended without a report", **self._head))
        else:
            self._write_report(self._report)
            reward = self._report.reward_file()
            if reward is not None:
                write_atomic(self.out_dir / REWARD, json.dumps(reward, allow_nan=False) + "\n")

    def _write_report(self, report: Report) -> None:
        write_atomic(self.out_dir / REPORT, canonical_json(report))


def write_atomic(path: Path, text: str) -> None:
    """Replace `path` by `text` so that a reader, or a kill at any instant, sees the old file or the new one.

    Raises:
        InfrastructureError: the disk is full or the directory cannot be written; the old file is untouched.
    """
    temporary: str | None = None
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        Path(temporary).replace(path)
        temporary = None
        _sync_directory(path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(path: Path, error: OSError) -> InfrastructureError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    mend = "free disk space" if full else "make the directory writable for the verifier"
    return InfrastructureError(f"cannot write {path}: {error.strerror or error}", mend=mend)


def _reason(error: BaseException) -> str:
    if isinstance(error, OrreryError):
        return str(error)
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def short_traceback(error: BaseException) -> str:
    """The last frames of `error` and of its causes, files named from their package on (no machine paths)."""
    lines: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        frames = traceback.extract_tb(current.__traceback__)[-FRAMES:]
        lines.append(_reason(current))
        lines += [f"  {_package_path(frame.filename)}:{frame.lineno} in {frame.name}" for frame in frames]
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
        if current is not None:
            lines.append("because of")
    return "\n".join(lines) + "\n"


def _package_path(filename: str) -> str:
    parts = PurePath(filename).parts
    for anchor in ("src", "site-packages", "tests"):
        if anchor in parts:
            start = len(parts) - parts[::-1].index(anchor)
            return "/".join(parts[start:])
    return "/".join(parts[-2:])


_REWARD = TypeAdapter(dict[str, Number])


def read_report(path: Path) -> Report:
    """Read and validate a report file.

    Raises:
        InfrastructureError: missing, unreadable, not JSON, or not a report.
    """
    return _read(path, Report.model_validate_json)


def read_reward(path: Path) -> dict[str, float]:
    """Read and validate a reward file: a flat object of finite numbers with the key `reward`."""
    reward = _read(path, _REWARD.validate_json)
    if "reward" not in reward:
        raise InfrastructureError(f'{path}: the key "reward" is missing', mend="run the verifier again")
    return reward


def read_evidence(path: Path) -> JsonValue:
    """Read an evidence file: any finite JSON."""
    return _read(path, lambda data: clean_json(json.loads(data)))


def read_outcome(out_dir: Path) -> Report:
    """Read the report of a finished verifier and hold it against its reward file.

    A scored report without its reward was cut off between the two writes, and is returned as an error.
    Where the two say different things, the directory is broken or forged.

    Raises:
        InfrastructureError: a file is missing or invalid, or reward and report differ.
    """
    report = read_report(out_dir / REPORT)
    expected = report.reward_file()
    path = out_dir / REWARD
    if not path.exists():
        if expected is None:
            return report
        return report.model_copy(
            update={"status": TrialStatus.ERROR, "reason": UNFINISHED, "reward": None, "rewards": {}}
        )
    if read_reward(path) != expected:
        raise InfrastructureError(f"{path}: differs from {REPORT} beside it", mend="run the verifier again")
    return report


def _read[T](path: Path, parse: Callable[[bytes], T]) -> T:
    try:
        return parse(path.read_bytes())
    except OSError as error:
        raise InfrastructureError(
            f"cannot read {path}: {error.strerror or error}", mend="run the verifier again"
        ) from error
    except (ValidationError, ValueError, RecursionError) as error:
        raise InfrastructureError(f"{path} is not valid: {error}", mend="run the verifier again") from error
