"""From Harbor job folders to tables that a person reads: one HTML page, one page per trial, Markdown, CSV and JSON.

``load`` reads folders into `Trial` records, ``aggregate`` computes every number (pure), ``plots`` and ``text`` format,
``render`` writes. Everything a job folder holds is hostile text: it is escaped, cleaned and never executed or fetched.
"""

from orrery.report.render import build

__all__ = ["build"]
