"""Write a report folder: index.html, one page per trial, report.md, report.csv, report.json."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from orrery_core.results import Criterion, Status

from orrery.report import aggregate, exports, grouping, plots, text
from orrery.report.grouping import Group
from orrery.report.load import load_jobs
from orrery.report.model import Job, Trial

Pages = dict[tuple[str, str], str]
"""(job, trial) to the name of the trial's page."""


def build(job_dirs: list[Path], out_dir: Path) -> Path:
    """Read ``job_dirs``, write the report into ``out_dir`` and return the path of its index.html.

    The same job folders always give the same bytes. Only the report's own files in ``out_dir`` are replaced.

    Raises:
        UserError: a job folder is missing or holds no trial.
    """
    jobs = load_jobs(job_dirs)
    groups = grouping.groups(jobs)
    notes = grouping.notes(jobs, groups)
    pages = page_names(groups)
    environment = make_environment()
    trials_dir = out_dir / "trials"
    trials_dir.mkdir(parents=True, exist_ok=True)
    if (out_dir / "report.json").exists():
        for old in trials_dir.glob("*.html"):
            old.unlink()
    for name, page in trial_pages(environment, groups, pages):
        _write(trials_dir / name, page)
    _write(out_dir / "report.md", exports.markdown(jobs, groups, notes))
    _write(out_dir / "report.csv", exports.csv_table(groups, pages))
    _write(out_dir / "report.json", exports.json_text(jobs, groups, notes, pages))
    index = out_dir / "index.html"
    _write(index, index_page(environment, jobs, groups, notes, pages))
    return index


def index_page(
    environment: Environment, jobs: Sequence[Job], groups: Sequence[Group], notes: Sequence[str], pages: Pages
) -> str:
    """The page with every table."""
    trials = [trial for group in groups for trial in group.trials]
    families = sorted({trial.family for trial in trials})

    def place(family: str, number: int | None) -> str:
        return text.level(number) if len(families) == 1 else f"{family} {text.level(number)}".strip()

    return environment.get_template("index.html.j2").render(
        jobs=jobs,
        groups=groups,
        notes=notes,
        pages=pages,
        trials=trials,
        families=families,
        several_families=len(families) > 1,
        place=place,
        levels=aggregate.by_level(sorted(trials, key=aggregate.place)),
        started=min((trial.started for trial in trials if trial.started), default=""),
        failure_names=sorted(
            {s for group in groups for s in group.overall.failures}, key=plots.failure_order
        ),
        show_reward=any(trial.reward not in (None, 0.0, 1.0) for trial in trials),
        show_matrix=len(groups) > 1 or any(group.pass_at for group in groups),
        matrix=_matrix(groups),
    )


def trial_pages(environment: Environment, groups: Sequence[Group], pages: Pages) -> list[tuple[str, str]]:
    """File name and content of every trial's page."""
    template = environment.get_template("trial.html.j2")
    ordered = [(group, trial) for group in groups for trial in group.trials]
    found = []
    for number, (group, trial) in enumerate(ordered):
        before = ordered[number - 1][1] if number else None
        after = ordered[number + 1][1] if number + 1 < len(ordered) else None
        page = template.render(
            group=group,
            trial=trial,
            before=before,
            after=after,
            pages=pages,
            stages=_by_stage(trial.criteria),
        )
        found.append((pages[trial.job, trial.name], page))
    return found


def page_names(groups: Sequence[Group]) -> Pages:
    taken: set[str] = set()
    return {
        (trial.job, trial.name): f"{text.slug(trial.name, taken)}.html"
        for group in groups
        for trial in group.trials
    }


def make_environment() -> Environment:
    """Templates with escaping always on, and every string cleaned of control characters on its way out."""
    environment = Environment(
        loader=PackageLoader("orrery.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_finalize,
    )
    environment.filters |= {
        "percent": text.percent,
        "interval": text.interval,
        "fraction": text.fraction,
        "number": text.number,
        "seconds": text.seconds,
        "tokens": text.tokens,
        "dollars": text.dollars,
        "median": text.median_of,
        "total": text.total_of,
        "spoken": text.spoken,
        "level": text.level,
        "pretty": text.pretty,
        "shorten": text.shorten,
    }
    environment.globals |= {
        "bar": plots.bar,
        "stacked": plots.stacked,
        "series": lambda index: (index - 1) % plots.SERIES + 1,
        "failure_stage": aggregate.failure_stage,
        "style": Markup(_style()),  # noqa: S704 - our own file
        "DASH": text.DASH,
    }
    return environment


def _finalize(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Markup):
        return text.clean(value)
    return value


def _style() -> str:
    return (Path(__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")


def _matrix(groups: Sequence[Group]) -> list[tuple[str, list[list[Trial]]]]:
    """Per task, the attempts of every group."""
    trials = sorted((trial for group in groups for trial in group.trials), key=aggregate.place)
    tasks = dict.fromkeys(trial.task_key for trial in trials)
    return [(task, [[t for t in group.trials if t.task_key == task] for group in groups]) for task in tasks]


def _by_stage(criteria: Sequence[Criterion]) -> list[tuple[str, list[Criterion], int]]:
    """Stages in the order of the report, each with its criteria and how many passed."""
    found = []
    for stage in dict.fromkeys(criterion.stage for criterion in criteria):
        part = [criterion for criterion in criteria if criterion.stage == stage]
        found.append((stage, part, sum(criterion.status is Status.PASS for criterion in part)))
    return found


def _write(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8", newline="\n")
