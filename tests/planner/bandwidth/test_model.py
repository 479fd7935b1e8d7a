"""Tests the bandwidth of placements against worked examples of the cost model."""

import pytest

from planner.bandwidth.model import GB, Links, all_reduce

NVL72 = Links(inside=900, across=50)


def milliseconds(estimate):
    return estimate.seconds * 1000


@pytest.mark.parametrize(
    ("domains", "links", "expected"),
    [
        ([72], NVL72, 2.19),
        ([36, 36], NVL72, 2.72),
        ([4] * 18, NVL72, 11.1),
        ([8] * 8, Links(inside=450, across=50), 8.26),
        ([8] * 8, Links(inside=450, across=50, oversubscription=7), 34.5),
    ],
)
def test_the_worked_figures_come_out(domains, links, expected):
    """1 GB, nominal rates; the latency terms add under a millisecond to the figures without them."""
    took = milliseconds(all_reduce(domains, GB, links))
    assert expected * 0.99 <= took <= expected * 1.02 + 0.8


def test_one_domain_is_never_slower_than_two():
    """Splitting the same GPUs over two NVLink domains costs time."""
    assert all_reduce([72], GB, NVL72).seconds < all_reduce([36, 36], GB, NVL72).seconds


def test_one_gpu_has_nothing_to_reduce():
    """Its time and bandwidth are zero."""
    assert all_reduce([1]).seconds == 0


def test_every_estimate_names_its_model():
    """The name is part of the record."""
    assert "hierarchical" in all_reduce([8, 8]).model


@pytest.mark.parametrize("domains", [[], [0], [-1, 2]])
def test_invalid_numbers_of_gpus_are_refused(domains):
    """Zero GPUs, or fewer."""
    with pytest.raises(ValueError, match="at least one GPU"):
        all_reduce(domains)
