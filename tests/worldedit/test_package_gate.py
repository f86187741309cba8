"""The package gate: what passes, and that a mod.conf means to us what it means to the engine.

Every rule that rejects is tested on whole submissions in tests/attacks/test_packages.py.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orrery_worldedit.games.luanti.folder import extend_depends
from orrery_worldedit.games.luanti.modconf import name_list, parse_conf, read_conf
from orrery_worldedit.package_gate import PackageRejected, inspect_package

LIBRARY = sorted(Path(__file__).parents[2].glob("tasks/luanti/*"))


def mod(tmp_path: Path, conf: str | bytes = "name = cand\n") -> Path:
    folder = tmp_path / "mod"
    folder.mkdir()
    (folder / "init.lua").write_text("")
    (folder / "mod.conf").write_bytes(conf if isinstance(conf, bytes) else conf.encode())
    return folder


def test_an_ordinary_mod(tmp_path: Path) -> None:
    folder = mod(tmp_path)
    for name in (
        "textures/cand_a.png",
        "locale/cand.de.tr",
        "sounds/b.OGG",
        "LICENSE",
        "README.md",
        "lib/c.lua",
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"content")
    found = inspect_package(folder, "cand")
    assert found.root == folder
    assert sorted(found.files) == sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    assert sorted(found.lua_files) == ["init.lua", "lib/c.lua"]


def test_the_digest_covers_names_and_contents_and_nothing_else(tmp_path: Path) -> None:
    folder = mod(tmp_path)
    first = inspect_package(folder, "cand").digest
    os.utime(folder / "init.lua", (1, 1))
    (folder / "init.lua").chmod(0o600)
    (folder / "empty").mkdir()
    assert inspect_package(folder, "cand").digest == first
    (folder / "init.lua").write_text("x")
    second = inspect_package(folder, "cand").digest
    (folder / "init.lua").rename(folder / "inix.lua")
    third = inspect_package(folder, "cand").digest
    assert len({first, second, third}) == 3


def test_a_hard_link_is_its_content(tmp_path: Path) -> None:
    folder = mod(tmp_path)
    os.link(folder / "init.lua", folder / "same.lua")
    assert "same.lua" in inspect_package(folder, "cand").files


@pytest.mark.parametrize("start", [b"MZ = 1\n", b"\x89PNG\r\n\x1a\n", b"# comment", b""])
def test_what_only_looks_like_a_program(tmp_path: Path, start: bytes) -> None:
    folder = mod(tmp_path)
    (folder / "x.lua").write_bytes(start)
    inspect_package(folder, "cand")


@pytest.mark.parametrize("ending", ["so", "dll", "exe", "py", "sh", "zip", "sqlite", "o", ""])
def test_kinds_of_files_that_no_mod_needs(tmp_path: Path, ending: str) -> None:
    folder = mod(tmp_path)
    (folder / f"x.{ending}".rstrip(".")).write_bytes(b"text")
    with pytest.raises(PackageRejected, match="files of this kind"):
        inspect_package(folder, "cand")


@pytest.mark.parametrize("call", ["scandir", "open"])
def test_what_cannot_be_read_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    folder = mod(tmp_path)
    locked = folder / ("textures" if call == "scandir" else "locked.lua")
    locked.mkdir() if call == "scandir" else locked.touch()
    real = getattr(os, call)

    def refuse(path: object, *rest: object) -> object:  # root, who runs the tests, may read everything
        if Path(str(path)) == locked:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *rest)

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(PackageRejected, match=f"^{locked.name}: cannot be read; give files mode 644"):
        inspect_package(folder, "cand")


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: path.name)
def test_the_librarys_solutions_pass(path: Path) -> None:
    name = read_conf(path / "environment/mod/mod.conf")["name"]
    assert inspect_package(path / "solution/mod", name).digest
    assert inspect_package(path / "environment/mod", name).digest


# -- mod.conf

ACCEPTED = [
    "name = cand",
    "name=cand\n",
    "  name\t=  cand  \n",
    "name = cand\r\n",
    "# name = other\nname = cand\n",
    "name = other\nname = cand\n",
    "description = name = other\nname = cand\n",
    'description = """\nname = other\n"""\nname = cand\n',
    "group = {\nname = other\n}\nname = cand\n",
    'name = """\ncand\n"""\n',
    "name = other\nname = cand\ngarbage line\n[section]\n",
    "name = cand\nx = {\nname = other\n",
    "\v\fname = cand\v\f\n",
    "= x\nname = cand\n",
]
REFUSED = [
    "",
    "name",
    "name =",
    "name = cand2",
    "name = Cand",
    "name = cand # the best",
    'name = "cand"',
    "Name = cand",
    "names = cand",
    "name = cand\nname = other\n",
    "name = cand\nname =\n",
    "\ufeffname = cand\n",
    "name = cand\rname = cand\n",
    "name = cand\u2028\n",
    "name\u00a0= cand\n",
    "name = cand\x85\n",
    "#\rname = cand\n",
    'x = """\nname = cand\n',
    "x = {\nname = cand\n}\n",
    "name = cand\nname = {\n}\n",
    'name = """\ncand\n """\n',
    'name = """\n\ncand\n"""\n',
    'name = """ cand """\n',
    "name = cand\0",
]


@pytest.mark.parametrize("conf", ACCEPTED)
def test_names_the_engine_reads_too(tmp_path: Path, conf: str) -> None:
    inspect_package(mod(tmp_path, conf), "cand")


@pytest.mark.parametrize("conf", REFUSED)
def test_names_the_engine_does_not_read(tmp_path: Path, conf: str) -> None:
    with pytest.raises(PackageRejected, match=r"mod\.conf .*; the mod must keep the name \"cand\""):
        inspect_package(mod(tmp_path, conf), "cand")


def test_a_name_of_odd_bytes(tmp_path: Path) -> None:
    with pytest.raises(PackageRejected, match="must keep the name"):
        inspect_package(mod(tmp_path, b"name = cand\xff\n"), "cand")


@pytest.mark.parametrize(
    ("value", "names"),
    [("a, b", ["a", "b"]), ("a b,,\tc\n,", ["ab", "c"]), ("", []), ("a\u00a0b", ["a\u00a0b"])],
)
def test_lists_of_names(value: str, names: list[str]) -> None:
    assert name_list(value) == names


@given(st.text(st.sampled_from('ab= \t\r\n\v"{}#,\0\u2028é'), max_size=60))
def test_any_text_is_a_configuration(text: str) -> None:
    for key, value in parse_conf(text).items():
        assert key == key.strip(" \t") and "\n" not in key
        assert value is not None


@pytest.mark.parametrize("conf", ACCEPTED)
def test_what_is_handed_to_the_engine_keeps_the_name(tmp_path: Path, conf: str) -> None:
    written = extend_depends(
        mod(tmp_path, conf + "\ndepends = default, fire\noptional_depends=dye"), "cand", "probe"
    )
    found = parse_conf(written)
    assert found["name"] == "cand"
    if "depends = default" in written:
        assert found["depends"] == "default, fire, probe" and found["optional_depends"] == "dye"


@pytest.mark.e2e
def test_the_engine_reads_every_configuration_as_we_do(tmp_path: Path) -> None:
    """A real server parses each text; `Settings` is the class that it reads mod.conf with."""
    from luanti_worlds import world

    texts = [
        *ACCEPTED,
        *REFUSED,
        'a = 1\nb = {\nc = 2\nd = {\ne = 3\n}\n}\nf = """\nx\n\n"""\na=2',
        "a={\nb=1",
    ]
    code = 'return I.Settings.to_table(loadstring("return Settings")()(arg))'
    with world(tmp_path) as running:
        for text in texts:
            data = text.encode()
            name = f"{hashlib.sha256(data).hexdigest()[:16]}.conf"
            path = tmp_path / "world" / "world" / name
            path.write_bytes(data)
            path.chmod(0o644)
            theirs = running.ask(code, f"/game/world/{name}")
            # A zero byte ends a text on its way to Lua, not in the engine.
            ours = {key: value.partition("\0")[0] for key, value in parse_conf(text).items()}
            texts_only = {key: value for key, value in theirs.items() if isinstance(value, str)}
            assert texts_only == ours, text
