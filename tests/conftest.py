"""What every test may rely on."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def own_umask() -> Iterator[None]:
    """Isolation without namespaces sets the judge's umask for good; here it ends with the test."""
    before = os.umask(0o022)
    yield
    os.umask(before)
