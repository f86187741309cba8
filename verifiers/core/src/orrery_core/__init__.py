"""What every Orrery verifier shares: results, reports, subject isolation, statistics.

The names below are imported on first use, so that `import orrery_core` costs nothing; statistics and pipes
are facades of their own.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from orrery_core.errors import InfrastructureError, OrreryError, UserError

if TYPE_CHECKING:
    from orrery_core.isolation import Bind, Isolation, Limits, SubjectProcess
    from orrery_core.reports import ReportWriter, read_outcome
    from orrery_core.results import Criterion, Report, Status, TrialStatus

__all__ = [
    "Bind",
    "Criterion",
    "InfrastructureError",
    "Isolation",
    "Limits",
    "OrreryError",
    "Report",
    "ReportWriter",
    "Status",
    "SubjectProcess",
    "TrialStatus",
    "UserError",
    "read_outcome",
]

_HOMES = {
    "isolation": ("Bind", "Isolation", "Limits", "SubjectProcess"),
    "reports": ("ReportWriter", "read_outcome"),
    "results": ("Criterion", "Report", "Status", "TrialStatus"),
}


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"orrery_core.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
