"""What the images are: `images/<folder>/image.toml` and `images/<folder>/root.toml`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from orrery_core.errors import UserError
from pydantic import BaseModel, ConfigDict, ValidationError


class RootFile(BaseModel):
    """`root.toml`: a Debian system. `packages` are Debian packages."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    suite: str
    packages: tuple[str, ...]


class ImageFile(BaseModel):
    """`image.toml`: what a task finds inside.

    `tools` are programs that a sandbox on a bare host must find; `packages` our Python packages visible under
    /opt/orrery/src; `commands` wrappers on PATH, each running the module of the same name.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    tools: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


def images_directory() -> Path:
    return Path(__file__).resolve().parents[4] / "images"


def known_images() -> dict[str, Path]:
    """Image name -> the folder that describes it."""
    return {
        _read(path, ImageFile).name: path.parent for path in sorted(images_directory().glob("*/image.toml"))
    }


def known_roots() -> dict[str, Path]:
    """Root name -> the folder that describes it."""
    return {
        _read(path, RootFile).name: path.parent for path in sorted(images_directory().glob("*/root.toml"))
    }


def image_file(name: str) -> ImageFile:
    """The description of an image.

    Raises:
        UserError: there is no such image.
    """
    return _read(image_folder(name) / "image.toml", ImageFile)


def root_file(name: str) -> RootFile:
    """The description of a root that exists."""
    return _read(known_roots()[name] / "root.toml", RootFile)


def image_folder(name: str) -> Path:
    """The folder that describes an image.

    Raises:
        UserError: there is no such image.
    """
    known = known_images()
    if name not in known:
        raise UserError(f"image {name}: there is no such image", mend=f"one of {', '.join(known)}")
    return known[name]


def root_of(name: str) -> str:
    """The root that the Dockerfile of an image starts from."""
    path = image_folder(name) / "Dockerfile"
    found = re.search(r"^FROM\s+(\S+)", path.read_text(), re.MULTILINE)
    if found is None or found[1] not in known_roots():
        raise UserError(f"{path}: starts from no known root", mend=f"FROM one of {', '.join(known_roots())}")
    return found[1]


def full_name(name: str) -> str:
    """An image's full name from it, from the part before the tag, or from the last word of that.

    Raises:
        UserError: there is no such image.
    """
    for known in known_images():
        path = known.rpartition(":")[0]
        if name in (known, path, path.rpartition("/")[2]):
            return known
    raise UserError(f"image {name}: there is no such image", mend=f"one of {', '.join(known_images())}")


def _read[M: BaseModel](path: Path, model: type[M]) -> M:
    try:
        return model.model_validate(tomllib.loads(path.read_text()))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise UserError(f"{path}: {error}") from error
