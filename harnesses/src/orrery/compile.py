"""The task compiler: one `spec.toml` and the family's templates give a whole Harbor task directory.

Rendered files are committed and never edited by hand; :func:`drift` proves it. What contributors write
themselves is `spec.toml` and the folders that their family names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from orrery_core.errors import UserError

from orrery.families import SPEC, family_of
from orrery.paths import repo_root

if TYPE_CHECKING:
    from jinja2 import Environment

EXECUTABLE = frozenset({"tests/test.sh", "solution/solve.sh"})


def render(task_dir: Path) -> dict[str, bytes]:
    """Every rendered file of a task.

    Args:
        task_dir: a folder with a `spec.toml`.

    Returns:
        Relative path -> content.

    Raises:
        UserError: the spec is malformed, or the family has no templates.
    """
    family = family_of(task_dir / SPEC)
    spec = family.load_spec(task_dir / SPEC)
    if task_dir.name != spec.id:
        raise UserError(
            f'{task_dir / SPEC}: id "{spec.id}" differs from the folder name "{task_dir.name}"',
            "rename one of them",
        )
    folder = repo_root() / "templates" / spec.family
    if not folder.is_dir():
        raise UserError(
            f'family "{spec.family}" has no templates ({folder.name} is not in templates/)', "add the folder"
        )
    values = {"spec": spec, "task_name": f"orrery/{spec.family}_{spec.id}"}
    files = {str(p.relative_to(folder)): p for p in sorted(folder.rglob("*")) if p.is_file()}
    engine = _engine(folder)
    rendered = {}
    for name, path in files.items():
        if name.endswith(".j2"):
            rendered[name.removesuffix(".j2")] = engine.get_template(name).render(values).encode()
        else:
            rendered[name] = path.read_bytes()
    return rendered | family.files(spec)


def write(task_dir: Path) -> list[str]:
    """Render a task into its directory; stale rendered files are removed.

    Returns:
        Relative paths that changed.
    """
    rendered = render(task_dir)
    changed = []
    for name in _stale(task_dir, rendered):
        (task_dir / name).unlink()
        changed.append(name)
    for name, content in rendered.items():
        path = task_dir / name
        if path.is_file() and path.read_bytes() == content and _mode_is_right(path, name):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if name in EXECUTABLE else 0o644)
        changed.append(name)
    return changed


def drift(task_dir: Path) -> list[str]:
    """How the committed files differ from what spec and templates give, one line each.

    Empty when they do not.
    """
    rendered = render(task_dir)
    found = [
        f"{task_dir / name}: is not rendered from the spec; remove it" for name in _stale(task_dir, rendered)
    ]
    for name, content in rendered.items():
        path = task_dir / name
        if not path.is_file():
            found.append(f"{path}: is missing")
        elif path.read_bytes() != content:
            found.append(f"{path}: differs from spec and templates")
        elif not _mode_is_right(path, name):
            found.append(f"{path}: {'must' if name in EXECUTABLE else 'must not'} be executable")
    return found


def _mode_is_right(path: Path, name: str) -> bool:
    return bool(path.stat().st_mode & 0o100) == (name in EXECUTABLE)


def _stale(task_dir: Path, rendered: dict[str, bytes]) -> list[str]:
    present = (str(path.relative_to(task_dir)) for path in sorted(task_dir.rglob("*")) if path.is_file())
    own = tuple(f"{folder}/" for folder in family_of(task_dir / SPEC).own_folders)
    return [name for name in present if name not in rendered and name != SPEC and not name.startswith(own)]


def _engine(folder: Path) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    engine = Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701  the output is TOML, Markdown, shell and Lua, not HTML
    )
    engine.filters["toml"] = lambda value: json.dumps(value, ensure_ascii=False)
    return engine
