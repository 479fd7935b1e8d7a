"""Stand-ins for values that nobody looks at, so that what is worked out around them holds whatever they are.

Pod templates of one object often differ in their image alone, which hardly any policy reads. With a stand-in
in its place a policy is run once for all of them: it may pass the stand-in on, but a look at it ends the run,
whoever looks: an expression, or a function deep in the planner. So nothing has to declare what it reads.
"""

from __future__ import annotations

from typing import NoReturn


class StandInRead(BaseException):
    """Somebody looked at a stand-in. No `Exception`, so that no handler takes it for an object's error."""


def _looked(*_: object) -> NoReturn:
    raise StandInRead


class StandIn:
    """It can be told by `type` and `is` alone; all else raises `StandInRead`."""

    __slots__ = ()

    __class__ = property(_looked)
    """What `isinstance` asks for."""


_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge", "hash", "bool")
_CONTAINER = ("len", "iter", "contains", "getitem", "reversed")
_CONVERTED = ("str", "repr", "format", "bytes", "int", "float", "index", "complex", "fspath", "reduce_ex")
_COMBINED = ("add", "radd", "mul", "rmul", "mod", "rmod", "sub", "rsub", "or", "ror", "and", "rand")

for _name in (*_COMPARED, *_CONTAINER, *_CONVERTED, *_COMBINED, "getattr", "call"):
    setattr(StandIn, f"__{_name}__", _looked)


def unlike(value: object) -> bool:
    """False, as the answer that two values of unlike types are not equal; raises where it is a stand-in.

    For comparisons that go by `type`, which a stand-in does not notice.
    """
    if type(value) is StandIn:
        raise StandInRead
    return False
