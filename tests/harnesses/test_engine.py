"""The engine environment against a real engine: commands, users, ends, transfers, limits, images."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from pathlib import Path

import pytest
from docker.errors import NotFound
from engine_support import IMAGE, definition, environment, need_engine, run, started
from orrery.environments.engine_service import connect
from orrery_core.errors import InfrastructureError, UserError

pytestmark = [pytest.mark.e2e, pytest.mark.engine]

PROCESSES = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"


@pytest.fixture(autouse=True)
def engine() -> None:
    need_engine()


def test_commands_see_the_image_the_user_the_folder_and_the_variables(tmp_path: Path) -> None:
    definition(tmp_path / "environment", f"FROM {IMAGE}\nENV FROM_IMAGE=yes\nCOPY hello /app/\n", hello="hi")

    async def scenario() -> None:
        async with started(tmp_path, workdir="/tmp", env={"FROM_TASK": "yes"}) as made:
            assert await run(made, "cat /app/hello") == "hi"
            assert (
                await run(made, "pwd; echo $FROM_IMAGE $FROM_TASK $X", env={"X": "a b"})
                == "/tmp\nyes yes a b\n"
            )
            assert await run(made, "pwd; id -u", cwd="/usr", user="root") == "/usr\n0\n"
            assert await run(made, "id -u; id -g", user="1234:77") == "1234\n77\n"
            with made.with_default_user("nobody"):
                assert await run(made, "id -un") == "nobody\n"
            failed = await made.exec("echo out; echo err >&2; exit 7")
            assert (failed.stdout, failed.stderr, failed.return_code) == ("out\n", "err\n", 7)
            killed = await made.exec("kill -9 $$")
            assert (killed.stderr, killed.return_code) == ("", 137)
            assert (await made.exec("kill -INT $$; sleep 1; echo survived")).stdout == ""
            with pytest.raises(InfrastructureError, match="nosuch"):
                await made.exec("true", user="nosuch")

    asyncio.run(scenario())


def test_output_is_streamed_and_bounded(tmp_path: Path) -> None:
    chunks: list[tuple[str, str]] = []

    async def scenario() -> None:
        async with started(tmp_path) as made:
            seen = asyncio.Event()

            async def callback(text: str, stream: str) -> None:
                chunks.append((text, stream))
                seen.set()

            await run(made, "mkfifo /tmp/gate")
            with made.scoped_output_callback(callback):
                command = asyncio.create_task(made.exec("echo first; read x </tmp/gate; echo second >&2"))
                await seen.wait()
                assert chunks == [("first\n", "stdout")] and not command.done()
                await made.exec("echo go >/tmp/gate")
                await command
            assert chunks[-1] == ("second\n", "stderr")
            big = await made.exec("yes 0123456789 | head -c 50000000; echo end")
            assert len(big.stdout or "") < 20_000_000 and (big.stdout or "").endswith("end\n")

    asyncio.run(scenario())


def test_quick_commands_lose_no_output(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with started(tmp_path) as made:
            for number in range(40):
                assert await run(made, f"echo {number}") == f"{number}\n"

    asyncio.run(scenario())


ESCAPES = {
    "a child": "sleep 1001 & sleep 1001",
    "its own session": "setsid sleep 1001 & sleep 1001",
    "an empty environment": "env -i sleep 1001 & env -i sleep 1001",
    "everything at once": "(env -i setsid sh -c 'sleep 1001 & sleep 1001' &); sleep 1001",
    "another user": "setpriv --reuid 77 --clear-groups sleep 1001 & sleep 1001",
    "a growing tree": "while :; do sleep 1001 & sleep 0.02; done",
}


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("how", ["timeout", "cancel"])
def test_the_end_of_a_command_reaches_all_its_processes(tmp_path: Path, escape: str, how: str) -> None:
    async def scenario() -> None:
        async with started(tmp_path) as made:
            await run(made, "sleep 2002 & echo $!")  # a server that an earlier command left
            bystander = asyncio.create_task(made.exec("env -i sleep 2003"))
            if how == "timeout":
                with pytest.raises(RuntimeError, match="timed out after 1 seconds"):
                    await made.exec(ESCAPES[escape], timeout_sec=1)
            else:
                command = asyncio.create_task(made.exec(ESCAPES[escape]))
                while "sleep 1001" not in await run(made, PROCESSES):
                    pass
                command.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await command
            left = await run(made, PROCESSES)
            assert "1001" not in left
            assert "sleep 2002" in left and "sleep 2003" in left
            bystander.cancel()
            await asyncio.wait({bystander})

    asyncio.run(scenario())


def test_a_command_cancelled_while_it_starts_never_runs(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with started(tmp_path) as made:
            for wait in (0, 0.02, 0.05, 0.08):
                command = asyncio.create_task(made.exec("sleep 1001"))
                await asyncio.sleep(wait)  # the moment is the point, not a synchronisation
                command.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await command
            assert "1001" not in await run(made, PROCESSES)

    asyncio.run(scenario())


def test_the_first_process_reaps_orphans(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with started(tmp_path) as made:
            await run(made, "for i in 1 2 3 4 5; do (sleep 0.1 &) ; done; sleep 0.5")
            states = await run(made, "cat /proc/[0-9]*/stat | sed 's/.*) //' | cut -c1")
            assert "Z" not in states

    asyncio.run(scenario())


def test_files_travel_both_ways(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep/er").mkdir(parents=True)
    (source / "deep/er/data").write_bytes(os.urandom(3_000_000))
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    (source / "link").symlink_to("run.sh")

    async def scenario() -> None:
        async with started(tmp_path) as made:
            await made.upload_dir(source, "/srv/new/tree")
            await made.upload_file(source / "run.sh", "/srv/other/name.sh")
            await made.upload_file(source / "run.sh", "/srv/new")
            assert await run(
                made, "stat -c '%U %a' /srv/new/tree/run.sh /srv/other/name.sh /srv/new/run.sh"
            ) == ("root 755\n" * 3)
            await made.download_dir("/srv/new/tree", tmp_path / "back")
            await made.download_file("/srv/other/name.sh", tmp_path / "one")

    asyncio.run(scenario())
    assert (tmp_path / "back/deep/er/data").read_bytes() == (source / "deep/er/data").read_bytes()
    assert (tmp_path / "back/link").readlink() == Path("run.sh")
    assert (tmp_path / "one").read_text() == "#!/bin/sh\n"


def test_hostile_links_lead_nowhere(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("host")
    plant = (
        f"mkdir /app/mod; cd /app/mod; ln -s {secret} leak; ln -s ../../../.. up; echo ok >fine; mkfifo pipe"
    )

    async def scenario() -> None:
        async with started(tmp_path) as made:
            await run(made, plant)
            await made.download_dir("/app/mod", tmp_path / "out")
            # A target that the agent turned into a link is resolved inside, never on the host.
            await run(made, f"ln -s {tmp_path} /app/trap; mkdir -p {tmp_path}")
            (tmp_path / "payload").mkdir()
            (tmp_path / "payload/planted").write_text("x")
            await made.upload_dir(tmp_path / "payload", "/app/trap")

    asyncio.run(scenario())
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["fine"]
    assert not (tmp_path / "planted").exists()


def test_memory_and_processor_limits_hold(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with started(tmp_path, memory_mb=200, cpus=0.5) as made:
            eaten = await made.exec("python3 -c 'x = bytearray(400 << 20)'")
            assert eaten.return_code == 137
            assert await run(made, "python3 -c 'x = bytearray(50 << 20); print(1)'") == "1\n"
            state = connect().client.api.inspect_container(made._container)["HostConfig"]
            assert (state["Memory"], state["MemorySwap"], state["NanoCpus"]) == (
                200 << 20,
                200 << 20,
                500_000_000,
            )

    asyncio.run(scenario())


def test_an_image_is_built_once_per_content(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = definition(tmp_path / "environment", f"FROM {IMAGE}\nCOPY text /app/\n", text=uuid.uuid4().hex)

    def built() -> int:
        return sum("building docker.io/orrery-task/" in record.getMessage() for record in caplog.records)

    async def once(force: bool = False) -> str:
        made = environment(tmp_path)
        try:
            await made.start(force_build=force)
            return await run(made, "cat /app/text")
        finally:
            await made.stop(delete=True)

    async def both() -> list[str]:
        return await asyncio.gather(once(), once())

    with caplog.at_level("INFO"):
        first, second = asyncio.run(both())
        assert first == second and built() == 1
        changed = uuid.uuid4().hex
        (folder / "text").write_text(changed)
        assert asyncio.run(once()) == changed and built() == 2
        asyncio.run(once(force=True))
        assert built() == 3
    label = {"label": f"orrery.definition={folder.resolve()}"}
    assert len(connect().client.images.list(filters=label)) == 1, "outdated images are discarded"


def test_a_failed_build_shows_the_end_of_its_log(tmp_path: Path) -> None:
    definition(tmp_path / "environment", f"FROM {IMAGE}\nRUN echo the-reason; exit 3\n")

    async def scenario() -> None:
        async with started(tmp_path):
            pass

    with pytest.raises(InfrastructureError, match="the-reason"):
        asyncio.run(scenario())


def test_compose_files_are_refused(tmp_path: Path) -> None:
    (definition(tmp_path / "environment") / "docker-compose.yaml").write_text("")
    with pytest.raises(UserError, match="no compose"):
        environment(tmp_path)


def test_the_mode_is_recorded_and_stopping_twice_is_fine(tmp_path: Path) -> None:
    async def scenario() -> str:
        async with started(tmp_path) as made:
            container = made._container
        await made.stop(delete=True)
        with pytest.raises(InfrastructureError):
            await made.exec("true")
        return container

    container = asyncio.run(scenario())
    with pytest.raises(NotFound):
        connect().client.api.inspect_container(container)
    records = [json.loads(path.read_text()) for path in (tmp_path / "trial").glob("*.json")]
    assert [record["agent"]["mode"] for record in records] == [connect().mode]
    assert connect().mode.startswith(f"engine:{connect().kind}-")


def test_processes_that_cannot_be_killed_cost_a_restart_not_the_files(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with started(tmp_path) as made:
            await run(made, "echo kept >/app/file; sleep 1001 &")
            await made._restart()
            assert await run(made, "cat /app/file") == "kept\n"
            assert "1001" not in await run(made, PROCESSES)

    asyncio.run(scenario())
