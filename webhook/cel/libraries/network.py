"""."""

OVERLOADS: tuple = ()
