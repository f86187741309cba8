"""SRP-6a login (RFC 5054, 2048-bit group, SHA-256) as Luanti uses it.

The account name goes lower-cased into the private key and as given into the proof.
"""

from __future__ import annotations

import hashlib
from random import Random

_GENERATOR = 2
_PRIME = int(
    "AC6BDB41324A9A9BF166DE5E1389582FAF72B6651987EE07FC3192943DB56050"
    "A37329CBB4A099ED8193E0757767A13DD52312AB4B03310DCD7F48A9DA04FD50"
    "E8083969EDB767B0CF6095179A163AB3661A05FBD5FAAAE82918A9962F0B93B8"
    "55F97993EC975EEAA80D740ADBF4FF747359D041D5C33EA71D281E446B14773B"
    "CA97B43A23FB801676BD207A436C6481F1D2B9078717461A5B9D32E688F87748"
    "544523B524B0D57D5EA77A2775D2ECFA032CFBDBF52FB3786160279004E57AE6"
    "AF874E7303CE53299CCC041C7BC308D82A5698F3A8D0C38271AE35F8E9DBFBB6"
    "94B5C803D89F7AE435DE236D525F54759B65E372FCD68EF20FA7111F9E4AFF73",
    16,
)


def _raw(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8 or 1, "big")


def _padded(number: int) -> bytes:
    return number.to_bytes(256, "big")


def _digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def _number(*parts: bytes) -> int:
    return int.from_bytes(_digest(*parts), "big")


def _private_key(name: str, password: str, salt: bytes) -> int:
    return _number(salt, _digest(name.lower().encode(), b":", password.encode()))


def make_verifier(name: str, password: str, salt: bytes) -> bytes:
    """What a server stores of a new account."""
    return _raw(pow(_GENERATOR, _private_key(name, password, salt), _PRIME))


class Login:
    """The client's side of one login; `random` only has to differ between logins, nothing here is secret."""

    def __init__(self, name: str, password: str, random: Random) -> None:
        self._name, self._password = name, password
        self._a = random.getrandbits(256) | 1
        self.public = _raw(pow(_GENERATOR, self._a, _PRIME))

    def prove(self, salt: bytes, server_public: bytes) -> bytes:
        """The proof for the server's challenge; raises `ValueError` for one that breaks the protocol."""
        b_public = int.from_bytes(server_public, "big")
        if len(server_public) > 256 or b_public % _PRIME == 0:
            raise ValueError("the server's public value is out of range")
        a_public = int.from_bytes(self.public, "big")
        k = _number(_padded(_PRIME), _padded(_GENERATOR))
        u = _number(_padded(a_public), _padded(b_public))
        x = _private_key(self._name, self._password, salt)
        secret = pow(b_public - k * pow(_GENERATOR, x, _PRIME), self._a + u * x, _PRIME)
        group = bytes(p ^ g for p, g in zip(_digest(_raw(_PRIME)), _digest(_raw(_GENERATOR)), strict=True))
        return _digest(
            group,
            _digest(self._name.encode()),
            salt,
            _raw(a_public),
            _raw(b_public),
            _digest(_raw(secret)),
        )
