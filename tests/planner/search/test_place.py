"""Which search serves which request."""

from planner.request.resolve import resolve
from planner.search.place import SEARCHES
from tests.builders import gang, pod_set, racks, shape


def test_each_request_is_served_by_the_first_row_that_serves_its_kinds():
    """One kind, several, and pods apart over a label that is no level."""
    several = (pod_set(2, shape(gpu=8), name="a"), pod_set(2, shape(gpu=4), name="b"))
    apart = pod_set(2, shape(gpu=1, apart=("no-level",)), name="c")
    served = [
        next(row.request for row in SEARCHES if row.serves(resolve(racks(2, 4), group).requests[0].kinds))
        for group in (gang(2, gpu=8), gang(*several), gang(apart))
    ]
    assert served == [
        "one kind of pods",
        "several kinds of pods",
        "pods apart, together or spread over labels that are no levels",
    ]
