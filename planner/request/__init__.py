"""A PodGroup made definite in one cluster: topology, levels, claims, and what other pods mean for it.

Every contradiction is raised here as a `Refusal`, which says what would be valid, before any search.
Begin with `problem`: it is what the search solves.
"""
