"""The webhook's certificates: `authority` issues them (pure), `rotation` stores, `reload` serves them.

Begin with `authority`.
"""
