"""Images in the engine: built from a folder, imported from an archive, thrown away."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from docker.errors import APIError, BuildError, DockerException, ImageNotFound
from orrery_core.errors import InfrastructureError

from orrery.environments.engine_service import Engine


def image_id(engine: Engine, name: str) -> str | None:
    """The id behind a name, or None when the engine does not have it."""
    try:
        return str(engine.client.images.get(name).id)
    except ImageNotFound:
        return None


def build_image(
    engine: Engine,
    context: Path,
    name: str,
    *,
    labels: Mapping[str, str],
    arguments: Mapping[str, str] | None = None,
    timeout_s: float = 1800,
) -> str:
    """Builds the Dockerfile in `context`, honouring .dockerignore, and returns the image's id. Blocks.

    Raises:
        InfrastructureError: the build failed; the end of its log is in the message.
    """
    try:
        image, _log = engine.client.images.build(
            path=str(context),
            tag=name,
            labels=dict(labels),
            buildargs=dict(arguments or {}),
            rm=True,
            forcerm=True,
            timeout=int(timeout_s),
        )
    except BuildError as error:
        lines = [str(part.get("stream") or part.get("error") or "").strip() for part in error.build_log]
        tail = "\n".join(line for line in lines if line)[-3000:]
        raise InfrastructureError(f"image {name}: the build failed: {error.msg}\n{tail}") from error
    except (DockerException, OSError) as error:
        raise InfrastructureError(f"image {name}: the build failed: {error}") from error
    return str(image.id)


def import_archive(engine: Engine, archive: Path, name: str, labels: Mapping[str, str]) -> str:
    """Makes an image of a root file system in a tar file. Blocks.

    Raises:
        InfrastructureError: the engine refused it.
    """
    api = engine.client.api
    changes = [f'LABEL "{key}"="{value}"' for key, value in labels.items()]
    # The SDK's own import call reads files without streaming and cannot pass labels.
    with archive.open("rb") as file:
        answer = api._post(
            api._url("/images/create"),
            data=file,
            params={"fromSrc": "-", "changes": changes},
            headers={"Content-Type": "application/x-tar"},
            timeout=600,
        )
    if answer.status_code != 200:
        raise InfrastructureError(f"image {name}: the import failed: {answer.text[:500]}")
    status: str | None = next((word for word in answer.text.split('"') if word.startswith("sha256:")), None)
    if status is None:
        raise InfrastructureError(f"image {name}: the import gave no image: {answer.text[:500]}")
    repository, _, tag = name.rpartition(":")
    engine.client.images.get(status).tag(repository, tag)
    return status


def pull_image(engine: Engine, name: str) -> str:
    """Fetches an image from its registry and returns its id. Blocks.

    Raises:
        InfrastructureError: it is not to be had.
    """
    try:
        return str(engine.client.images.pull(name).id)
    except (DockerException, OSError) as error:
        raise InfrastructureError(
            f"image {name}: neither here nor to be had: {error}",
            mend="build or pull it, or check the network",
        ) from error


def discard_old(engine: Engine, name: str, before: str | None, unless: str | None = None) -> None:
    """Removes the image that `name` meant before, unless that is still what is meant; one in use stays."""
    if before is not None and before != (unless or image_id(engine, name)):
        with contextlib.suppress(APIError):
            engine.client.images.remove(before)
