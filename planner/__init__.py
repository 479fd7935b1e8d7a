"""The planner: where a whole gang fits, told the same way to everyone who asks.

Pure: no I/O, clock or chance. Read in this order: `quantity`, `topology`, `node`, `podgroup`, `reservation`,
`snapshot`, `answer`, `placement`. The shell around it (`sqlite`) keeps the reservations.
"""
