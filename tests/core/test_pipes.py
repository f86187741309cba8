from __future__ import annotations

import math
import socket
import threading
from collections.abc import Iterator

import pytest
from orrery_core.pipes import Channel, SubjectProtocolError, open_pair
from pydantic import BaseModel


class Ask(BaseModel):
    text: str
    values: list[float] = []


class Answer(BaseModel):
    number: int
    values: list[float] = []


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket]]:
    channel, descriptor = open_pair(line_max=1000, timeout_s=5)
    subject = socket.socket(fileno=descriptor)
    yield channel, subject
    channel.close()
    subject.close()


def test_question_and_answer(ends):
    channel, subject = ends
    subject.sendall(b'{"number": 3}\n{"number": 4, "values": [1, 2.5]}\n')
    assert channel.ask(Ask(text="é"), Answer).number == 3
    assert channel.receive(Answer) == Answer(number=4, values=[1, 2.5])
    assert subject.recv(100) == '{"text":"é","values":[]}\n'.encode()


def test_a_line_in_pieces(ends):
    channel, subject = ends
    pieces = [b'{"num', b'ber": ', b"7}", b"\n"]
    thread = threading.Thread(target=lambda: [subject.sendall(piece) for piece in pieces])
    thread.start()
    assert channel.receive(Answer).number == 7
    thread.join()


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"nonsense\n", "not JSON"),
        (b"\xff\xfe\n", "not JSON"),
        (b"\n", "not JSON"),
        (b'{"number": 1, "values": [NaN]}\n', "not JSON"),
        (b'{"number": 1, "values": [1e999]}\n', "not JSON"),
        (b"[" * 900 + b"\n", "not JSON"),
        (b"[1]\n", "schema"),
        (b'{"number": "many"}\n', "schema"),
        (b"{}\n", "schema"),
        (b"x" * 1001, "too long"),
        (b"x" * 1001 + b"\n", "too long"),
        (b"x" * 100_000, "too long"),
    ],
)
def test_what_is_not_a_message_is_the_subjects_fault(ends, line: bytes, fault: str):
    channel, subject = ends
    thread = threading.Thread(target=lambda: subject.sendall(line), daemon=True)
    thread.start()
    with pytest.raises(SubjectProtocolError) as caught:
        channel.receive(Answer)
    assert caught.value.fault == fault
    with pytest.raises(SubjectProtocolError, match="earlier"):
        channel.receive(Answer)


def test_the_place_in_the_schema_is_named(ends):
    channel, subject = ends
    subject.sendall(b'{"number": 1, "values": [1, "x"]}\n')
    with pytest.raises(SubjectProtocolError, match=r"Answer: values\.1"):
        channel.receive(Answer)


def test_silence_is_a_timeout(ends):
    channel, subject = ends
    subject.sendall(b'{"number"')
    with pytest.raises(SubjectProtocolError) as caught:
        channel.receive(Answer, timeout_s=0.05)
    assert caught.value.fault == "timeout"


def test_a_subject_that_does_not_read_is_a_timeout(ends):
    channel, _ = ends
    with pytest.raises(SubjectProtocolError) as caught:
        for _ in range(100_000):
            channel.send(Ask(text="x" * 900), timeout_s=0.05)
    assert caught.value.fault == "timeout"


@pytest.mark.parametrize("sends", [True, False])
def test_a_subject_that_leaves_is_closed(ends, sends: bool):
    channel, subject = ends
    subject.close()
    with pytest.raises(SubjectProtocolError) as caught:
        if sends:
            channel.send(Ask(text="x"))
        else:
            channel.receive(Answer)
    assert caught.value.fault == "closed"


def test_a_message_of_ours_that_breaks_the_rules_is_our_mistake(ends):
    channel, subject = ends
    for message in (Ask(text="x" * 1000), Ask(text="x", values=[math.inf])):
        with pytest.raises(ValueError):
            channel.send(message)
    subject.sendall(b'{"number": 1}\n')
    assert channel.receive(Answer).number == 1
