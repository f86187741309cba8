"""The rules of the allowlist proxy, and the proxy against local servers."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket

import pytest
from harbor.models.task.config import NetworkMode, NetworkPolicy
from orrery.environments.allowlist import Proxy, Rules, parse_request, proxy_environment

LISTED = Rules(("api.example.com", "*.cdn.example.com", "192.0.2.7", "198.51.100.0/24", "2001:db8::/32"))


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("api.example.com", True),
        ("API.Example.com.", True),
        ("x.api.example.com", False),
        ("evil-api.example.com", False),
        ("api.example.com.evil.org", False),
        ("a.b.cdn.example.com", True),
        ("cdn.example.com", False),
        ("xcdn.example.com", False),
        ("192.0.2.7", True),
        ("192.0.2.8", False),
        ("198.51.100.200", True),
        ("2001:db8::1", True),
        ("2001:db9::1", False),
        ("localhost", False),
        ("", False),
    ],
)
def test_names(host, allowed):
    assert LISTED.allows_name(host) is allowed


@pytest.mark.parametrize(
    ("rules", "host", "address", "allowed"),
    [
        (LISTED, "api.example.com", "203.0.113.5", True),
        (LISTED, "api.example.com", "127.0.0.1", False),
        (LISTED, "api.example.com", "::ffff:127.0.0.1", False),
        (LISTED, "api.example.com", "169.254.169.254", False),
        (LISTED, "api.example.com", "10.1.2.3", True),
        (Rules(everything=True), "evil.org", "127.0.0.1", False),
        (Rules(everything=True), "evil.org", "203.0.113.5", True),
        (Rules(("127.0.0.1",)), "127.0.0.1", "127.0.0.1", True),
        (Rules(("localhost",)), "localhost", "::1", True),
        (Rules(("localhost",)), "localhost", "169.254.169.254", False),
        (Rules(("localhost", "evil.org")), "evil.org", "127.0.0.1", False),
    ],
)
def test_addresses_that_a_name_may_lead_to(rules, host, address, allowed):
    assert rules.allows_address(host, ipaddress.ip_address(address)) is allowed


def test_rules_follow_the_policy():
    assert Rules.of(NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)) == Rules()
    assert Rules.of(NetworkPolicy()).everything
    listed = Rules.of(NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=["a.org"]))
    assert listed == Rules(("a.org",))
    assert proxy_environment(Rules()) == {}
    assert proxy_environment(listed)["https_proxy"] == "http://127.0.0.1:3128"


def test_requests_are_rewritten_for_one_host_and_one_answer():
    head = (
        b"GET http://user:pw@a.org:81/p?q=1 HTTP/1.1\r\nHost: other.org\r\nProxy-Connection: keep-alive\r\n"
        b"Connection: keep-alive\r\nX: y\r\n\r\n"
    )
    target = parse_request(head)
    assert (target.host, target.port) == ("a.org", 81)
    assert target.head == b"GET /p?q=1 HTTP/1.1\r\nHost: a.org:81\r\nX: y\r\nConnection: close\r\n\r\n"
    tunnel = parse_request(b"CONNECT [2001:db8::1]:443 HTTP/1.1\r\n\r\n")
    assert (tunnel.host, tunnel.port, tunnel.head) == ("2001:db8::1", 443, b"")


@pytest.mark.parametrize(
    "line",
    ["GET / HTTP/1.1", "CONNECT host HTTP/1.1", "GET ftp://a.org/ HTTP/1.1", "nonsense", "CONNECT h:99999 x"],
)
def test_what_is_no_proxy_request_is_refused(line):
    with pytest.raises(ValueError):
        parse_request(f"{line}\r\n\r\n".encode())


async def with_proxy(rules, body):
    """Runs `body(ask, proxy, port)` against a proxy and an echo server on the loopback."""

    async def echo(reader, writer):
        while data := await reader.read(1000):
            writer.write(b"echo:" + data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    proxy = Proxy(rules, logging.getLogger("test"))
    await proxy.serve(listener)

    async def ask(data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(data)
        return reader, writer, await asyncio.wait_for(reader.readline(), 10)

    async with server:
        try:
            await body(ask, proxy, server.sockets[0].getsockname()[1])
        finally:
            await proxy.close()


def test_a_tunnel_carries_data_until_the_policy_changes():
    async def body(ask, proxy, port):
        reader, writer, line = await ask(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
        assert line == b"HTTP/1.1 200 Connection established\r\n"
        await reader.readline()
        writer.write(b"hello")
        assert await reader.readexactly(10) == b"echo:hello"
        proxy.switch(Rules())
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        _, writer, line = await ask(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
        assert line == b"HTTP/1.1 403 Forbidden\r\n"
        writer.close()

    asyncio.run(with_proxy(Rules(("127.0.0.1",)), body))


def test_answers_to_bad_and_failing_requests():
    async def body(ask, proxy, port):
        for request, status in (
            ("GET / HTTP/1.1\r\n\r\n", b"400"),
            (f"GET http://localhost:{port}/ HTTP/1.1\r\n\r\n", b"403"),
            ("CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n", b"502"),
        ):
            _, writer, line = await ask(request.encode())
            assert line.split()[1] == status, request
            writer.close()

    asyncio.run(with_proxy(Rules(("127.0.0.1",)), body))


def test_a_name_that_leads_to_the_own_machine_is_refused(monkeypatch):
    async def body(ask, proxy, port):
        loop = asyncio.get_running_loop()

        async def resolve(host, port, **_):
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

        monkeypatch.setattr(loop, "getaddrinfo", resolve)
        _, writer, line = await ask(f"CONNECT api.example.com:{port} HTTP/1.1\r\n\r\n".encode())
        assert line.split()[1] == b"403"
        writer.close()

    asyncio.run(with_proxy(LISTED, body))
