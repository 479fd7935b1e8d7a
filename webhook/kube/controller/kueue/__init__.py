"""The controller's rules for gangs that Kueue admits or places.

`rounds` (pure): to which gang each place that Kueue has assigned belongs, and what to do; `adoption` (pure):
what a gang holds on the assigned nodes; `words`: what Kueue reports about a workload. A *place* here is the
topology assignment of a Workload, a *seat* room for one pod on one node. Begin with `rounds`.
"""
