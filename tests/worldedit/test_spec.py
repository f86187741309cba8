"""Task specs: every mistake is named with its file, its field and what would mend it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from orrery_core.errors import UserError
from orrery_worldedit.spec import STANDARD_CRITERIA, TaskSpec, load_spec
from tasks_for_tests import check, raw, spec

LIBRARY = sorted(Path(__file__).parents[2].glob("tasks/luanti/*/spec.toml"))


def problem(tmp_path: Path, **changes: Any) -> str:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(raw(**changes)))
    with pytest.raises(UserError) as caught:
        load_spec(path)
    assert str(path) in caught.value.message and caught.value.mend
    return caught.value.message


def mutant(**changes: Any) -> dict[str, Any]:
    return {"id": "wrong", "mistake": "a mistake", "criterion": "there", **changes}


def test_a_sound_spec(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(raw(mutants=[mutant()])))
    found = load_spec(path)
    assert found.criteria == [*STANDARD_CRITERIA, "there"]
    assert found.without_solutions().mutants == []
    assert found.checks[0].expected_vanilla == "fail"
    assert spec(checks=[check(stage="regression")]).checks[0].expected_vanilla == "pass"


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ({"do": "dgi", "player": "alice", "at": [0, 0, 0]}, 'verb "dgi" is unknown; did you mean "dig"?'),
        ({"do": "zzzz"}, 'verb "zzzz" is unknown'),
        ({"do": "dig", "player": "alice"}, 'verb "dig" needs "at"'),
        ({"do": "dig", "playr": "alice", "at": [0, 0, 0]}, 'has no argument "playr"; did you mean "player"?'),
        ({"do": "dig", "player": "alice", "at": [0, 0]}, 'verb "dig", argument "at"'),
        ({"do": "dig", "player": "alice", "at": "here"}, 'argument "at": Input should be a valid list'),
        ({"do": "wait", "seconds": "5"}, 'argument "seconds": Input should be a valid number'),
        ({"do": "give", "player": "alice", "item": "x", "count": 1.5}, 'argument "count"'),
        ({"do": "dig", "player": "carol", "at": [0, 0, 0]}, "player \"carol\" is not in players = ['alice']"),
        ({"do": "node", "at": "$seen"}, "$seen is neither a subject nor bound before"),
        ({"do": "hold", "player": "alice", "item": "$lantern"}, 'did you mean "lantern_block"?'),
        ({"do": "hold", "player": "alice", "item": "$vanilla"}, "$vanilla is neither"),
        ({"do": "wait", "seconds": 1, "as": "vanilla"}, 'as = "vanilla" has another meaning'),
        ({"do": "wait", "seconds": 1, "as": "count"}, 'as = "count" has another meaning'),
        ({"do": "wait", "seconds": 1, "as": "lantern_block"}, 'as = "lantern_block" has another meaning'),
    ],
)
def test_a_wrong_step(tmp_path: Path, steps: dict[str, Any], words: str) -> None:
    subjects = [{"id": "lantern_block", "kind": "node", "words": [["lantern"]]}]
    text = problem(tmp_path, checks=[check(trigger=[steps])], subjects=subjects)
    assert 'checks[0] ("there").trigger[0]: ' in text and words in text


def test_a_wrong_step_inside_loops_has_its_place(tmp_path: Path) -> None:
    loop = {"repeat": 2, "steps": [{"each": "x", "in": [1], "steps": [{"do": "dgi"}]}]}
    assert 'checks[0] ("there").trigger[0].steps[0].steps[0]: ' in problem(
        tmp_path, checks=[check(trigger=[loop])]
    )


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"steps": []}, "a loop needs either"),
        ({"repeat": 2, "each": "x", "in": [1], "steps": []}, "a loop needs either"),
        ({"each": "x", "steps": []}, "a loop needs either"),
        ({"repeat": 0, "steps": []}, "greater than or equal to 1"),
        ({"repeat": 5000, "steps": []}, "less than or equal to 2000"),
        ({"repeat": 2, "do": "wait"}, "each, in and repeat belong to a loop"),
        ({"repeat": 2, "steps": [], "do": "wait"}, "a loop has only"),
        ({}, "a step needs `do = verb`"),
        ({"do": "wait", "seconds": 1, "as": "No Name"}, "match pattern"),
    ],
)
def test_a_step_of_no_form(tmp_path: Path, step: dict[str, Any], words: str) -> None:
    text = problem(tmp_path, checks=[check(trigger=[step])])
    assert "checks[0].trigger[0]" in text and words in text


def test_an_act_in_a_fixture(tmp_path: Path) -> None:
    step = {"do": "dig", "player": "alice", "at": [0, 0, 0]}
    assert "acts belong into the trigger" in problem(tmp_path, checks=[check(fixture=[step])])


@pytest.mark.parametrize("part", ["gates", "acceptance"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sen == 1", '"sen" is measured by no step; did you mean "seen"?'),
        ("len == 3", '"len" is measured by no step'),
        ("seen = 1", "not an expression"),
        ("open('x')", "can be called"),
    ],
)
def test_a_wrong_expression(tmp_path: Path, part: str, text: str, words: str) -> None:
    found = problem(tmp_path, checks=[check(**{part: ["seen == 'x'", text]})])
    assert f'checks[0] ("there").{part}[1]: ' in found and words in found


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"requirements": ["one", "two"]}, "requirements[1] is tested by no check; drop it or add one"),
        ({"checks": [check(requirement=2)]}, "there are only 1 requirements"),
        ({"checks": [check(), check()]}, 'id "there" is used twice'),
        ({"checks": [check(id="loaded")]}, 'id "loaded" is used twice'),
        ({"checks": []}, "checks: List should have at least 1 item"),
        ({"checks": [check(acceptance=[])]}, "checks[0].acceptance: List should have at least 1 item"),
        ({"checks": [check(acceptence=["x"])]}, "checks[0].acceptence: Extra inputs are not permitted"),
        ({"checks": [check(stage="visual")]}, "checks[0].stage: "),
        (
            {"mutants": [mutant(criterion="ther")]},
            'mutants[0].criterion: "ther" is no criterion; did you mean "there"?',
        ),
        ({"mutants": [mutant(id="No")]}, "mutants[0].id: "),
        ({"id": "l2_test"}, 'id "l2_test" does not start with its level l1_'),
        ({"id": "steel_pick"}, "id: "),
        ({"level": 5}, "level: "),
        ({"family": "terraria"}, "family: "),
        ({"genre": "puzzle"}, "genre: "),
        ({"version": "one"}, "version: "),
        ({"mod": {"name": "Bad Name"}}, "mod.name: "),
        ({"mod": {}}, "mod.name: Field required"),
        ({"preservation": {"new": ["planets"]}}, "preservation.new[0]: "),
        ({"subjects": [{"id": "x", "kind": "planet", "words": [["x"]]}]}, "subjects[0].kind: "),
        ({"extra": 1}, "extra: Extra inputs are not permitted"),
    ],
)
def test_a_wrong_field(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    assert words in problem(tmp_path, **changes)


def test_every_problem_is_listed(tmp_path: Path) -> None:
    text = problem(tmp_path, level=5, genre="puzzle")
    assert "level: " in text and "genre: " in text


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("spec.toml", b"= 1", "not TOML"),
        ("spec.toml", b"title = '\xff'", "not UTF-8 at byte 9"),
        ("spec.json", b"{", "Invalid JSON"),
        ("spec.json", b"[]", "should be an object"),
        ("spec.toml", None, "cannot be read (No such file or directory)"),
    ],
)
def test_a_file_that_is_no_spec(tmp_path: Path, name: str, content: bytes | None, words: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        load_spec(path)
    assert words in caught.value.message and str(path) in caught.value.message and caught.value.mend


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: path.parent.name)
def test_the_librarys_specs_are_sound(path: Path) -> None:
    found = load_spec(path)
    assert found.id == path.parent.name
    assert len(found.criteria) >= 8
    assert any(c.stage == "regression" for c in found.checks)
    assert len(found.mutants) >= 4
    assert {m.id for m in found.mutants} == {p.name for p in (path.parent / "mutants").iterdir()}


def test_a_spec_survives_its_rendered_form() -> None:
    found = spec(checks=[check(trigger=[{"repeat": 2, "steps": [{"do": "wait", "seconds": 1.0}]}])])
    assert TaskSpec.model_validate_json(found.model_dump_json(by_alias=True)) == found
