"""What holds for every test: nobody fails because the machine is busy."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Both compare time on the wall with a bound: the run of one example, and how long examples take to draw. What
# an answer may cost is tested where it is promised, in CPU seconds.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
