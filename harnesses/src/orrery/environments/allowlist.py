"""A proxy on the host that lets a sandbox reach listed hosts only.

The sandbox has a network namespace with nothing but its loopback. The proxy's listening socket is created
inside that namespace and served from here, so the sandbox needs no helper program and there is no other
route to go round it. HTTP and CONNECT requests are checked by host name; names are resolved here, once, and
the checked address is used.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from harbor.models.task.config import NetworkMode, NetworkPolicy

PORT = 3128
HEADER_BYTES = 64 << 10
HEADER_S = 30
CONNECT_S = 30

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Refused(Exception):
    """The policy forbids this host or address."""


@dataclass(frozen=True)
class Target:
    """Where one proxy request wants to go. `head` is what to pass on first; empty for CONNECT."""

    host: str
    port: int
    head: bytes


@dataclass(frozen=True)
class Rules:
    """A network policy as the proxy applies it; entries are Harbor's normalised `allowed_hosts`."""

    entries: tuple[str, ...] = ()
    everything: bool = False

    @classmethod
    def of(cls, policy: NetworkPolicy) -> Rules:
        public = policy.network_mode == NetworkMode.PUBLIC
        listed = policy.network_mode == NetworkMode.ALLOWLIST
        return cls(tuple(policy.allowed_hosts) if listed else (), public)

    def allows_name(self, host: str) -> bool:
        """Whether a host name, or an address written as one, is listed. `*.x` covers names below x only."""
        host = host.lower().rstrip(".")
        if self.everything or host in self.entries:
            return True
        if (address := parse_address(host)) is not None:
            return self._lists(address)
        return any(entry.startswith("*.") and host.endswith(entry[1:]) for entry in self.entries)

    def allows_address(self, host: str, address: Address) -> bool:
        """Whether an allowed name may lead to this address.

        A name somebody else controls must not open this machine's own services or a cloud's metadata address;
        those are reachable only when listed by address, or as the very name `localhost`.
        """
        address = getattr(address, "ipv4_mapped", None) or address
        own = address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast
        named = host.lower().rstrip(".") == "localhost" and "localhost" in self.entries
        return not own or self._lists(address) or (named and address.is_loopback)

    def _lists(self, address: Address) -> bool:
        for entry in self.entries:
            with suppress(ValueError):
                if address in ipaddress.ip_network(entry):
                    return True
        return False


def parse_address(text: str) -> Address | None:
    with suppress(ValueError):
        return ipaddress.ip_address(text)
    return None


def parse_request(head: bytes) -> Target:
    """Understand the head of a proxy request.

    The head that is passed on asks for the path only, names the checked host, and closes the connection after
    one answer, because a second request on it could be meant for another host.

    Raises:
        ValueError: not a proxy request.
    """
    lines = head.decode("latin-1").split("\r\n")
    method, address, version = lines[0].split(" ")
    if method == "CONNECT":
        parts = urlsplit(f"//{address}")
        if not parts.hostname or not parts.port:
            raise ValueError("CONNECT needs host:port")
        return Target(parts.hostname, parts.port, b"")
    parts = urlsplit(address)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError("not a proxy request")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    dropped = ("proxy-", "connection:", "keep-alive:", "host:")
    kept = [line for line in lines[1:] if line and not line.lower().startswith(dropped)]
    named = parts.netloc.rpartition("@")[2]
    rows = [f"{method} {path} {version}", f"Host: {named}", *kept, "Connection: close", "", ""]
    return Target(parts.hostname, parts.port or 80, "\r\n".join(rows).encode("latin-1"))


class Proxy:
    """Serves one sandbox; `rules` may be replaced at any time and holds for the next request."""

    def __init__(self, rules: Rules, logger: logging.Logger) -> None:
        self.rules = rules
        self._logger = logger
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def serve(self, listener: socket.socket) -> None:
        """Start answering on a listening socket, which may belong to another network namespace."""
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=HEADER_BYTES)

    def switch(self, rules: Rules) -> None:
        """Change the policy; connections opened under the old one are cut."""
        self.rules = rules
        for task in self._open:
            task.cancel()

    async def close(self) -> None:
        if self._server:
            self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._handle(reader, writer)
        except asyncio.CancelledError:
            pass  # cut by a policy switch or the end of the sandbox; the server's own task has no other owner
        finally:
            self._open.discard(task)
            writer.close()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEADER_S):
                target = parse_request(await reader.readuntil(b"\r\n\r\n"))
            async with asyncio.timeout(CONNECT_S):
                far_reader, far_writer = await self._connect(target)
        except Refused as error:
            self._logger.info("proxy refused %s", error)
            return await _answer(writer, "403 Forbidden", f"not on this task's network allowlist: {error}")
        except (ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return await _answer(writer, "400 Bad Request", "not a proxy request")
        except (OSError, TimeoutError) as error:
            return await _answer(writer, "502 Bad Gateway", f"{type(error).__name__}: {error}")
        try:
            if target.head:
                far_writer.write(target.head)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        finally:
            far_writer.close()

    async def _connect(self, target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        rules = self.rules
        if not rules.allows_name(target.host):
            raise Refused(f"{target.host}:{target.port}")
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        addresses = [entry[4][0] for entry in found]
        good = [a for a in addresses if rules.allows_address(target.host, ipaddress.ip_address(a))]
        if not good:
            raise Refused(f"{target.host}:{target.port} (leads to {', '.join(map(str, addresses))})")
        failure: OSError = OSError("no address")
        for address in good:
            try:
                return await asyncio.open_connection(str(address), target.port)
            except OSError as error:
                failure = error
        raise failure


async def _answer(writer: asyncio.StreamWriter, status: str, text: str) -> None:
    body = text.encode() + b"\n"
    rows = (
        f"HTTP/1.1 {status}",
        "Content-Type: text/plain",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    head = "\r\n".join((*rows, "", ""))
    with suppress(OSError):
        writer.write(head.encode() + body)
        await writer.drain()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


def proxy_environment(rules: Rules) -> dict[str, str]:
    """The variables that point programs inside at the proxy; none when nothing may be reached."""
    if not (rules.everything or rules.entries):
        return {}
    address = f"http://127.0.0.1:{PORT}"
    names: Sequence[str] = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    local = {"NO_PROXY": "localhost,127.0.0.1,::1", "no_proxy": "localhost,127.0.0.1,::1"}
    return {name: address for upper in names for name in (upper, upper.lower())} | local
