"""The controller's rules for gangs that Kueue admits or places.

`adoption` (pure) says what a gang holds on the nodes that Kueue has assigned, `rounds` (pure) whose those
places are and what to do about them, `words` what Kueue says of a workload. Begin with `rounds`.
"""
