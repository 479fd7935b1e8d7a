"""Seats for the objects of a gang that consists of several objects. Pure.

The objects arrive one at a time; which ones form a gang is read in `webhook.workloads.shared_gangs`.

- `gang_seat`: gives seats to an object that arrives for a gang which holds a place already
- `gang_members`: combines the stored objects of one gang, for the controller
- `seats`: the seats of a gang's reservation, which of them fit pods, and the gang with additional seats

Begin with `gang_seat`.
"""
