"""Every format from the same list of results, each checked as its reader would read it."""

import io
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import gang, racks
from tests.webhook.report.results import RESULTS, TEXT
from webhook.report.fabric_map import fabric_maps
from webhook.report.formats import FORMATS
from webhook.report.model import MUTATION, OUTCOMES, TOGETHER, Report, Result
from webhook.report.views import ObjectView, racks_of

REFUSED = Result(
    object="default/Job/train",
    result="fail",
    source="plan",
    policy="plan",
    rule="TooLargeForLevel",
    message="76 GPUs asked for in one rack; the largest has 72. Would work: 18 pods, or required zone.",
    file="jobs/train.yaml",
    line=7,
    field="metadata.annotations.kai.scheduler/topology-required-placement",
    severity="high",
    api_version="batch/v1",
    properties={"level": "rack"},
)
PASSED = Result(
    "default/Job/train",
    "pass",
    "policy",
    "guaranteed-qos",
    "requests",
    file="jobs/train.yaml",
    api_version="batch/v1",
)
WARNED = Result(
    "default/Pod/shell", "warn", "policy", "mig", "profile", "1g.5gb is larger than it needs", "a.yaml", 2
)
FAILED = Result("kube/Pod/x", "error", "policy", "mig", "profile", "no such key: limits")
SKIPPED = Result("kube/Pod/x", "skip", "policy", "topology")
REPORT = Report(
    (REFUSED, PASSED, WARNED, FAILED, SKIPPED), "git:4f2a9c1", datetime(2026, 3, 1, 12, 0, 0, 5000, UTC)
)


def written(format_name, report=REPORT):
    """What the format writes for a report."""
    out = io.StringIO()
    FORMATS[format_name](report, out)
    return out.getvalue()


@pytest.mark.parametrize("name", FORMATS)
def test_an_empty_report_is_a_whole_document(name):
    """Nothing to report is no error in any format."""
    assert written(name, Report(())).endswith("\n")


@pytest.mark.parametrize("name", FORMATS)
def test_a_report_without_a_time_is_the_same_every_time(name):
    """The clock is not looked at, so a pipeline can compare two reports."""
    assert written(name, replace(REPORT, generated=None)) == written(name, replace(REPORT, generated=None))


def test_the_summary_counts_every_outcome():
    """All five are named, those that did not happen too."""
    assert REPORT.summary == {"pass": 1, "fail": 1, "warn": 1, "error": 1, "skip": 1}
    assert list(Report(()).summary) == list(OUTCOMES)


def test_the_summary_by_policy_counts_each_ones_outcomes():
    """The worst policies first; every result counts once; people see it in the formats for them."""
    by_policy = REPORT.by_policy
    assert sum(sum(counts.values()) for counts in by_policy.values()) == len(REPORT.results)
    errors = [counts["error"] for counts in by_policy.values()]
    assert errors == sorted(errors, reverse=True)
    assert json.loads(written("json"))["policies"] == by_policy
    for name in ("table", "markdown", "html"):
        heads = [line for line in written(name).lower().splitlines() if "policy" in line and "skip" in line]
        assert len(heads) == 1, name


def test_json_holds_every_field():
    """A program gets everything that a person does."""
    document = json.loads(written("json"))
    assert document["summary"]["fail"] == 1
    assert document["revision"] == "git:4f2a9c1"
    first = document["results"][0]
    assert (first["line"], first["field"]) == (7, REFUSED.field)
    assert set(first) >= {"object", "file", "source", "policy", "rule", "result", "severity", "message"}


def test_the_table_shows_objects_with_the_worst_first_and_cuts_nothing():
    """Each object with its findings under it; in a pipe every word is there, without colour."""
    text = written("table")
    lines = text.splitlines()
    assert [line for line in lines if line and line.count("/") == 2 and not line.startswith(" ")] == [
        "kube/Pod/x",
        "default/Job/train",
        "default/Pod/shell",
    ]
    of_train = lines[lines.index("default/Job/train") + 1 : lines.index("default/Pod/shell")]
    assert of_train[0] == "  fail  plan/TooLargeForLevel  jobs/train.yaml:7"
    assert of_train[1].strip() == REFUSED.field
    assert REFUSED.message in unfolded(text)
    assert "\x1b" not in text
    assert lines[-1] == "1 error, 1 fail, 1 warn, 1 pass, 1 skip (policies git:4f2a9c1)"


def unfolded(text):
    """The text without its folds."""
    return " ".join(text.split())


def test_lines_fit_80_columns_where_no_terminal_tells():
    """Of findings that hold no longer word: a path is copied, and stays whole."""
    finding = replace(REFUSED, message="of 32 nodes 31 have no such device " * 8, field="", file="a.yaml")
    lines = written("table", Report((finding,))).splitlines()
    assert max(map(len, lines)) <= 80
    assert unfolded(finding.message) in unfolded("\n".join(lines))


def test_what_only_passes_is_counted_and_shown_where_asked_for():
    """A place is told all the same: it is what the plan is for."""
    place = replace(PASSED, source="plan", policy="plan", rule="Placed", message="all in rack-1")
    report = Report((place, PASSED, replace(PASSED, object="default/Job/quiet")))
    short = written("table", report)
    assert "default/Job/quiet" not in short
    assert "2 policies have no finding; --all shows them" in short
    assert "all in rack-1" not in short, "of an object without a finding or a change nothing is told"
    shown = written("table", replace(report, every=True))
    assert "default/Job/quiet" in shown
    assert "all in rack-1" in shown
    changed = replace(PASSED, rule=MUTATION, policy="node-affinity")
    table = written("table", Report((place, changed)))
    assert "all in rack-1" in table
    assert "would be changed by node-affinity" in table


def test_the_table_is_coloured_on_a_terminal(monkeypatch):
    """Colour is for people who look at it."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    out = Terminal()
    FORMATS["table"](REPORT, out)
    assert "\x1b[31m" in out.getvalue()


# What the CRD reports.openreports.io demands: field, type, and whether it must be there.
RESULT_FIELDS = {
    "source": str, "policy": str, "rule": str, "category": str, "severity": str, "timestamp": dict,
    "result": str, "scored": bool, "resources": list, "message": str, "properties": dict,
}  # fmt: skip


def test_openreports_is_valid_against_the_custom_resource():
    """Every field is one of the CRD's, of its type, and enums hold."""
    report = yaml.safe_load(written("yaml"))
    assert (report["apiVersion"], report["kind"]) == ("openreports.io/v1alpha1", "Report")
    assert set(report) <= {"apiVersion", "kind", "metadata", "source", "summary", "results"}
    assert set(report["summary"]) == {"pass", "fail", "warn", "error", "skip"}
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", report["metadata"]["name"])
    for result in report["results"]:
        assert result["policy"]
        assert all(isinstance(value, RESULT_FIELDS[key]) for key, value in result.items())
        assert result["result"] in OUTCOMES
        assert result.get("severity", "info") in {"critical", "high", "medium", "low", "info"}
        assert set(result["timestamp"]) == {"seconds", "nanos"}
        assert all(isinstance(value, str) for value in result.get("properties", {}).values())
        for resource in result["resources"]:
            assert set(resource) <= {"apiVersion", "kind", "namespace", "name"}


def test_openreports_names_the_object_and_the_place():
    """The resource is a reference, file, line and field are properties."""
    first = yaml.safe_load(written("yaml"))["results"][0]
    assert first["resources"] == [
        {"apiVersion": "batch/v1", "kind": "Job", "namespace": "default", "name": "train"}
    ]
    assert first["properties"] == {
        "file": "jobs/train.yaml", "line": "7", "field": REFUSED.field, "level": "rack"
    }  # fmt: skip
    assert first["timestamp"] == {"seconds": 1772366400, "nanos": 5_000_000}


def test_openreports_stands_in_the_namespace_that_its_objects_share():
    """A report on one namespace belongs there; one on several leaves it to whoever applies it."""
    assert yaml.safe_load(written("yaml", Report((REFUSED, PASSED))))["metadata"]["namespace"] == "default"
    assert "namespace" not in yaml.safe_load(written("yaml"))["metadata"]


def test_junit_counts_what_it_holds():
    """Each object is a suite whose counts are those of its cases, and the whole adds up."""
    root = ElementTree.fromstring(written("junit"))
    for suite in root:
        cases = suite.findall("testcase")
        assert int(suite.get("tests")) == len(cases)
        assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
        assert int(suite.get("errors")) == len(suite.findall("testcase/error"))
        assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped"))
        assert suite.get("timestamp") == "2026-03-01T12:00:00"
    assert [suite.get("name") for suite in root] == ["default/Job/train", "default/Pod/shell", "kube/Pod/x"]
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("5", "1", "1")


def test_junit_tells_where_and_why():
    """A failure has the message as its headline and the place in its text."""
    failure = ElementTree.fromstring(written("junit")).find(".//failure")
    assert failure.get("message") == REFUSED.message
    assert failure.text.splitlines()[1:] == ["jobs/train.yaml:7", REFUSED.field]


def test_sarif_points_at_the_line():
    """The region is the offending field's line, the logical location the object and field."""
    [run] = json.loads(written("sarif"))["runs"]
    [location] = run["results"][0]["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "jobs/train.yaml"},
        "region": {"startLine": 7},
    }
    assert location["logicalLocations"][0]["fullyQualifiedName"] == f"default/Job/train.{REFUSED.field}"


def test_sarif_lists_every_rule_but_only_findings():
    """A pass is no alert; each finding points to its rule by name and index."""
    log = json.loads(written("sarif"))
    [run] = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert log["version"] == "2.1.0"
    assert rules == ["plan/TooLargeForLevel", "guaranteed-qos/requests", "mig/profile", "topology"]
    assert [result["level"] for result in run["results"]] == ["error", "warning", "error"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["message"]["text"]


@pytest.mark.parametrize(
    ("file", "uri"),
    [("a b.yaml", "a%20b.yaml"), ("/x/ü.yaml", "file:///x/%C3%BC.yaml"), ("./a.yaml", "a.yaml"), ("-", "-")],
)
def test_sarif_addresses_are_uris(file, uri):
    """Blanks and other letters are escaped; an absolute path is a file URI."""
    log = json.loads(written("sarif", Report((replace(REFUSED, file=file),))))
    location = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == uri


def test_a_sarif_finding_is_recognised_after_lines_moved():
    """The fingerprint does not know the line, but tells one object from another."""

    def fingerprint(result):
        log = json.loads(written("sarif", Report((result,))))
        return log["runs"][0]["results"][0]["partialFingerprints"]

    assert fingerprint(REFUSED) == fingerprint(replace(REFUSED, line=70, message="other numbers"))
    assert fingerprint(REFUSED) != fingerprint(replace(REFUSED, object="default/Job/other"))


def test_markdown_shows_findings_and_folds_what_would_change():
    """A reviewer sees what needs them; places and changes are one click away, and what is refused has none;
    the marker finds the comment again."""
    place = replace(
        WARNED, result="pass", source="plan", policy="plan", rule="Placed", message="all in rack-1"
    )
    added_results = (place, replace(REFUSED, rule=MUTATION, result="pass", policy="kai-queue"))
    lines = written("markdown", replace(REPORT, results=(*REPORT.results, *added_results))).splitlines()
    assert lines[0] == "<!-- bayplan report -->"
    fold = lines.index("<details>")
    assert sum(line.startswith(("| ❌", "| ❗", "| ⚠️")) for line in lines[:fold]) == 3
    changes = lines[lines.index("<summary>1 object placed or changed</summary>") :]
    assert [line for line in changes if line.startswith("| default/")] == [
        "| default/Pod/shell | all in rack-1 |  |"
    ]


def test_markdown_counts_what_only_passes_and_lists_it_where_asked_for():
    """`--all` shows each pass, and the policies that only pass."""
    assert not [line for line in written("markdown").splitlines() if line.startswith(("| ✅", "| ⏭️"))]
    every = written("markdown", replace(REPORT, every=True)).splitlines()
    assert sum(line.startswith(("| ✅", "| ⏭️")) for line in every) == 2


def test_markdown_groups_findings_by_object():
    """Each under its object, which is named once, also where another object is worse."""
    also = replace(FAILED, object=REFUSED.object, api_version=REFUSED.api_version, file=REFUSED.file)
    warned = replace(also, result="warn", policy="z")
    text = written("markdown", Report((warned, replace(FAILED, result="error"), REFUSED)))
    rows = [line.split(" | ")[:3] for line in text.splitlines() if line.startswith(("| ❌", "| ❗", "| ⚠️"))]
    assert [(row[0][-5:].strip(), row[1]) for row in rows] == [
        ("error", FAILED.object), ("fail", REFUSED.object), ("warn", ""),
    ]  # fmt: skip


def test_markdown_cells_cannot_be_broken():
    """Pipes, newlines, HTML, mentions and links in a message are words."""
    evil = "a | b\n<img src=x> @team [x](http://y) `z`\\| #1"
    [row] = [
        line
        for line in written("markdown", Report((replace(FAILED, message=evil),))).splitlines()
        if "mig" in line and "team" in line
    ]
    assert row.count("|") == 6
    assert not re.search(r"[<>@`\[\]\\]", row)


class Page(HTMLParser):
    """The tags of a page, and whether each that was opened was closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "br", "input"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_page_is_whole_and_loads_nothing():
    """Every tag is closed; there is no script, link, image or address of elsewhere."""
    page = Page(written("html"))
    assert page.open == []
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe"}
    assert not [
        attrs for _, attrs in page.tags if "src" in attrs or not attrs.get("href", "#").startswith("#")
    ]
    assert "default-src 'none'" in written("html")


def test_the_page_can_be_read_aloud():
    """It has a language, a title, one main heading, captions, and heads with a scope."""
    page = Page(written("html"))
    assert ("html", {"lang": "en"}) in page.tags
    tags = [tag for tag, _ in page.tags]
    assert (tags.count("h1"), tags.count("main"), tags.count("title")) == (1, 1, 1)
    assert tags.count("caption") == tags.count("table") == 1
    assert tags.count("h2") == 4, "three objects and the policies"
    assert all(attrs.get("scope") in {"col", "row"} for tag, attrs in page.tags if tag == "th")


def test_the_page_begins_with_the_verdict_and_the_worst_object():
    """What only passes is folded away, and nothing is lost."""
    text = written("html")
    verdict = "1 of 3 objects and files could not be judged."
    assert text.index(verdict) < text.index("kube/Pod/x") < text.index("default/Job/train")
    (folded,) = re.findall(
        r"<details>.*?</details>", text[text.index("default/Job/train") :][:2000], re.DOTALL
    )
    assert "guaranteed-qos" in folded
    assert "Nothing would be refused" in written("html", Report((PASSED,)))


def test_a_reader_of_the_page_chooses_which_objects_are_shown():
    """By their worst outcome, by policy and by namespace, those that are there; without a script."""
    text = written("html")
    page = Page(text)
    names = [attrs["name"] for tag, attrs in page.tags if tag == "select"]
    assert names == ["verdict", "policy", "namespace"]
    values = [attrs["value"] for tag, attrs in page.tags if tag == "option" and attrs["value"]]
    assert values == ["worst-error", "worst-fail", "worst-warn", "p0", "p1", "n0", "n1"]
    for value in values:
        assert f'main:has(option[value="{value}"]:checked) .object:not(.{value}) {{ display: none; }}' in text
    objects = [
        attrs["class"].split() for tag, attrs in page.tags if "object" in attrs.get("class", "").split()
    ]
    assert [set(classes) & set(values) for classes in objects] == [
        {"worst-error", "p0", "n1"},
        {"worst-fail", "p1", "n0"},
        {"worst-warn", "p0", "n0"},
    ]
    assert "<select" not in written("html", Report((PASSED,)))


def test_the_page_draws_the_cluster_with_the_gangs_in_it():
    """Each rack in words too; a gang's name leads to its object."""
    drawing = racks(2, 3)
    held = reservation_for(drawing, gang(2, required="rack"), plan(drawing, gang(2, required="rack")))
    place = replace(PASSED, source="plan", policy="plan", rule="Placed", properties={"gang": held.gang})
    maps = fabric_maps(drawing.with_reservation(held))
    views = {(place.object, place.api_version, place.file): ObjectView(rows=racks_of(maps, [held]))}
    page = Page(written("html", Report((place,), maps=maps, views=views, judged=TOGETHER)))
    assert "2 with pods of default/Job/gang, 1 held for default/Job/gang" in page.text
    targets = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a"]
    assert links == ["#object-0"]
    assert targets == {"object-0"}
    assert page.text.count("●") == 2, "the gang's own nodes in its object"
    assert f"Judged {TOGETHER}." in page.text


def test_the_page_shows_before_and_after():
    """As a diff, whose signs tell without colours; markup in it is text."""
    changed = replace(PASSED, rule=MUTATION)
    diff = ("@@ -1 +1 @@\n", "-  image: a\n", "+  image: <b>\n")
    views = {(changed.object, changed.api_version, changed.file): ObjectView(diff)}
    page = Page(written("html", Report((changed,), views=views)))
    assert "Before and after: 1 lines more, 1 less" in page.text
    assert "-  image: a" in page.text
    assert "+  image: <b>" in page.text


def test_the_page_shows_markup_as_text():
    """What an object says is text on the page, never part of it."""
    page = Page(
        written("html", Report((replace(FAILED, message="<script>alert(1)</script>", object='a/B/"><b>'),)))
    )
    assert "script" not in {tag for tag, _ in page.tags}
    assert "<script>alert(1)</script>" in page.text


@settings(max_examples=60)
@given(
    st.lists(RESULTS, max_size=4),
    TEXT,
)
def test_no_text_breaks_a_format(results, revision):
    """Whatever an object or a policy says, each document still parses and holds every result."""
    report = Report(tuple(results), revision)
    assert len(json.loads(written("json", report))["results"]) == len(results)
    assert len(yaml.safe_load(written("yaml", report))["results"]) == len(results)
    assert len(ElementTree.fromstring(written("junit", report)).findall(".//testcase")) == len(results)
    assert json.loads(written("sarif", report))["version"] == "2.1.0"
    assert Page(written("html", report)).open == []
    assert "\x1b" not in written("table", report) + written("markdown", report)


@pytest.mark.parametrize("many", [3, 400, 4_000])
def test_a_markdown_comment_is_never_larger_than_github_takes(many):
    """What has no room is counted, the worst first, and the summary by policy stays whole."""
    failed = [replace(FAILED, object=f"team/Job/demo-{n}", message="too large " * 20) for n in range(many)]
    passed = [replace(FAILED, result="pass", object=f"team/Job/ok-{n}") for n in range(many)]
    text = written("markdown", Report((*failed, *passed)))
    assert len(text) <= 65_536
    assert "By policy" in text
    assert "team/Job/demo-0 " in text
    assert (" more: `bayplan report -o table` shows all." in text) == (many > 100)


FATES_OF_MANY = (
    ("research", "changed"), ("research", "refused"), ("shop", "unchanged"), ("research", "changed"),
)  # fmt: skip
CHANGED = Result("research/Job/a", "pass", "policy", "guaranteed-qos", MUTATION, "would change /spec/x")
OF_OBJECTS = Report((REFUSED, CHANGED, replace(CHANGED, message="and another")), fates=FATES_OF_MANY)


def test_the_summary_of_objects_counts_each_once():
    """By fate, in all and in each namespace; what a policy changes twice in an object is one object."""
    document = json.loads(written("json", OF_OBJECTS))
    assert document["objects"] == {"refused": 1, "queued": 0, "changed": 2, "unchanged": 1}
    assert document["namespaces"] == {
        "research": {"refused": 1, "queued": 0, "changed": 2, "unchanged": 0},
        "shop": {"refused": 0, "queued": 0, "changed": 0, "unchanged": 1},
    }
    assert document["changes"] == {"guaranteed-qos": 1}


@pytest.mark.parametrize("name", ["table", "markdown", "html"])
def test_people_read_the_summary_of_objects_before_the_findings(name):
    """In words, then a row for each namespace."""
    text = written(name, OF_OBJECTS)
    words = text.lower().index("of 4 objects 1 refused, 2 changed, 1 unchanged")
    assert words < text.index("shop") < text.index(REFUSED.message[:30])


def test_a_comment_on_many_namespaces_says_how_many_are_left_out():
    """The findings keep their room."""
    many = Report((REFUSED,), fates=tuple((f"team-{number}", "changed") for number in range(5000)))
    text = written("markdown", many)
    assert len(text) <= 65_536
    assert "4900 more namespaces." in text
    assert "TooLargeForLevel" in text


def test_the_numbers_of_changes_have_the_same_order_in_every_process() -> None:
    """A report that is kept in Git, or compared by CI, differs only where something has changed."""
    names = [f"policy-{number:02}" for number in range(20)]
    rows = [Result("default/Pod/x", "pass", "policy", name, MUTATION) for name in reversed(names)]
    assert list(Report(tuple(rows)).changes) == names
