"""The controller's rules for gangs that Kueue admits or places.

`rounds` (pure): which gang each of Kueue's places belongs to, and what to do; `adoption` (pure): what a gang
holds on the nodes that Kueue has assigned; `words`: what Kueue says of a workload. Begin with `rounds`.
"""
