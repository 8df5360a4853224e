"""Kills one worker process before its n-th change of a folder; see tests/killing.py.

The environment gives the number, the folder and a file that the victim creates, so that only one
worker dies.
"""

from __future__ import annotations

import os
import signal
import sys

moment = os.environ.get("KILL_A_WORKER")
if moment is not None and any("spawn_main" in word for word in sys.orig_argv):
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from killing import before_every_change

    number, folder, token = moment.split("|")
    left = [int(number)]

    def act() -> None:
        """Count down, and die at the end if no other worker has."""
        left[0] -= 1
        if left[0] == 0:
            try:
                os.close(os.open(token, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)

    before_every_change(folder, act)
