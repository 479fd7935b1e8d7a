"""What holds for every test: its verdict is the code's, not the machine's nor the day's."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Two of Hypothesis' own checks compare time on the wall with a bound: the run of one example, and how long
# examples take to draw. A busy machine fails them. What an answer may cost is tested where it is promised.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same examples each time, so that a commit that passed passes again. `make explore` takes new ones.
settings.register_profile("steady", settings.get_profile("explore"), derandomize=True)
settings.load_profile("steady")
