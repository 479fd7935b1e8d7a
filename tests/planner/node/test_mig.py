"""Tests MIG geometry: which slices fit on a GPU, by product."""

from itertools import combinations_with_replacement

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.node.mig import BOARDS, board_of, fits, gpus_needed, profiles_of


def _brute(board, names):
    """Returns whether the slices fit, by trying every start of each."""

    def seat(left, taken):
        if not left:
            return True
        profile = board.profiles[left[0]]
        spans = (set(range(start, start + profile.memory)) for start in profile.starts)
        return any(not span & taken and seat(left[1:], taken | span) for span in spans)

    media = sum(name.endswith("+me") for name in names)
    counts = all(names.count(name) <= board.profiles[name].max_per_gpu for name in names)
    return (
        media <= 1
        and counts
        and sum(board.profiles[n].compute for n in names) <= board.compute
        and seat(names, set())
    )


@pytest.mark.parametrize("name", ["A100-40", "H100-80", "A30"])
def test_slices_fit_exactly_where_slots_can_be_found(name):
    """Every multiset of up to four slices agrees with trying all start slots."""
    board = BOARDS[name]
    for size in range(1, 5):
        for names in combinations_with_replacement(sorted(board.profiles), size):
            wanted = {profile: names.count(profile) for profile in names}
            assert fits(board, wanted) == _brute(board, names), wanted


def test_seven_slice_sets_follow_the_sums():
    """Without `+me` a set fits exactly when compute is at most 7, memory at most 8, each count allowed."""
    board = BOARDS["H100-80"]
    plain = sorted(p for p in board.profiles if not p.endswith("+me"))
    for size in range(1, 8):
        for names in combinations_with_replacement(plain, size):
            chosen = [board.profiles[n] for n in names]
            sums = sum(p.compute for p in chosen) <= 7 and sum(p.memory for p in chosen) <= 8
            allowed = all(names.count(n) <= board.profiles[n].max_per_gpu for n in names)
            assert fits(board, {n: names.count(n) for n in names}) == (sums and allowed), names


def test_a_profile_means_what_its_board_says():
    """1g.10gb is at most 7 on an 80 GB board and 4 on an A100-40; 1g.35gb is 4 on H200 and 7 on GB300."""
    profiles = {b: BOARDS[b].profiles.get("1g.10gb") for b in ("H100-80", "A100-40", "H200-141")}
    assert profiles["H100-80"].max_per_gpu == 7
    assert profiles["A100-40"].max_per_gpu == 4
    assert profiles["H200-141"] is None
    assert (
        BOARDS["H200-141"].profiles["1g.35gb"].max_per_gpu,
        BOARDS["GB300"].profiles["1g.35gb"].max_per_gpu,
    ) == (4, 7)


@pytest.mark.parametrize(
    ("product", "board"),
    [
        ("NVIDIA-H100-80GB-HBM3", "H100-80"),
        ("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "H100-80"),
        ("NVIDIA-A100-SXM4-40GB", "A100-40"),
        ("NVIDIA-A100-SXM4-80GB-SHARED", "A100-80"),
        ("NVIDIA-GB200", "GB200"),
        ("NVIDIA-H100-NVL", "H100-94"),
        ("NVIDIA-GH200-480GB", "GH200-96"),
        ("NVIDIA-GH200-144G-HBM3e", "GH200-144"),
    ],
)
def test_the_board_is_known_from_the_product_label(product, board):
    """The label's MIG and sharing suffixes do not matter."""
    assert board_of(product) is BOARDS[board]


def test_an_unknown_product_has_no_profiles():
    """Profiles are not guessed."""
    assert board_of("Tesla-V100-SXM2-16GB") is None
    assert profiles_of("Tesla-V100-SXM2-16GB") == ()


@settings(max_examples=40)
@given(
    st.dictionaries(
        st.sampled_from(sorted(BOARDS["A30"].profiles)), st.integers(1, 3), min_size=1, max_size=3
    )
)
def test_as_few_gpus_are_needed_as_any_division_finds(wanted):
    """Agrees with a plain recursion over which slices share the first GPU."""
    board = BOARDS["A30"]

    def fewest(left):
        if not any(left.values()):
            return 0
        names = sorted(left)
        best = 99

        def choose(index, taken):
            nonlocal best
            if index == len(names):
                if any(taken.values()) and fits(board, taken):
                    rest = {n: left[n] - taken[n] for n in names}
                    best = min(best, 1 + fewest(rest))
                return
            for count in range(left[names[index]] + 1):
                choose(index + 1, {**taken, names[index]: count})

        if sum(board.profiles[n].compute * c for n, c in left.items()) > 12:
            return None
        choose(0, {})
        return best

    if sum(board.profiles[n].compute * c for n, c in wanted.items()) <= 8:
        assert gpus_needed(board, wanted) == fewest(wanted)


def test_a_profile_that_the_board_does_not_know_needs_no_number_of_gpus():
    """None says that no number would do."""
    assert gpus_needed(BOARDS["A30"], {"1g.10gb": 1}) is None
