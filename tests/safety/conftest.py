"""A machine that may not connect to anything."""

from __future__ import annotations

import socket

import pytest


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The addresses that anything in this process looks up or connects to; all of them fail."""
    asked: list[object] = []

    def refuse(*arguments: object, **_: object) -> None:
        asked.append(arguments[1:] if isinstance(arguments[0], socket.socket) else arguments)
        raise OSError("no connections here")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("getaddrinfo", "gethostbyname", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    return asked
