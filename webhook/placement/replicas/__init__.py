"""What is said of several gangs of one object together. Pure.

- `joint`: gangs that start together or not at all
- `limit`: how many equal replicas the empty cluster has room for

Begin with `joint`.
"""
