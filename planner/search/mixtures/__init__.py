"""Gangs of several kinds of pods: every mixture is tried, and where these are too many, other ways.

Begin with `several`.
"""
