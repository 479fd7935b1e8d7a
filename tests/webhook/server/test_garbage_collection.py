"""The collector of cycles in `bayplan serve`."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from webhook.server import garbage_collection


@contextmanager
def young_alone() -> Iterator[None]:
    """As it is while `bayplan serve` runs."""
    before = list(gc.callbacks)
    garbage_collection.freeze_survivors()
    try:
        yield
    finally:
        gc.callbacks[:] = before
        gc.unfreeze()


def test_what_outlives_a_full_collection_is_not_looked_at_again():
    """Thousands of objects are remembered, and the next collection has only its own to look at."""
    with young_alone():
        frozen = gc.get_freeze_count()
        remembered = [[place] for place in range(5_000)]
        gc.collect()
        assert gc.get_freeze_count() >= frozen + len(remembered)
        assert len(gc.get_objects(generation=2)) < 500


def test_cycles_that_end_before_it_are_freed():
    """Only objects that are alive at that time are frozen."""
    with young_alone():
        frozen = gc.get_freeze_count()
        for _ in range(5_000):
            cycle: list[object] = []
            cycle.append(cycle)
        del cycle
        gc.collect()
        assert gc.get_freeze_count() < frozen + 2_500
