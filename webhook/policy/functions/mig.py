"""CEL functions over MIG geometry, by the planner's tables: plain JSON in, plain JSON out.

`product` is a node's product label ("NVIDIA-H100-80GB-HBM3") or a board of the tables ("H100-80"). Profiles
are written as in resource names: "1g.10gb.me" for "1g.10gb+me" in NVIDIA's tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from planner.node.mig import BOARDS, Board, board_of, gpus_needed
from webhook.cel import Function

Json = Any


MOST_SEARCHED = 64
"""Maximum number of slices for which the fewest GPUs are computed exactly; for more the lower bound is
used.
"""


MOST_SIMILAR = 4
"""Maximum number of similar MIG profiles in a message about an unknown one."""


_SIZE = re.compile(r"(\d+)g\.(\d+)gb")


def profiles(product: Json) -> list[str]:
    """`mig.profiles(product)`: the MIG profiles of a GPU, smallest first; [] if the product is unknown."""
    board = _board(product)
    return [] if board is None else [_resource(name) for name in sorted(board.profiles, key=_size)]


def boards(profile: Json) -> list[str]:
    """`mig.boards(profile)`: the boards that have this MIG profile; [] if none has it."""
    return [name for name, board in BOARDS.items() if _table(profile) in board.profiles]


def similar(profile: Json) -> list[str]:
    """`mig.similar(profile)`: the four existing profiles that are most similar in compute slices, then
    memory.
    """
    g, memory, _ = _size(str(profile))
    names = {name for board in BOARDS.values() for name in board.profiles if not name.endswith("+me")}
    nearest = sorted(names, key=lambda name: (abs(_size(name)[0] - g), abs(_size(name)[1] - memory), name))
    return sorted(nearest[:MOST_SIMILAR], key=_size)


def needed(product: Json, profiles: Json) -> int:
    """`mig.gpusNeeded(product, {profile: n})`: the minimum number of GPUs that can hold these MIG slices; -1
    if the product is unknown or cannot hold them.
    """
    board = _board(product)
    if board is None or not isinstance(profiles, Mapping):
        return -1
    slices = {_table(name): count for name, count in profiles.items() if isinstance(count, int) and count > 0}
    if any(name not in board.profiles for name in slices):
        return -1
    if sum(slices.values()) > MOST_SEARCHED:
        return _at_least(board, slices)
    gpus = gpus_needed(board, slices)
    return -1 if gpus is None else gpus


def _at_least(board: Board, slices: Mapping[str, int]) -> int:
    """Returns a lower bound of the GPUs: by compute slices, by memory slices, and by each profile's own
    limit.
    """
    compute = sum(board.profiles[name].compute * count for name, count in slices.items())
    memory = sum(board.profiles[name].memory * count for name, count in slices.items())
    bounds = [-(-count // board.profiles[name].max_per_gpu) for name, count in slices.items()]
    return max(-(-compute // board.compute), -(-memory // board.memory), *bounds)


def _board(product: Json) -> Board | None:
    name = str(product)
    return BOARDS.get(name) or board_of(name)


def _table(profile: Json) -> str:
    return str(profile).replace(".me", "+me")


def _resource(profile: str) -> str:
    return profile.replace("+me", ".me")


def _size(profile: str) -> tuple[int, int, str]:
    match = _SIZE.search(profile)
    return (int(match[1]), int(match[2]), profile) if match else (0, 0, profile)


MIG_FUNCTIONS: Mapping[str, Function] = {
    "mig.profiles": Function(profiles, 1, 1),
    "mig.boards": Function(boards, 1, 1),
    "mig.similar": Function(similar, 1, 1),
    "mig.gpusNeeded": Function(needed, 2, 2),
}
"""Name in CEL → the function, the fewest and the most arguments."""
