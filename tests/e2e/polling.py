"""A part of a cluster that is played: it looks at objects again and again, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from tests.e2e.api import Api, ApiError

log = logging.getLogger(__name__)


class Polling(ABC):
    """Looks at a cluster several times a second while the `with` block runs."""

    def __init__(self, api: Api, name: str, pause: float) -> None:
        """`pause` is the time between two looks, in seconds."""
        self._api, self._pause = api, pause
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def look(self) -> None:
        """Looks once. An error of the API server ends only this look."""

    def __enter__(self) -> Self:
        """Starts."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._pause):
            try:
                self.look()
            except (ApiError, OSError) as error:  # a stopped API server, an object that went: look again
                log.debug("%s: %s", self._thread.name, error)
