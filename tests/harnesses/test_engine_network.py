"""Networks of engine containers: none, an allowlist through the proxy, and switches between phases."""

from __future__ import annotations

import asyncio
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_support import NO_NETWORK, allowlist, need_engine, run, started
from harbor.models.task.config import NetworkMode, NetworkPolicy
from orrery.environments.allowlist import PORT
from orrery.environments.engine import EngineEnvironment

pytestmark = [pytest.mark.e2e, pytest.mark.engine]

PUBLIC = NetworkPolicy(network_mode=NetworkMode.PUBLIC)


@pytest.fixture(autouse=True)
def engine() -> None:
    need_engine()


@pytest.fixture
def port() -> Iterator[int]:
    """A server of this machine."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"reached")

        def log_message(self, *_: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


async def fetch(made: EngineEnvironment, url: str, proxy: bool = True) -> str:
    """What curl prints: the body, then the status. The proxy is named, because loopback is exempt from it."""
    how = f"-x http://127.0.0.1:{PORT} --noproxy ''" if proxy else "--noproxy '*'"
    return (await made.exec(f"curl -s -m 20 {how} -w ' %{{http_code}}' {url}")).stdout or ""


def test_no_network_has_a_loopback_and_nothing_else(tmp_path: Path, port: int) -> None:
    async def scenario() -> None:
        async with started(tmp_path, NO_NETWORK) as made:
            assert (await run(made, "ls /sys/class/net")).split() == ["lo"]
            assert await fetch(made, f"http://127.0.0.1:{port}/", proxy=False) == " 000"
            talk = (
                "import socket; s = socket.create_server(('127.0.0.1', 8000));"
                "c = socket.create_connection(('127.0.0.1', 8000));"
                "s.accept()[0].send(b'hello'); print(c.recv(5))"
            )
            assert await run(made, f'python3 -c "{talk}"') == "b'hello'\n"

    asyncio.run(scenario())


def test_an_allowlist_is_the_only_way_out(tmp_path: Path, port: int) -> None:
    async def scenario() -> None:
        async with started(tmp_path, allowlist("127.0.0.1")) as made:
            assert (await run(made, "ls /sys/class/net")).split() == ["lo"]
            assert "HTTPS_PROXY=" in await run(made, "env")
            assert await fetch(made, f"http://127.0.0.1:{port}/") == "reached 200"
            assert await fetch(made, f"http://127.0.0.1:{port}/", proxy=False) == " 000"
            assert (await fetch(made, f"http://127.0.0.2:{port}/")).endswith("403")

    asyncio.run(scenario())


def test_phases_switch_what_can_be_reached(tmp_path: Path, port: int) -> None:
    url = f"http://127.0.0.1:{port}/"

    async def scenario() -> None:
        async with started(tmp_path, NO_NETWORK, phases=[allowlist("127.0.0.1")]) as made:
            assert (await fetch(made, url)).endswith("403")
            await made.set_network_policy(allowlist("127.0.0.1"))
            assert await fetch(made, url) == "reached 200"
            await made.set_network_policy(NO_NETWORK)
            assert (await fetch(made, url)).endswith("403")
            assert "PROXY" not in await run(made, "env")

    asyncio.run(scenario())


def test_the_way_out_survives_a_restart(tmp_path: Path, port: int) -> None:
    async def scenario() -> None:
        async with started(tmp_path, allowlist("127.0.0.1")) as made:
            await made._restart()
            assert await fetch(made, f"http://127.0.0.1:{port}/") == "reached 200"

    asyncio.run(scenario())


def test_a_public_container_has_an_interface_and_cannot_be_closed_off_later(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with started(tmp_path, PUBLIC) as made:
            assert len((await run(made, "ls /sys/class/net")).split()) > 1
            with pytest.raises(Exception, match="cannot be closed off"):
                await made.set_network_policy(NO_NETWORK)

    asyncio.run(scenario())
