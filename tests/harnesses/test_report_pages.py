"""The written report: complete, self-contained, harmless, the same every time."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from orrery.report import build, plots, text
from orrery.report.aggregate import rate
from orrery_core.results import canonical_json

sys.path.insert(0, str(Path(__file__).parent / "fixtures" / "jobs"))
import make_jobs

FIXTURES = Path(__file__).parent / "fixtures" / "jobs"
EVIL = "<script>alert(1)</script>"
VOID = {"meta", "img", "br", "link", "input", "hr"}


class Page(HTMLParser):
    """Collects tags and checks that they nest."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words = ""
        self.feed(path.read_text())
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("report")
    build([FIXTURES / "mixed", FIXTURES / "oracle"], target)
    return target


def pages(out: Path) -> Iterator[Path]:
    yield out / "index.html"
    yield from sorted((out / "trials").glob("*.html"))


def page_of(out: Path, job: str, task: str) -> Path:
    trials = json.loads((out / "report.json").read_text())["trials"]
    return out / next(trial["page"] for trial in trials if (trial["job"], trial["task"]) == (job, task))


def test_everything_is_written_and_linked(out: Path) -> None:
    assert sorted(path.name for path in out.iterdir()) == [
        "index.html", "report.csv", "report.json", "report.md", "trials",
    ]  # fmt: skip
    assert len(list((out / "trials").iterdir())) == 15
    for path in pages(out):
        for link in Page(path).named("a"):
            target, _, anchor = (link["href"] or "").partition("#")
            place = (path.parent / target).resolve() if target else path
            assert place.is_relative_to(out.resolve()), link
            assert place.exists(), link
            if anchor:
                assert f'id="{anchor}"' in place.read_text()


def test_no_page_reaches_outside_or_runs_anything(out: Path) -> None:
    for path in pages(out):
        page = Page(path)
        assert {"script", "link", "iframe", "object", "base", "form"}.isdisjoint(tag for tag, _ in page.tags)
        for _, attributes in page.tags:
            assert not any(name.startswith("on") for name in attributes)
            for name in ("src", "srcset", "action", "poster", "background"):
                assert (attributes.get(name) or "data:").startswith("data:image/") or name not in attributes
        source = path.read_text()
        assert "http:" not in source
        assert "https:" not in source
        assert not re.search(r"url\(|@import", source)
        assert "default-src 'none'" in source


def test_tables_have_captions_and_headers(out: Path) -> None:
    page = Page(out / "index.html")
    assert len(page.named("table")) == len(page.named("caption")) >= 6
    assert all(header.get("scope") for header in page.named("th"))
    assert page.named("html")[0]["lang"] == "en"
    assert len([1 for tag, _ in page.tags if tag == "h1"]) == 1
    assert all(figure.get("aria-label") for figure in page.named("svg") if figure.get("role") == "img")


def test_the_index_shows_errors_rejections_and_numbers(out: Path) -> None:
    words = " ".join(Page(out / "index.html").words.split())
    assert "3 of 7 trials ended as error and are in no mean." in words
    assert "Sandbox host profile" in words
    assert "result.json: missing" in words
    assert "a native library: libx.so" in words
    assert "ApiOverloadedError: try later" in words
    assert "1/4 · 4.6–69.9" in words
    assert "8/8 · 67.6–100.0" in words


def test_the_trial_page_shows_evidence(out: Path) -> None:
    page = Page(page_of(out, "mixed", "l2_crab"))
    assert "does not hold: time < 0.8" in page.words
    assert [d for d in page.named("details") if "open" in d and d.get("class") == "criterion"] == [
        {"class": "criterion", "open": None}
    ], "the one failed criterion is open"
    for words in (
        "with the submission",
        "unmodified game",
        "isolation",
        "nested-uid",
        "5.6.1",
        "seed: world",
        "verifier: vanilla",
    ):
        assert words in page.words
    (image,) = Page(page_of(out, "mixed", "l1_steel_pick")).named("img")
    assert (image["src"] or "").startswith("data:image/png;base64,")
    assert image["width"] == "256"


def test_evidence_of_every_shape_is_shown_in_full(tmp_path: Path) -> None:
    shapes = {
        "offending": {"items.a": [1, 2]},
        "words": ["x < 1", "y"],
        "flag": True,
        "lines": "one\ntwo",
        "none": None,
    }
    report = make_jobs.report("l1_a", criteria=make_jobs.criteria("PPPPPPP", evidence=shapes))
    make_jobs.trial(tmp_path / "job", "l1_a", report)
    build([tmp_path / "job"], tmp_path / "out")
    (path,) = (tmp_path / "out" / "trials").iterdir()
    words = Page(path).words
    for shown in ('{"items.a": [1, 2]}', "x < 1", "true", "one\ntwo", "null"):
        assert shown in words


def test_csv_has_a_line_per_trial_and_json_the_same_numbers(out: Path) -> None:
    with (out / "report.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    content = json.loads((out / "report.json").read_text())
    assert len(rows) == len(content["trials"]) == 15
    assert sum(row["status"] == "error" for row in rows) == 3
    made_up, oracle = content["groups"]
    assert (made_up["overall"]["wsr"]["hits"], made_up["overall"]["wsr"]["n"]) == (1, 4)
    assert oracle["overall"]["wsr"]["value"] == 1.0
    assert made_up["overall"]["errors"] == 3
    assert {row["page"] for row in rows} == {f"trials/{path.name}" for path in (out / "trials").iterdir()}


def test_the_same_input_gives_the_same_bytes(out: Path, tmp_path: Path) -> None:
    build([FIXTURES / "mixed", FIXTURES / "oracle"], tmp_path)
    for path in (path for path in out.rglob("*") if path.is_file()):
        assert path.read_bytes() == (tmp_path / path.relative_to(out)).read_bytes(), path.name


def test_a_report_inside_its_job_folder_can_be_written_again(tmp_path: Path) -> None:
    job = make_jobs.oracle(tmp_path)
    build([job], job / "report")
    before = (job / "report" / "index.html").read_bytes()
    stale = job / "report" / "trials" / "gone.html"
    stale.write_text("x")
    build([job], job / "report")
    assert (job / "report" / "index.html").read_bytes() == before
    assert not stale.exists()


def test_hostile_text_is_harmless_everywhere(tmp_path: Path) -> None:
    words = f"{EVIL}\"'`|]({EVIL}) ![x](http://evil.example/x) \x1b[31mred \u202egnp \x00"
    found = [
        criterion.model_copy(update={"reason": words, "id": f"{criterion.id}{EVIL}"})
        for criterion in make_jobs.criteria(
            "PPFFUPF", evidence={EVIL: [words], "measured": {EVIL: words}, "vanilla": {}}
        )
    ]
    own_stage = found[-1].model_copy(update={"stage": EVIL, "id": "own"})
    report = make_jobs.report(
        "l1_a", criteria=[*found, own_stage], versions={EVIL: words}, mode={EVIL: words}, seeds={EVIL: words}
    )
    folder = make_jobs.trial(
        tmp_path / f"job {EVIL.replace('/', '')}", "l1_a", report, agent=words, model=words,
        exception=("AgentTimeoutError", words), kwargs={EVIL: words}, task_path=f"/x/{EVIL.replace('/', '')}",
    )  # fmt: skip
    (folder / "trial.log").write_text(words)
    (folder / "verifier" / f"{EVIL.replace('/', '')}.png").write_bytes(make_jobs.png())
    (folder / "sandbox.json").write_text(json.dumps({EVIL: {"mode": words, "details": {EVIL: words}}}))
    build([folder.parent], tmp_path / "out")
    for path in pages(tmp_path / "out"):
        page = Page(path)
        assert "script" not in {tag for tag, _ in page.tags}
        assert all(not name.startswith("on") for _, attributes in page.tags for name in attributes)
        assert "<script" in page.words, "it is shown, as text"
        assert not re.search("[\x00\x1b\u202e]", path.read_text())
    markdown = (tmp_path / "out" / "report.md").read_text()
    assert "<" not in markdown
    assert "![" not in markdown
    table = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table[:4]}) == 1


def test_a_spreadsheet_runs_nothing(tmp_path: Path) -> None:
    report = make_jobs.report("l1_a", "FUUUUUU", rejected='=HYPERLINK("http://evil.example")')
    make_jobs.trial(tmp_path / "job", "l1_a", report, agent="@agent", model="+1")
    build([tmp_path / "job"], tmp_path / "out")
    with (tmp_path / "out" / "report.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["reason"][:2], row["agent"], row["model"]) == ("'=", "'@agent", "'+1")


def test_several_attempts_give_pass_at_k_and_a_matrix(tmp_path: Path) -> None:
    for number, outcome in enumerate(("PPPPPPP", "PPPFPPP")):
        make_jobs.trial(tmp_path / "job", "l1_a", make_jobs.report("l1_a", outcome), number=number)
    words = " ".join(Page(build([tmp_path / "job"], tmp_path / "out")).words.split())
    assert "pass@1 50.0 % (n = 1 tasks) · pass@2 100 % (n = 1 tasks)" in words
    assert "✓ ✗" in words
    assert "too narrow" in words


def test_partial_rewards_show_their_mean(tmp_path: Path) -> None:
    for task, reward in (("l1_a", 0.25), ("l1_b", 0.75)):
        report = make_jobs.report(task, family="voxelworld", reward=reward, rewards={"reward": reward})
        make_jobs.trial(tmp_path / "job", task, report)
    words = Page(build([tmp_path / "job"], tmp_path / "out")).words
    assert "Mean reward" in words
    assert "0.500" in words


def test_no_machine_path_in_the_report(tmp_path: Path) -> None:
    folder = make_jobs.trial(tmp_path / "job", "l1_a", make_jobs.report("l1_a"))
    (folder / "trial.log").write_text(f"wrote {folder}/result.json\n")
    broken = make_jobs.trial(tmp_path / "job", "l1_b", make_jobs.report("l1_b"))
    (broken / "verifier" / "report.json").write_text(canonical_json({}))
    build([tmp_path / "job"], tmp_path / "out")
    for path in (path for path in (tmp_path / "out").rglob("*") if path.is_file()):
        assert str(tmp_path) not in path.read_text()


def test_percent_never_rounds_to_all_or_nothing() -> None:
    assert [text.percent(value) for value in (None, 0, 1, 0.9999, 0.0001, 0.875)] == [
        "—", "0 %", "100 %", "99.9 %", "0.1 %", "87.5 %",
    ]  # fmt: skip


def test_plots_draw_what_they_say() -> None:
    drawn = plots.bar(rate(5, 10), "WSR")
    assert 'width="50.00%"' in drawn
    assert drawn.count('class="whisker"') == 3
    assert "not measured" in plots.bar(rate(0, 0), "WSR")
    stacked = plots.stacked({"load": 1, "behaviour": 1}, 4, "L1")
    pieces = re.findall(r'<rect class="(?:f-)?(\w+)" x="([\d.]+)%"[^>]* width="([\d.]+)%"', stacked)
    assert pieces[1:] == [
        ("load", "0.00", "25.00"),
        ("behaviour", "25.00", "25.00"),
        ("solved", "50.00", "50.00"),
    ]


def test_slugs_are_safe_and_unique() -> None:
    taken: set[str] = set()
    names = [text.slug(name, taken) for name in ("a__1", "A__1", "../../etc/passwd", "", "ü<>")]
    assert names == ["a__1", "A__1-2", "etc-passwd", "trial", "trial-2"]
