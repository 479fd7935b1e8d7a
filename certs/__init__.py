"""The webhook's certificates: `authority` issues them (pure), `rotation` keeps them on disk, `reload` makes a
running server use new ones. A *leaf* is the serving certificate, as opposed to the CA.

Begin with `authority`.
"""
