"""From Harbor job folders to what a person reads: an HTML page, a page per trial, Markdown, CSV and JSON.

``load`` reads folders into `Trial` records, ``aggregate`` computes every number and ``grouping`` decides
what is counted together (both pure), ``plots``, ``text`` and ``exports`` format, ``render`` writes. All that
a job folder holds is hostile text: it is escaped, cleaned, and never executed or fetched.
"""

from orrery.report.render import build

__all__ = ["build"]
