"""When a datagram still is under way, and when it counts as lost."""

from __future__ import annotations

from orrery_worldedit.games.luanti import mail
from orrery_worldedit.games.luanti.mail import Mail, Road


class Player:
    def __init__(self, arrived: int, sent: int) -> None:
        self.traffic = (arrived, sent)


def test_a_road_is_empty_when_all_has_arrived() -> None:
    road = Road()
    assert road.empty(0, 0)
    assert not road.empty(3, 2)
    assert road.empty(3, 3)


def test_what_does_not_move_is_lost(monkeypatch) -> None:
    now = [100.0]
    monkeypatch.setattr(mail.time, "monotonic", lambda: now[0])
    road = Road()
    assert not road.empty(3, 1)
    now[0] += mail.LOST_S + 0.1
    assert not road.empty(3, 2)  # it moved
    now[0] += mail.LOST_S + 0.1
    assert road.empty(3, 2)
    assert not road.empty(4, 2)  # the next one is not
    assert road.empty(4, 3)


def test_forgiven_datagrams_are_not_waited_for() -> None:
    road = Road()
    road.forgive(5, 2)
    assert road.empty(5, 2)
    assert not road.empty(6, 2)


def test_players_who_left_still_count() -> None:
    post = Mail()
    post.gone(Player(3, 4))  # type: ignore[arg-type]
    assert post.arrived([Player(10, 20)]) == 13  # type: ignore[list-item]
    assert post.sent([Player(10, 20)]) == 24  # type: ignore[list-item]
