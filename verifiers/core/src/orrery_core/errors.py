"""Errors that a person reads: whose fault it is, what happened, and the mend."""

from __future__ import annotations


class OrreryError(Exception):
    """A message for people, with the mend apart so that a table or a log can show it on its own line.

    Args:
        message: what is wrong and where.
        mend: what to type or change; empty when nothing is known.
    """

    exit_code = 1

    def __init__(self, message: str, mend: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.mend = mend

    def __str__(self) -> str:
        return f"{self.message}\n  mend: {self.mend}" if self.mend else self.message


class UserError(OrreryError):
    """The user asked for something that cannot be: a wrong path, an unknown verb, a malformed spec."""

    exit_code = 2


class InfrastructureError(OrreryError):
    """The machine or a tool failed, or is missing; never the submission's fault, never a score."""

    exit_code = 3
