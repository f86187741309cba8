"""Datagrams under way between players and server: a busy kernel takes its time even on loopback."""

from __future__ import annotations

import time
from collections.abc import Iterable

from .bot import Bot

LOST_S = 0.5  # a datagram that has not arrived by then never will


class Road:
    """One direction: counts at both ends, and a datagram is under way as long as they differ."""

    def __init__(self) -> None:
        self._lost = 0
        self._last = (0, 0)
        self._since = time.monotonic()

    def empty(self, sent: int, arrived: int) -> bool:
        """Whether nothing is under way; what has not moved for a while is given up as lost."""
        if (sent, arrived) != self._last:
            self._last, self._since = (sent, arrived), time.monotonic()
        if arrived + self._lost < sent and time.monotonic() - self._since > LOST_S:
            self._lost = sent - arrived
        return arrived + self._lost >= sent

    def forgive(self, sent: int, arrived: int) -> None:
        """Nobody is left to receive what is still under way."""
        self._lost = sent - arrived


class Mail:
    """Both directions, for all players of one run of the server."""

    def __init__(self) -> None:
        self.to_server = Road()
        self.to_players = Road()
        self._gone_in = 0
        self._gone_out = 0

    def gone(self, bot: Bot) -> None:
        """A player has left; its datagrams still count."""
        arrived, sent = bot.traffic
        self._gone_in += arrived
        self._gone_out += sent

    def sent(self, bots: Iterable[Bot]) -> int:
        """Datagrams that players have sent so far."""
        return self._gone_out + sum(bot.traffic[1] for bot in bots)

    def arrived(self, bots: Iterable[Bot]) -> int:
        """Datagrams that players have received so far."""
        return self._gone_in + sum(bot.traffic[0] for bot in bots)
