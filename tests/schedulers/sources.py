"""The table of what each system reads (`planner.manifests.schedulers.scheduler_facts`), held against its
source.
"""

from __future__ import annotations

import re
import time

from planner.manifests.schedulers.scheduler_facts import FACTS_OF
from planner.model.schedulers import KAI, KUEUE
from tests.schedulers.programs import Source
from tests.schedulers.table import Row

NAMES = {"kai": KAI, "kueue": KUEUE}
PRODUCT = ("pkg", "apis", "cmd")
"""The folders in which a key counts as read; what is vendored or a test is not theirs."""


def held_against(system: str, source: Source) -> Row:
    """Each key stands in the product's code, and each file that is named for one is there."""
    begin = time.monotonic()
    texts = {
        str(path.relative_to(source.home)): path.read_text()
        for folder in PRODUCT
        for path in (source.home / folder).rglob("*.go")
        if not path.name.endswith("_test.go")
    }
    code = "\n".join(texts.values())
    facts = FACTS_OF[NAMES[system]]
    unread = [key for key in facts.reads if f'"{key}"' not in code]
    files = {file for where in facts.reads.values() for file in re.findall(r"[\w/-]+\.go", where)}
    gone = [file for file in sorted(files) if not any(path.endswith(file) for path in texts)]
    end = f"{len(facts.reads)} keys in {len(files)} files; unread: {unread or 0}; not there: {gone or 0}"
    name = f"What {system} reads, and where"
    return Row(name, f"{system} {source.version}", time.monotonic() - begin, end, not unread and not gone)
