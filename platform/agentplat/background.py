"""Work that goes on in the background of a process, turn by turn, until the process ends."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod


class Background(ABC):
    """A thread that takes one turn after the other. Whoever makes one says what a turn is."""

    def __init__(self, name: str) -> None:
        """name: what the thread is called."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin with the first turn."""
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """End after the turn under way, and whether it ended within so many seconds."""
        self._stopping.set()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._stopping.wait(self._turn())

    @abstractmethod
    def _turn(self) -> float:
        """Do what is to be done now; the seconds until the next turn. Raises nothing."""
