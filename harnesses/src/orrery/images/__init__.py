"""The base images: what is in them, whether the engine's copies are current, and how they are built.

Two storeys. A *root* (`images/<folder>/root.toml`) is a Debian system: slow to build and rarely changed. An
*image* (`images/<folder>/image.toml`) is a thin layer on a root with our own packages, rebuilt in seconds
when a source file changes. Both carry a hash of what they were built from, so nothing is built twice and
nothing stale is used.
"""

from orrery.images.building import ImageState, build, ensure, list_images
from orrery.images.files import ImageFile, RootFile, image_file, known_images, known_roots, root_of

__all__ = [
    "ImageFile",
    "ImageState",
    "RootFile",
    "build",
    "ensure",
    "image_file",
    "known_images",
    "known_roots",
    "list_images",
    "root_of",
]
