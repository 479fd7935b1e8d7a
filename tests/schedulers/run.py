"""Schedulers as they are, beside Bayplan, on a real control plane: a table of scenarios and their ends.

`make schedulers KAI=DIR KUEUE=DIR`, or `python -m tests.schedulers.run [PART ...]`, with the checkouts of the
two repositories in the environment variables KAI and KUEUE; what they build is built there with Go, once.
Of the parts `kai`, `kueue`, `observed`, `fence`, `mixed` and `kube-scheduler` all are run, or those that are
named; a part's name with `:WORD` runs the scenarios that have the word in their name. GANGS is the size of
the mixed run and of that beside kube-scheduler (200), SEED their random seed. The latter needs no checkout.
Kubelets and the operators of JobSet, PyTorchJob and LeaderWorkerSet are played. The exit status is 1 where a
row does not hold.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.schedulers import documents, mixed, on_kai, on_kai_groups, on_kueue
from tests.schedulers.kinds import kinds_held_against
from tests.schedulers.kube.comparison import compared
from tests.schedulers.programs import Source
from tests.schedulers.site import beside
from tests.schedulers.sources import held_against
from tests.schedulers.table import Row, Scenario, play

PARTS: dict[str, tuple[tuple[str, Sequence[Scenario], bool, tuple[str, ...]], ...]] = {
    "kai": (("kai", (*on_kai.SCENARIOS, *on_kai_groups.SCENARIOS, *documents.SCENARIOS), False, ()),),
    "kueue": (("kueue", on_kueue.SCENARIOS, False, ()),),
    "observed": (
        ("kai", on_kai.OBSERVED, True, ()),
        ("kueue", on_kueue.OBSERVED, True, ()),
    ),
    "fence": (("kueue", on_kueue.FENCED, False, ("--fence", "taint")),),
    "mixed": (("kai", (mixed.on_kai,), False, ()), ("kueue", (mixed.on_kueue,), False, ())),
}
"""By part the sites: the scheduler, the scenarios, whether Bayplan only observes, its other options."""
KUBE = "kube-scheduler"
"""The part that plays on no site: kube-scheduler alone, without Bayplan's webhook."""


def rows(part: str, word: str, home: Path) -> Iterator[Row]:
    """What a part showed, as soon as it is known."""
    if part == KUBE:
        yield from compared(word, home / f"{part}-{os.getpid()}")
        return
    for number, (system, scenarios, observed, options) in enumerate(PARTS[part]):
        path = os.environ.get(system.upper(), "")
        chosen = [scenario for scenario in scenarios if word in f"{system} {scenario.__doc__}"]
        if not path:
            print(f"{part}: no checkout of {system} in ${system.upper()}", file=sys.stderr, flush=True)
            continue
        if not chosen:
            continue
        source = Source(Path(path).absolute())
        if part == system and not word:
            yield held_against(system, source)
            if system == "kai":
                yield kinds_held_against(source)
        folder = home / f"{part}-{system}-{number}-{os.getpid()}"
        with beside(system, source, folder, observed=observed, options=options) as site:
            yield from play(site, chosen, f"{system} {source.version}")


def main(words: Sequence[str]) -> int:
    """Run and print; 1 where something does not hold, or nothing was run."""
    home = Path(os.environ.get("SCHEDULERS_HOME") or tempfile.mkdtemp(prefix="bayplan-schedulers-"))
    print(f"logs in {home}", file=sys.stderr, flush=True)
    kept = []
    for asked in words or (*PARTS, KUBE):
        part, _, word = asked.partition(":")
        for row in rows(part, word, home):
            print(row, flush=True)
            kept.append(row)
    return 0 if kept and all(row.holds for row in kept) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
