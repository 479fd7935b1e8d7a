"""Which interpreter `make bench` measures with, and how fast it is: `python tests/bench/interpreter.py`.

The same code takes a tenth to a fifth less CPU under an interpreter that was built with profile-guided
optimisation, so figures of two machines are compared by this line first.
"""

from __future__ import annotations

import platform
import sys
import time

ROUNDS, CALLS = 7, 200_000


class Point:
    """Something with a method."""

    __slots__ = ("x",)

    def __init__(self, x: int) -> None:
        self.x = x

    def moved(self, by: int) -> int:
        """Its place after a step."""
        return self.x + by


def work() -> int:
    """Objects made, methods called, entries of a dict replaced."""
    total, places = 0, {}
    for number in range(CALLS):
        places[number % 1000] = Point(number)
        total += places[number % 1000].moved(1)
    return total


def seconds() -> float:
    """CPU seconds of the work, the least of several rounds."""

    def spent() -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    return min(spent() for _ in range(ROUNDS))


def main() -> None:
    """Print the line."""
    python = f"Python {platform.python_version()} of {sys.base_prefix}"
    print(f"{python}: {CALLS:,} objects and calls in {seconds() * 1000:.0f} ms of CPU")


if __name__ == "__main__":
    main()
