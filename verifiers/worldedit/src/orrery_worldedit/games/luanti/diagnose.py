"""What a server's end means, in words, for people. A mod can print any log line: no verdict rests on this."""

from __future__ import annotations

import re
from pathlib import Path

from .failures import Cause

TAIL_BYTES = 65536
MAX_LINES = 30
MAX_WIDTH = 300

_LIMITS: dict[str, tuple[Cause, str]] = {
    "wall": ("time", "the server ran longer than the time limit"),
    "cpu": ("time", "the server used more processor time than allowed"),
    "memory": ("memory", "the server used more memory than allowed"),
    "output": ("output", "the server printed more than allowed"),
    "storage": ("output", "the server wrote more to disk than allowed"),
    "processes": ("killed", "the server started more processes than allowed"),
}

# Lua's own words for a file that does not compile.
_SYNTAX = re.compile(r":\d+: .*(\bnear '|\bexpected\b|unfinished |malformed |unexpected symbol|<eof>)")
_PATTERNS: tuple[tuple[re.Pattern[str], Cause, str], ...] = (
    (re.compile(r"not enough memory|std::bad_alloc"), "memory", "out of memory"),
    (re.compile(r"in callback on_mods_loaded"), "mods_loaded", "error in on_mods_loaded"),
    (re.compile(r"in callback on_shutdown"), "shutdown", "error in on_shutdown"),
    (re.compile(r"AsyncErr: |in callback "), "callback", "error in a callback"),
    (re.compile(r"unsatisfied dependenc"), "dependency", "a mod it depends on is missing"),
    (re.compile(r"ModError"), "load", "error while loading"),
)


def log_tail(path: Path) -> list[str]:
    """The last lines that matter: from the last error on, else just the last ones."""
    if not path.is_file():
        return []
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        text = file.read().decode(errors="replace")
    lines = [_printable(line) for line in text.splitlines() if line.strip()]
    starts = [i for i, line in enumerate(lines) if "ERROR[" in line]
    first = next((i for i in starts if "Error: " in lines[i]), starts[0] if starts else None)
    return lines[first : first + MAX_LINES] if first is not None else lines[-MAX_LINES:]


def explain(code: int, verdict: str | None, tail: list[str]) -> tuple[Cause, str]:
    """Cause and reason of a server's end.

    Args:
        code: exit code, 128 + signal where a signal ended it.
        verdict: the limit that ended it, see `SubjectProcess.verdict`.
        tail: see `log_tail`.
    """
    if verdict:
        return _LIMITS.get(verdict, ("killed", f"the server broke the limit {verdict}"))
    if code == 0:
        return "exit", "the server ended without being asked to"
    if code > 128:
        return "killed", f"the server was ended by signal {code - 128}"
    text = "\n".join(tail)
    message = next((line for line in tail if re.search(r"\.lua:\d+: ", line)), "")
    message = re.sub(r"^.*?(?=[\w./ -]*\.lua:\d+: )", "", message).replace("/game/world/worldmods/", "")
    detail = f": {message}" if message else ""
    for pattern, cause, words in _PATTERNS:
        if pattern.search(text):
            if cause == "load" and _SYNTAX.search(message):
                return "syntax", f"syntax error{detail}"
            return cause, words + detail
    return "exit", f"the server ended with code {code}"


def _printable(line: str) -> str:
    return "".join(char if char.isprintable() else " " for char in line)[:MAX_WIDTH]
