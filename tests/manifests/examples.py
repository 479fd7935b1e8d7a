"""The examples with what is expected of them; `python -m tests.manifests.examples` writes their table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

EXAMPLES = Path(__file__).parents[2] / "manifests" / "examples"
README = EXAMPLES / "README.md"

TEXT = """\
# Examples

Each manifest, planned alone on the clusters named, ends as the table says; the tests hold it to that.

```
bayplan plan -c manifests/examples/clusters/{clusters} -f manifests/examples/{manifest}
```

| manifest | clusters | shows | ends |
|---|---|---|---|
{rows}

Clusters, as `kubectl get -o yaml` prints them (written by `python tests/fabrics/generate.py`):

- `superpod-32.yaml`: a DGX H100 SuperPOD unit, four racks of eight nodes; two racks are half used.
- `nvl72-8racks.yaml`: eight GB200 NVL72 racks with 18, 18, 17, 16, 15, 14, 11 and 10 visible trays; nine
  trays of rack 1 lack a rail. `nvl72-in-use.yaml` adds pods, so that no rack has more than 16 free trays.
- `mig-pool.yaml`: A100-40 and H100-80 boards, split in strategy mixed and single, and one not yet split.
- `two-zones.yaml`: two zones of two racks; one zone is half used.
"""


@dataclass(frozen=True, slots=True)
class Example:
    """One manifest on some clusters. `decisions` are the plan's, gang by gang, None where only a policy
    speaks, and `places` the domains of admitted ones; `refused`: admission says no; `says`: what its
    message, or a warning, must name."""

    manifest: str
    clusters: tuple[str, ...]
    shows: str
    decisions: tuple[str, ...] | None = None
    places: tuple[str, ...] = ()
    refused: bool = False
    says: tuple[str, ...] = ()

    @property
    def paths(self) -> list[Path]:
        """The cluster files."""
        return [EXAMPLES / "clusters" / name for name in self.clusters]


def examples() -> list[Example]:
    """Every row of expected.yaml."""
    rows = yaml.safe_load((Path(__file__).parent / "expected.yaml").read_text())
    return [
        Example(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})
        for row in rows
    ]


def text() -> str:
    """The README's text."""
    rows = [
        f"| `{example.manifest}` | {_code(example.clusters)} | {example.shows} | {_end(example)} |"
        for example in examples()
    ]
    first = examples()[0]
    return TEXT.format(rows="\n".join(rows), clusters=first.clusters[0], manifest=first.manifest)


def _code(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _end(example: Example) -> str:
    if example.refused:
        return "refused" if example.decisions else "refused by a policy"
    decided = ", ".join(sorted(set(example.decisions or ())))
    return f"{decided}: {_code(tuple(dict.fromkeys(example.places)))}" if example.places else decided


if __name__ == "__main__":
    README.write_text(text())
