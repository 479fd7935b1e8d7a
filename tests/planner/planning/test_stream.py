"""A realistic stream of gangs is planned within the work budget of the search."""

from tests.bench.stream_planner import streams


def test_a_realistic_stream_is_planned_within_the_budget():
    """Sixty requests each on a SuperPOD and on a fabric with racks of many sizes, both half in use."""
    for stream in streams(7):
        if "superpod" in stream.name or "discovered" in stream.name:
            for number in range(60):
                stream.step(number)
            assert stream.ended == []
            assert stream.seen["admitted"] > 30
