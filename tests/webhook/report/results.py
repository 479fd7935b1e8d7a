"""Results of a report with any text, hostile ones among them."""

from __future__ import annotations

from hypothesis import strategies as st

from webhook.report.model import OUTCOMES, Result

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
RESULTS = st.builds(
    Result,
    object=st.builds("{}/{}/{}".format, TEXT, TEXT, TEXT),
    result=st.sampled_from(OUTCOMES),
    source=st.sampled_from(["policy", "plan"]),
    policy=TEXT,
    rule=TEXT,
    message=TEXT,
    file=TEXT,
    line=st.integers(0, 9),
    field=TEXT,
    severity=st.sampled_from(["critical", "high", "medium", "low", "info", ""]),
    api_version=TEXT,
    properties=st.dictionaries(TEXT, TEXT, max_size=2),
)
