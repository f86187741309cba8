"""The part of the Dockerfile language that a sandbox carries out itself; everything else is refused by line.

One `FROM`, `ARG`, `ENV`, `WORKDIR`, `COPY`/`ADD` of local files, `USER` and `RUN`. `CMD`, `ENTRYPOINT`,
`EXPOSE`, `LABEL` and `MAINTAINER` change nothing here: a sandbox runs only what Harbor tells it to.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from orrery_core.errors import UserError

IGNORED = {"CMD", "ENTRYPOINT", "EXPOSE", "LABEL", "MAINTAINER"}
KNOWN = {"FROM", "ARG", "ENV", "WORKDIR", "COPY", "ADD", "USER", "RUN"}
MEND = "use the part of the language that orrery.environments.dockerfile lists, or --env engine"


@dataclass(frozen=True)
class Instruction:
    name: str
    value: str
    where: str
    """`file:line`, for messages."""


@dataclass(frozen=True)
class Copy:
    """`target` is absolute; it names a directory when it ends with a slash."""

    sources: tuple[str, ...]
    target: str
    owner: str | None
    mode: int | None
    where: str = field(repr=False)


@dataclass(frozen=True)
class MakeDirectory:
    path: str


@dataclass(frozen=True)
class Run:
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    user: str | None
    where: str = field(repr=False)


Step = Copy | MakeDirectory | Run


@dataclass(frozen=True)
class Recipe:
    """What a Dockerfile amounts to: the base, steps to carry out, and the settings of the finished image."""

    image: str
    where: str
    steps: tuple[Step, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/"
    user: str | None = None

    @property
    def runs_code(self) -> bool:
        return any(isinstance(step, Run) for step in self.steps)


def refuse(where: str, what: str) -> UserError:
    return UserError(f"{where}: {what}", mend=MEND)


def parse(path: Path) -> list[Instruction]:
    """Split a Dockerfile into instructions: comments dropped, continued lines joined."""
    instructions: list[Instruction] = []
    pending, start = "", 0
    for number, line in enumerate(path.read_text().splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("#"):
            if not instructions and re.match(r"#\s*escape\s*=\s*[^\\\s]", stripped):
                raise refuse(f"{path}:{number}", "only the backslash may be the escape character")
            continue
        if not stripped:
            continue
        start = start or number
        if line.rstrip().endswith("\\"):
            pending += line.rstrip()[:-1]
            continue
        name, _, value = (pending + line).strip().partition(" ")
        instructions.append(Instruction(name.upper(), value.strip(), f"{path}:{start}"))
        pending, start = "", 0
    if pending:
        raise refuse(f"{path}:{start}", "the last line continues into nothing")
    return instructions


def read_recipe(path: Path, base: Recipe | None = None) -> Recipe:
    """Evaluate a Dockerfile.

    Args:
        base: the recipe of the image in FROM, whose env, workdir and user are inherited.

    Raises:
        UserError: an instruction outside of the supported part, named by file and line.
    """
    builder = _Builder(base)
    for instruction in parse(path):
        builder.add(instruction)
    if builder.image is None:
        raise refuse(f"{path}:1", "there is no FROM")
    return Recipe(
        builder.image,
        builder.where,
        tuple(builder.steps),
        builder.env,
        builder.cwd,
        builder.user,
    )


class _Builder:
    def __init__(self, base: Recipe | None) -> None:
        self.image: str | None = None
        self.where = ""
        self.steps: list[Step] = []
        self.env: dict[str, str] = dict(base.env) if base else {}
        self.cwd = base.cwd if base else "/"
        self.user = base.user if base else None
        self._arguments: dict[str, str] = {}

    def add(self, line: Instruction) -> None:
        if line.name in IGNORED:
            return
        if line.name not in KNOWN:
            raise refuse(line.where, f"{line.name} is not supported in a sandbox")
        if (
            "<<" in line.value
            and line.name in ("RUN", "COPY", "ADD")
            and re.search(r"<<-?['\"\w]", line.value)
        ):
            raise refuse(line.where, "here-documents are not supported in a sandbox")
        if self.image is None and line.name not in ("FROM", "ARG"):
            raise refuse(line.where, f"{line.name} before FROM")
        getattr(self, f"_{line.name.lower()}")(line)

    def _expand(self, line: Instruction, text: str) -> str:
        return expand(text, {**self._arguments, **self.env}, line.where)

    def _from(self, line: Instruction) -> None:
        if self.image is not None:
            raise refuse(line.where, "a second FROM (multi-stage builds are not supported in a sandbox)")
        words = [word for word in line.value.split() if not word.startswith("--platform=")]
        if len(words) != 1:
            raise refuse(line.where, f"FROM takes one image, not {line.value!r}")
        self.image, self.where = self._expand(line, words[0]), line.where
        self._arguments = {}  # what was declared before FROM counts for FROM only

    def _arg(self, line: Instruction) -> None:
        for word in _words(line):
            name, _, value = word.partition("=")
            self._arguments.setdefault(name, self._expand(line, value))

    def _env(self, line: Instruction) -> None:
        first, _, rest = line.value.partition(" ")
        pairs = [f"{first}={rest}"] if "=" not in first else _words(line, keep_single=True)
        known = {**self._arguments, **self.env}  # all pairs of one line see the values before it
        for pair in pairs:
            name, _, value = pair.partition("=")
            self.env[name] = expand(value, known, line.where)

    def _workdir(self, line: Instruction) -> None:
        self.cwd = self._absolute(self._expand(line, line.value.strip("\"'")))
        self.steps.append(MakeDirectory(self.cwd))

    def _user(self, line: Instruction) -> None:
        self.user = self._expand(line, line.value)

    def _run(self, line: Instruction) -> None:
        if line.value.startswith("--"):
            raise refuse(
                line.where, f"the option {line.value.split()[0]} of RUN is not supported in a sandbox"
            )
        argv = _json_list(line.value) or ["/bin/sh", "-c", line.value]
        env = {**self._arguments, **self.env}
        self.steps.append(Run(tuple(argv), env, self.cwd, self.user, line.where))

    def _copy(self, line: Instruction) -> None:
        options: dict[str, str] = {}
        text = line.value
        while match := re.match(r"--([a-z-]+)(?:=(\S+))?\s+", text):
            options[match[1]] = match[2] or ""
            text = text[match.end() :]
        unknown = options.keys() - {"chown", "chmod", "link"}
        if unknown:
            raise refuse(line.where, f"the option --{sorted(unknown)[0]} of {line.name} is not supported")
        words = _json_list(text) or _words(line, text)
        if len(words) < 2:
            raise refuse(line.where, f"{line.name} needs a source and a target")
        *sources, target = (self._expand(line, word) for word in words)
        if any("://" in source or source.startswith("git@") for source in sources):
            raise refuse(line.where, "ADD from a network address is not supported")
        if line.name == "ADD" and any(re.search(r"\.(tar(\.\w+)?|tgz|tbz2?|txz)$", s) for s in sources):
            raise refuse(line.where, "ADD that unpacks an archive is not supported")
        mode = options.get("chmod")
        if mode is not None and not re.fullmatch(r"[0-7]{3,4}", mode):
            raise refuse(line.where, f"--chmod={mode} is not an octal mode")
        directory = target.endswith(("/", "/.")) or target == "." or len(sources) > 1
        self.steps.append(
            Copy(
                tuple(sources),
                self._absolute(target).rstrip("/") + ("/" if directory else ""),
                self._expand(line, options["chown"]) if "chown" in options else None,
                int(mode, 8) if mode else None,
                line.where,
            )
        )

    _add = _copy

    def _absolute(self, path: str) -> str:
        parts: list[str] = []
        for part in PurePosixPath(self.cwd, path).parts[1:]:
            if part == "..":
                parts = parts[:-1]
            else:
                parts.append(part)
        return "/" + "/".join(parts)


def _json_list(text: str) -> list[str] | None:
    if not text.startswith("["):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    good = isinstance(value, list) and value and all(isinstance(item, str) for item in value)
    return value if good else None


def _words(line: Instruction, text: str | None = None, *, keep_single: bool = False) -> list[str]:
    """Shell-like words; `keep_single` shields `$` in single quotes from the expansion that follows."""
    text = line.value if text is None else text
    if keep_single:
        text = re.sub(r"'([^']*)'", lambda match: "'" + match[1].replace("$", "\\$") + "'", text)
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    lexer.escape = ""  # a backslash before a dollar sign is for `expand` to see
    try:
        return list(lexer)
    except ValueError as error:
        raise refuse(line.where, f"{error} in {text!r}") from error


_VARIABLE = re.compile(r"\\(.)|\$(?:(\w+)|\{(\w+)(?:(:?[-+?])([^}]*))?\}|(\{))")


def expand(text: str, values: Mapping[str, str], where: str) -> str:
    """Replace `$x`, `${x}`, `${x:-default}` and `${x:+other}`; unknown variables become empty."""

    def replace(match: re.Match[str]) -> str:
        escaped, short, name, operator, other, broken = match.groups()
        if escaped is not None:
            return escaped if escaped == "$" else match[0]
        if broken or operator in (":?", "?"):
            raise refuse(where, f"the substitution at {text[match.start() :][:30]!r} is not supported")
        value = values.get(short or name, "")
        present = bool(value) if operator and operator.startswith(":") else (short or name) in values
        if operator and operator.endswith("-"):
            return value if present else other
        if operator and operator.endswith("+"):
            return other if present else ""
        return value

    return _VARIABLE.sub(replace, text)
