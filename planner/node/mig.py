"""MIG geometry: which profiles a GPU model (board) has, and which sets of MIG instances fit on one GPU.

Source: NVIDIA's MIG user guide, the tables of supported profiles. A profile name means different things on
different boards, so profiles belong to a board, which the node's product label determines. A profile with
`+me` includes the media extensions of a GPU, so a GPU has at most one instance of such profiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from planner.devices.allocation.partitions import minimal_remainders


@dataclass(frozen=True, slots=True)
class Profile:
    """A MIG profile: the compute and memory slices of an instance, how many instances a GPU can have, and the
    memory slices at which an instance can start."""

    name: str
    compute: int
    memory: int
    max_per_gpu: int
    starts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Board:
    """A GPU model: the number of its compute and memory slices, and its profiles by name."""

    name: str
    compute: int
    memory: int
    profiles: Mapping[str, Profile]


_SHAPES = (  # of the profiles in each row of `_SEVEN`: compute and memory slices, maximum per GPU, starts
    (1, 1, 7, (0, 1, 2, 3, 4, 5, 6)),
    (1, 2, 4, (0, 2, 4, 6)),
    (2, 2, 3, (0, 2, 4)),
    (3, 4, 2, (0, 4)),
    (4, 4, 1, (0,)),
    (7, 8, 1, (0,)),
)


_SEVEN = {
    "A100-40": "1g.5gb 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb",
    "A100-80": "1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
    "H100-80": "1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
    "H100-94": "1g.12gb 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb",
    "H100-96": "1g.12gb 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb",
    "GH200-96": "1g.12gb 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb",
    "H200-141": "1g.18gb 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb",
    "GH200-144": "1g.18gb 1g.36gb 2g.36gb 3g.72gb 4g.72gb 7g.144gb",
    "B200": "1g.23gb 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb",
    "GB200": "1g.23gb 1g.47gb 2g.47gb 3g.93gb 4g.93gb 7g.186gb",
    "B300": "1g.34gb 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb",
    "GB300": "1g.35gb 1g.70gb 2g.70gb 3g.139gb 4g.139gb 7g.278gb",
}
"""The profiles of boards with seven compute slices, in the order of `_SHAPES`."""


_FOUR = {
    "A30": (("1g.6gb", 1, 4, (0, 1, 2, 3)), ("2g.12gb", 2, 2, (0, 2)), ("4g.24gb", 4, 1, (0,))),
    "RTX-PRO-6000": (("1g.24gb", 1, 4, (0, 1, 2, 3)), ("2g.48gb", 2, 2, (0, 2)), ("4g.96gb", 4, 1, (0,))),
}
"""The profiles of boards with four compute slices: name, slices of both kinds, maximum per GPU, starts."""


def _seven(name: str, names: str) -> Board:
    profiles = [
        Profile(p, compute, memory, max_per_gpu, starts)
        for p, (compute, memory, max_per_gpu, starts) in zip(names.split(), _SHAPES, strict=True)
    ]
    media = Profile(profiles[0].name + "+me", 1, 1, 1, profiles[0].starts)
    return Board(name, 7, 8, {p.name: p for p in (*profiles, media)})


def _four(name: str, rows: tuple[tuple[str, int, int, tuple[int, ...]], ...]) -> Board:
    profiles = [Profile(p, slices, slices, max_per_gpu, starts) for p, slices, max_per_gpu, starts in rows]
    media = [Profile(p.name + "+me", p.compute, p.memory, 1, p.starts) for p in profiles if name == "A30"]
    return Board(name, 4, 4, {p.name: p for p in (*profiles, *media)})


BOARDS: Mapping[str, Board] = {name: _seven(name, names) for name, names in _SEVEN.items()} | {
    name: _four(name, rows) for name, rows in _FOUR.items()
}
"""All known boards by name."""


_PRODUCTS = (  # words in the product label, and the board; the first matching row counts (GB300 before B300)
    (("GB300",), "GB300"),
    (("GB200",), "GB200"),
    (("GH200", "144G"), "GH200-144"),
    (("GH200",), "GH200-96"),
    (("B300",), "B300"),
    (("B200",), "B200"),
    (("H200",), "H200-141"),
    (("H100", "NVL"), "H100-94"),
    (("H100", "94GB"), "H100-94"),
    (("H100", "96GB"), "H100-96"),
    (("H100",), "H100-80"),
    (("A100", "80GB"), "A100-80"),
    (("A100", "40GB"), "A100-40"),
    (("A30",), "A30"),
    (("RTX-PRO-6000",), "RTX-PRO-6000"),
)


def board_of(product: str) -> Board | None:
    """Returns the board that a `nvidia.com/gpu.product` label names, None if it is unknown. The suffixes
    `-MIG-…` and `-SHARED` are ignored.
    """
    plain = product.upper().split("-MIG-")[0].removesuffix("-SHARED")
    words = plain.replace("_", "-")
    for wanted, name in _PRODUCTS:
        if all(part in words for part in wanted) and not (name == "A30" and "A300" in words):
            return BOARDS[name]
    return None


def profiles_of(product: str) -> tuple[str, ...]:
    """Returns the names of the profiles of a product's board, smallest first; () for an unknown product."""
    board = board_of(product)
    if board is None:
        return ()
    return tuple(
        sorted(board.profiles, key=lambda p: (board.profiles[p].compute, board.profiles[p].memory, p))
    )


def fits(board: Board, wanted: Mapping[str, int]) -> bool:
    """Reports whether these instances fit on one empty GPU of the board. `wanted`: their number by profile.

    Their memory slices must not overlap, and each profile has a maximum number of instances. Raises
    `KeyError` for a profile that the board does not have.
    """
    counts = {name: count for name, count in wanted.items() if count > 0}
    slices = [board.profiles[name] for name in counts]
    if any(count > board.profiles[name].max_per_gpu for name, count in counts.items()):
        return False
    if sum(count for name, count in counts.items() if name.endswith("+me")) > 1:
        return False
    if sum(p.compute * counts[p.name] for p in slices) > board.compute:
        return False
    order = sorted((p for p in slices for _ in range(counts[p.name])), key=lambda p: (-p.memory, p.name))
    return _fits_slots(tuple((p.memory, p.starts) for p in order), 0)


@lru_cache(maxsize=65_536)  # an entry for each set of instances and taken slices of a GPU
def _fits_slots(slices: tuple[tuple[int, tuple[int, ...]], ...], taken: int) -> bool:
    """Reports whether the instances fit besides the memory slices that are `taken`, a bit mask.

    `slices`: for each instance, its number of memory slices and the slices at which it can start.
    """
    if not slices:
        return True
    (memory, starts), rest = slices[0], slices[1:]
    masks = (((1 << memory) - 1) << start for start in starts)
    return any(not taken & mask and _fits_slots(rest, taken | mask) for mask in masks)


def gpus_needed(board: Board, wanted: Mapping[str, int]) -> int | None:
    """Returns the fewest GPUs for these instances (by profile), None if the board lacks one of the profiles.

    Exact: a breadth-first search over the numbers of instances that remain, in which each step adds a GPU
    with one of its maximal sets of instances.
    """
    counts = tuple(sorted((name, count) for name, count in wanted.items() if count > 0))
    if any(name not in board.profiles for name, _ in counts):
        return None
    if len(counts) == 1:
        name, count = counts[0]
        return -(-count // board.profiles[name].max_per_gpu)
    names = tuple(name for name, _ in counts)
    full = _largest_sets(board.name, names)
    need = tuple(count for _, count in counts)
    frontier, used = {need}, 0
    while all(any(left) for left in frontier):
        frontier = {
            tuple(max(0, n - s) for n, s in zip(left, chosen, strict=True))
            for left in frontier
            for chosen in full
        }
        frontier = minimal_remainders(frontier)
        used += 1
    return used


def geometry(board: Board, wanted: Mapping[str, int]) -> tuple[Mapping[str, int], ...]:
    """Returns how to divide the fewest GPUs so that they have these instances (`wanted`: their number by
    profile): for each GPU, the number of its instances by profile.

    Each GPU gets a maximal set of these profiles, so the result may have more instances than wanted. Raises
    `KeyError` for a profile that the board does not have.
    """
    left = {name: count for name, count in sorted(wanted.items()) if count > 0}
    unknown = next((name for name in left if name not in board.profiles), None)
    if unknown is not None:
        raise KeyError(unknown)
    names, result = tuple(left), []
    while any(left.values()):
        fewest = gpus_needed(board, left) or 0
        for counts in _largest_sets(board.name, names):
            rest = {name: max(0, left[name] - count) for name, count in zip(names, counts, strict=True)}
            if (gpus_needed(board, rest) or 0) == fewest - 1:
                result.append({name: n for name, n in zip(names, counts, strict=True) if n})
                left = rest
                break
    return tuple(result)


@lru_cache(maxsize=1024)  # an entry for each board and set of profiles
def _largest_sets(board_name: str, names: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
    """Returns the sets of instances of these profiles on one GPU to which no instance can be added.

    A set is the number of instances of each profile, in the order of `names`.
    """
    board = BOARDS[board_name]
    sets: set[tuple[int, ...]] = set()

    def extend(counts: tuple[int, ...]) -> None:
        larger = [
            (*counts[:i], counts[i] + 1, *counts[i + 1 :])
            for i in range(len(names))
            if fits(board, {n: c + (k == i) for k, (n, c) in enumerate(zip(names, counts, strict=True))})
        ]
        if not larger:
            sets.add(counts)
        for extended in larger:
            if extended not in seen:
                seen.add(extended)
                extend(extended)

    seen: set[tuple[int, ...]] = set()
    extend((0,) * len(names))
    return tuple(sorted(sets, reverse=True))
