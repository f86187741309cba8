"""Images in the engine: their state, and building what is missing or outdated."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from orrery_core.errors import InfrastructureError

from orrery.images.content import content_hash, root_hash, stage
from orrery.images.files import full_name, image_folder, known_images, known_roots, root_file, root_of
from orrery.images.roots import Report, debian_archive

if TYPE_CHECKING:
    from orrery.environments.engine_service import Engine

CONTENT_LABEL = "orrery.content"
BASE_LABEL = "orrery.base"
REGISTRY = "docker.io/"  # both engines resolve `FROM orrery/...` to this


@dataclass(frozen=True)
class ImageState:
    """One line of `orrery images ls`.

    `state` is `current`, `stale` (its sources changed) or `missing`; `size_mb` and `built` are empty when
    missing.
    """

    name: str
    state: Literal["current", "stale", "missing"]
    root: str
    size_mb: int | None
    built: str


def list_images(engine: Engine | None = None) -> list[ImageState]:
    """State of every image of the library, roots first.

    Raises:
        InfrastructureError: there is no container engine.
    """
    engine = engine or _connect()
    states = []
    for name in known_roots():
        states.append(_state(engine, name, root_hash(name), root=""))
    for name in known_images():
        states.append(_state(engine, name, content_hash(name), root=root_of(name)))
    return states


def build(
    names: Sequence[str] = (),
    *,
    rootfs: bool = False,
    force: bool = False,
    report: Report = print,
) -> list[str]:
    """Builds images whose sources changed, with their roots. Returns the names that were built.

    Args:
        names: image names, with or without `orrery/` and tag; all when empty.
        rootfs: unpack for the sandbox's rootfs profile instead (needs no engine).
        force: build although nothing changed, roots included.
        report: told what happens, a line at a time.

    Raises:
        UserError: an unknown name.
        InfrastructureError: no engine, no tool to make a root with, or a failed build (with the end of its
        log).
    """
    chosen = [full_name(name) for name in names] or list(known_images())
    if rootfs:
        from orrery.images.rootfs import unpack

        return unpack(chosen, force=force, report=report)
    engine = _connect()
    built = []
    for root in dict.fromkeys(root_of(name) for name in chosen):
        if force or _state(engine, root, root_hash(root), root="").state != "current":
            _build_root(engine, root, report)
            built.append(root)
    for name in chosen:
        if _ensure_layer(engine, name, force=force, report=report):
            built.append(name)
    return built


def ensure(engine: Engine, name: str, report: Report) -> str:
    """The id of a current image: its layer is rebuilt when sources changed. Blocks; call it on a thread.

    Raises:
        InfrastructureError: the root under it is missing or outdated, which takes minutes and so is never
        done in passing.
    """
    root = root_of(name)
    if _state(engine, root, root_hash(root), root="").state != "current":
        raise InfrastructureError(
            f"image {name}: the engine has no current {root} under it", mend="orrery images build"
        )
    _ensure_layer(engine, name, force=False, report=report)
    return str(engine.client.images.get(REGISTRY + name).id)


def _connect() -> Engine:
    from orrery.environments.engine_service import connect

    return connect()


def _labels(engine: Engine, name: str) -> dict[str, str] | None:
    """Labels of an image and, as `id`, its id; None when the engine does not have it."""
    from docker.errors import ImageNotFound

    try:
        image = engine.client.images.get(REGISTRY + name)
    except ImageNotFound:
        return None
    return {**image.labels, "id": str(image.id)}


def _state(engine: Engine, name: str, content: str, *, root: str) -> ImageState:
    labels = _labels(engine, name)
    if labels is None:
        return ImageState(name, "missing", root, None, "")
    attributes = engine.client.images.get(labels["id"]).attrs
    current = labels.get(CONTENT_LABEL) == content
    if root:
        under = _labels(engine, root)
        current = current and under is not None and labels.get(BASE_LABEL) == under["id"]
    return ImageState(
        name,
        "current" if current else "stale",
        root,
        int(attributes["Size"]) >> 20,
        str(attributes["Created"])[:19],
    )


_layer_locks: dict[str, threading.Lock] = {}


def _ensure_layer(engine: Engine, name: str, *, force: bool, report: Report) -> bool:
    from orrery.environments.engine_build import build_image, discard_old

    with _layer_locks.setdefault(name, threading.Lock()):
        root = root_of(name)
        content = content_hash(name)
        if not force and _state(engine, name, content, root=root).state == "current":
            return False
        report(f"{name}: building the layer over {root}")
        under, before = _labels(engine, root), _labels(engine, name)
        assert under is not None
        with tempfile.TemporaryDirectory(prefix="orrery-layer-") as scratch:
            context = Path(scratch)
            shutil.copyfile(image_folder(name) / "Dockerfile", context / "Dockerfile")
            stage(name, context / "layer")
            build_image(
                engine, context, REGISTRY + name, labels={CONTENT_LABEL: content, BASE_LABEL: under["id"]}
            )
        discard_old(engine, REGISTRY + name, before["id"] if before else None)
        return True


def _build_root(engine: Engine, name: str, report: Report) -> None:
    from orrery.environments.engine_build import build_image, discard_old, import_archive

    folder, root = known_roots()[name], root_file(name)
    labels, before = {CONTENT_LABEL: root_hash(name)}, _labels(engine, name)
    if shutil.which("mmdebstrap"):
        with tempfile.TemporaryDirectory(prefix="orrery-root-") as scratch:
            archive = Path(scratch) / "root.tar"
            debian_archive(root, archive, report)
            report(f"{name}: importing {archive.stat().st_size >> 20} MB")
            import_archive(engine, archive, REGISTRY + name, labels)
    else:
        report(f"{name}: building from debian:{root.suite}-slim, because mmdebstrap is not installed")
        arguments = {"SUITE": root.suite, "PACKAGES": " ".join(root.packages)}
        build_image(engine, folder, REGISTRY + name, labels=labels, arguments=arguments)
    discard_old(engine, REGISTRY + name, before["id"] if before else None)
