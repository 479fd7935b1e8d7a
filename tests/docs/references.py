"""The pages that are generated: `python -m tests.docs.references` writes all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.docs import (
    generate_cel,
    generate_cli,
    generate_decisions,
    generate_keys,
    generate_metrics,
    generate_parameters,
    generate_policies,
    generate_reasons,
)

REFERENCES: Mapping[Path, Callable[[], str]] = {
    generator.PAGE: generator.page
    for generator in (
        generate_cel,
        generate_cli,
        generate_decisions,
        generate_keys,
        generate_metrics,
        generate_parameters,
        generate_policies,
        generate_reasons,
    )
}

if __name__ == "__main__":
    for file, page in REFERENCES.items():
        file.write_text(page())
