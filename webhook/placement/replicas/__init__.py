"""What is said of several gangs of one object together. Pure.

- `joint`: gangs that start together or not at all
- `limit`: how many equal replicas the empty cluster has room for
- `own_domains`: how many equal gangs it has room for if each gets a domain of its own

Begin with `joint`.
"""
