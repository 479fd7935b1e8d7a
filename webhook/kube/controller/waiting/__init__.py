"""Lets in waiting gangs, in the order of the queue.

`queue` (pure): the gangs that get a place in a round, and what the others wait for. Begin with `queue`.
"""
