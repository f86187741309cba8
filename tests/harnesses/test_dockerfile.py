"""The Dockerfile subset: what it means, and that everything else is refused by line."""

from __future__ import annotations

import io
import tarfile

import pytest
from orrery.environments.context import Context, pack_steps
from orrery.environments.dockerfile import Copy, MakeDirectory, Recipe, Run, expand, read_recipe
from orrery_core.errors import UserError


@pytest.fixture
def recipe(tmp_path):
    def read(text: str, base: Recipe | None = None) -> Recipe:
        (tmp_path / "Dockerfile").write_text(text)
        return read_recipe(tmp_path / "Dockerfile", base)

    return read


def test_a_whole_file(recipe):
    result = recipe(
        """\
# a comment
ARG TAG=1
FROM orrery/x:${TAG}
ARG WHO=me
ENV A=1 B="two words" C=$WHO
ENV OLD style value
WORKDIR /app
WORKDIR sub
COPY --chown=1:2 --chmod=0640 one "two words" ./
COPY ["a b", "/data/c"]
RUN echo $A \\
    # in between
    && echo b
USER ${WHO}
RUN ["ls", "-l"]
CMD ["ignored"]
EXPOSE 80
"""
    )
    assert result.image == "orrery/x:1"
    assert result.env == {"A": "1", "B": "two words", "C": "me", "OLD": "style value"}
    assert (result.cwd, result.user, result.runs_code) == ("/app/sub", "me", True)
    first, second, copy, other, run, listing = result.steps
    assert (first, second) == (MakeDirectory("/app"), MakeDirectory("/app/sub"))
    assert isinstance(copy, Copy) and copy.sources == ("one", "two words")
    assert (copy.target, copy.owner, copy.mode) == ("/app/sub/", "1:2", 0o640)
    assert isinstance(other, Copy) and (other.sources, other.target) == (("a b",), "/data/c")
    assert isinstance(run, Run) and run.argv == ("/bin/sh", "-c", "echo $A     && echo b")
    assert run.env["WHO"] == "me" and run.user is None and run.where.endswith("Dockerfile:11")
    assert isinstance(listing, Run) and (listing.argv, listing.user) == (("ls", "-l"), "me")


def test_settings_of_the_base_image_are_inherited(recipe):
    base = Recipe("root", "x:1", (MakeDirectory("/never"),), {"LANG": "C"}, "/app", "worker")
    result = recipe("FROM y\nENV PLACE=$LANG/x\nWORKDIR sub", base)
    assert result.env == {"LANG": "C", "PLACE": "C/x"}
    assert (result.cwd, result.user) == ("/app/sub", "worker")
    assert result.steps == (MakeDirectory("/app/sub"),)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("FROM b", "second FROM"),
        ("FROM b AS c", "second FROM"),
        ("HEALTHCHECK CMD true", "HEALTHCHECK is not supported"),
        ('SHELL ["bash"]', "SHELL is not supported"),
        ("VOLUME /x", "VOLUME is not supported"),
        ("COPY --from=a /x /y", "--from"),
        ("COPY onlysource", "needs a source and a target"),
        ("COPY --chmod=u+x a b", "octal"),
        ("ADD https://example.org/x /y", "network address"),
        ("ADD x.tar.gz /y", "unpacks an archive"),
        ("RUN --mount=type=cache,target=/x true", "option --mount"),
        ("RUN cat <<EOF", "here-documents"),
        ("ENV A=${B:?no}", "substitution"),
        ("COPY 'a b", "quotation"),
        ("RUN a \\", "continues into nothing"),
    ],
)
def test_what_is_not_supported_is_refused_by_line(recipe, line, reason):
    with pytest.raises(UserError, match=r"Dockerfile:3: ") as caught:
        recipe(f"FROM a\n\n{line}\n")
    assert reason in str(caught.value)


def test_a_file_needs_exactly_one_base(recipe):
    with pytest.raises(UserError, match="there is no FROM"):
        recipe("# nothing\n")
    with pytest.raises(UserError, match="Dockerfile:1: RUN before FROM"):
        recipe("RUN true\nFROM a")
    with pytest.raises(UserError, match="FROM takes one image"):
        recipe("FROM a AS b")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$A-${A}b", "1-1b"),
        (r"\$A", "$A"),
        ("${N:-x}${A:-y}${E:-z}${E-z}", "x1z"),
        ("${A:+x}${N:+y}${E:+z}", "x"),
        ("$N.", "."),
        (r"C:\dir", r"C:\dir"),
    ],
)
def test_expansion(text, value):
    assert expand(text, {"A": "1", "E": ""}, "f:1") == value


def test_single_quotes_in_env_shield_dollar_signs(recipe):
    assert recipe("FROM a\nENV A=1\nENV B='$A' C=\"$A\"").env == {"A": "1", "B": "$A", "C": "1"}


@pytest.fixture
def packed(tmp_path, recipe):
    def pack(lines: str, files: dict[str, str], owner=lambda value: (7, 8)) -> dict[str, tarfile.TarInfo]:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        file = io.BytesIO()
        pack_steps(Context(tmp_path), recipe(f"FROM a\n{lines}").steps, owner, file)
        file.seek(0)
        with tarfile.open(fileobj=file) as tar:
            return {entry.name: entry for entry in tar}

    return pack


def test_copy_follows_the_rules_of_docker(packed):
    tree = {
        "one": "",
        "d/x": "",
        "d/e/y": "",
        "d/skip.tmp": "",
        "d/e/keep.tmp": "",
        ".dockerignore": "**/*.tmp\n!d/e/keep.tmp",
    }
    assert set(packed("COPY one /a", tree)) == {"a"}
    assert set(packed("COPY one /a/", {})) == {"a/one"}
    assert set(packed("COPY one d/x /a/", {})) == {"a/one", "a/x"}
    assert set(packed("COPY d /a", {})) == {"a", "a/x", "a/e", "a/e/y", "a/e/keep.tmp"}
    assert set(packed("COPY o* /a/", {})) == {"a/one"}
    assert {"one", "d", "d/x"} <= set(packed("COPY . /", {}))
    assert "d/skip.tmp" not in packed("COPY . /", {})
    entry = packed("COPY --chown=me --chmod=600 one /a", {})["a"]
    assert (entry.uid, entry.gid, entry.mode) == (7, 8, 0o600)


def test_copy_stays_in_the_context(packed, tmp_path):
    (tmp_path / "out").symlink_to("/etc/passwd")
    for source in ("missing", "../x", "out", "d/../../x"):
        with pytest.raises(UserError, match=r"Dockerfile:2: "):
            packed(f"COPY {source} /a", {"d/f": ""})


def test_the_digest_of_a_context_notices_modes_and_links(tmp_path):
    (tmp_path / "f").write_text("x")
    seen = {Context(tmp_path).digest()}
    (tmp_path / "f").chmod(0o755)
    seen.add(Context(tmp_path).digest())
    (tmp_path / "l").symlink_to("f")
    seen.add(Context(tmp_path).digest())
    (tmp_path / "l").unlink()
    (tmp_path / "l").symlink_to("g")
    seen.add(Context(tmp_path).digest())
    assert len(seen) == 4
