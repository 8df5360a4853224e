"""The Hugging Face hub: asked only if it can be reached, and never while others' files are read."""

import logging
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from urllib.parse import urlparse

from ...base.inert import is_inert

CONNECT_SECONDS = 3
FLAG = "HF_HUB_OFFLINE"


@contextmanager
def hub() -> Iterator[None]:
    """Inside, the hub is asked only if it can be reached, and without its own lines.

    Otherwise every missing file would cost half a minute of retries. While what somebody else wrote
    is read, only what is in the hub's cache counts.
    """
    from huggingface_hub import constants

    # The library of data sets has a copy of the flag.
    holders: list[Any] = [constants, sys.modules.get("datasets.config")]
    before = [(holder, getattr(holder, FLAG)) for holder in holders if holder is not None]
    offline = constants.HF_HUB_OFFLINE or is_inert() or not _reachable(constants.ENDPOINT)
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    for holder, was in before:
        setattr(holder, FLAG, was or offline)
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for holder, was in before:
            setattr(holder, FLAG, was)
        logger.setLevel(level)


@lru_cache(maxsize=4)
def _reachable(address: str) -> bool:
    host = urlparse(address).hostname or ""
    try:
        socket.create_connection((host, 443), timeout=CONNECT_SECONDS).close()
    except OSError:
        return False
    return True
