"""Stand-ins for values: a result that is computed without reading a stand-in is valid for every value.

Pod templates of one object often differ only in their image, which hardly any policy reads. With a stand-in
for the image, a policy is run once for all of them. It may copy the stand-in, but reading it raises
`StandInRead`, in an expression as well as in any function that it calls. So no code needs to declare which
values it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


class StandInRead(BaseException):
    """A stand-in was read. Not an `Exception`, so that no handler treats it as an error of the object."""


def _looked(*_: object) -> NoReturn:
    raise StandInRead


class StandIn:
    """A value that only `type` and `is` can recognise; every other operation raises `StandInRead`."""

    __slots__ = ()

    __class__ = property(_looked)
    """Read by `isinstance`."""


_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge", "hash", "bool")
_CONTAINER = ("len", "iter", "contains", "getitem", "reversed")
_CONVERTED = ("str", "repr", "format", "bytes", "int", "float", "index", "complex", "fspath", "reduce_ex")
_COMBINED = ("add", "radd", "mul", "rmul", "mod", "rmod", "sub", "rsub", "or", "ror", "and", "rand")

for _name in (*_COMPARED, *_CONTAINER, *_CONVERTED, *_COMBINED, "getattr", "call"):
    setattr(StandIn, f"__{_name}__", _looked)


def false_unless_stand_in(value: object) -> bool:
    """Returns False: values of different types are not equal. Raises StandInRead if the value is a stand-in.

    For comparisons of types with `type`, which do not raise it.
    """
    if type(value) is StandIn:
        raise StandInRead
    return False


def derived(value: Any, derive: Callable[[Any], Any]) -> Any:
    """Returns `derive(value)`; of a stand-in, the stand-in itself: whoever reads the result, reads the value.

    For functions that compute more from a value than their caller may read.
    """
    return value if type(value) is StandIn else derive(value)
