"""SARIF, JUnit and OpenReports: what is written is valid against the schemas that their owners publish."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import xmlschema
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.webhook.calls import EXAMPLES, example
from tests.webhook.report.results import RESULTS, TEXT
from webhook.admission.decision import decide
from webhook.cli.cluster_files.reading import read_cluster_files
from webhook.cli.common.inputs import policies, shipped
from webhook.cli.main import main
from webhook.files.junit import JunitCase, JunitSuite, to_junit
from webhook.report.formats import FORMATS
from webhook.report.in_cluster import decision_news, merged
from webhook.report.model import Report, Result
from webhook.wire.request import from_object

SCHEMAS = Path(__file__).parent / "schemas"
CRD = Path(__file__).parents[2] / "e2e" / "crds" / "reports.openreports.io.yaml"
SUPERPOD = str(EXAMPLES / "clusters" / "superpod-32.yaml")


@cache
def junit_schema() -> xmlschema.XMLSchema:
    """Jenkins' own."""
    return xmlschema.XMLSchema(str(SCHEMAS / "junit-10.xsd"))


@cache
def sarif_schema() -> jsonschema.protocols.Validator:
    """OASIS' own, with its formats."""
    schema = json.loads((SCHEMAS / "sarif-schema-2.1.0.json").read_text())
    checker = jsonschema.Draft7Validator.FORMAT_CHECKER
    return jsonschema.Draft7Validator(schema, format_checker=checker)


def closed(schema: Any) -> Any:
    """The same schema in which no field is allowed that it does not name: the API server would drop it."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    if isinstance(inner.get("properties"), dict) and inner.get("type") == "object":
        inner.setdefault("additionalProperties", False)
    return inner


@cache
def openreports_schema() -> jsonschema.protocols.Validator:
    """That of the custom resource, metadata left to Kubernetes."""
    (version,) = yaml.safe_load(CRD.read_text())["spec"]["versions"]
    schema = closed(version["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"type": "object"}
    return jsonschema.Draft202012Validator(schema)


def problems(form: str, text: str) -> list[str]:
    """What the schema of a format has against a document, in its validator's words."""
    if form == "junit":
        return [str(error.reason) for error in junit_schema().iter_errors(text)]
    document = json.loads(text) if form == "sarif" else yaml.safe_load(text)
    schema = sarif_schema() if form == "sarif" else openreports_schema()
    return [f"{error.json_path}: {error.message}" for error in schema.iter_errors(document)]


def written(form: str, report: Report) -> str:
    """The report in a format."""
    out = io.StringIO()
    FORMATS[form](report, out)
    return out.getvalue()


WITH_SCHEMA = ("junit", "sarif", "yaml")
MOMENT = datetime(2026, 3, 1, 12, 0, 0, 5000, UTC)


@pytest.mark.parametrize("form", WITH_SCHEMA)
@settings(max_examples=40, deadline=None)
@given(st.lists(RESULTS, max_size=4), TEXT, st.sampled_from([None, MOMENT]))
def test_whatever_the_results_are_the_report_is_valid(
    form: str, results: list[Result], revision: str, moment: datetime | None
) -> None:
    """Against the published schema, hostile texts included."""
    assert problems(form, written(form, Report(tuple(results), revision, moment))) == []


BROKEN = "kind: Job\n  metadata: {\n"
WORKFLOW = """apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: train, namespace: nowhere}
spec:
  templates:
    - name: step
      container: {image: busybox}
"""


@pytest.fixture(scope="module")
def odd_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file that cannot be read and a kind that is not known."""
    folder = tmp_path_factory.mktemp("odd")
    (folder / "broken.yaml").write_text(BROKEN)
    (folder / "workflow.yaml").write_text(WORKFLOW)
    return folder


@pytest.mark.usefixtures("each_decided_once")
@pytest.mark.parametrize("form", WITH_SCHEMA)
@pytest.mark.parametrize("option", [(), ("--together",)])
def test_a_report_on_real_files_is_valid(
    form: str, option: tuple[str, ...], odd_files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All the examples, a file that cannot be read and a kind that is not known among them."""
    files = [str(path) for path in sorted(EXAMPLES.glob("*.yaml"))]
    main(["report", "-c", SUPERPOD, "-f", str(odd_files), *files, "-o", form, *option])
    text = capsys.readouterr().out
    assert problems(form, text) == []
    assert "broken.yaml" in text


def test_a_report_that_replicas_write_is_valid() -> None:
    """With what was refused, changed and placed in it."""
    snapshot, around = read_cluster_files([SUPERPOD])
    names = ("job-six-nodes-one-rack", "job-76-gpus-one-rack", "job-preferred-above-required")
    news = [
        decision_news(
            f"research/Job/{name}",
            "batch/v1",
            decide(from_object(example(name), uid=name), policies(()), snapshot, "mutate", around),
            1_772_366_400.0,
        )
        for name in names
    ]
    document = merged(None, "research", news, "4f2a9c1")
    assert document is not None
    assert {row["result"] for row in document["results"]} >= {"fail", "pass"}
    assert problems("yaml", yaml.safe_dump(document)) == []


@pytest.mark.parametrize("seconds", [0.0, 0.0001, 0.12345, 59.9996, 1234.5678])
def test_junit_times_are_of_the_form_that_the_schema_wants(seconds: float) -> None:
    """At most three digits before a comma and three after the point; `bayplan test` measures times."""
    assert problems("junit", to_junit("n", [JunitSuite("s", [JunitCase("a", "b", seconds=seconds)])])) == []


def test_junit_of_policy_tests_is_valid(tmp_path: Path) -> None:
    """`bayplan test --junit` over the policies that ship."""
    main(["test", str(shipped("policies")), "--junit", str(tmp_path / "report.xml")])
    assert problems("junit", (tmp_path / "report.xml").read_text()) == []


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("junit", '<testsuites><testsuite name="x"><case/></testsuite></testsuites>'),
        ("sarif", '{"version": "2.1.0", "runs": [{"results": []}]}'),
        ("yaml", "{apiVersion: openreports.io/v1alpha1, kind: Report, results: [{policy: a, colour: red}]}"),
    ],
)
def test_the_schemas_refuse_what_is_not_theirs(form: str, text: str) -> None:
    """So that these tests can fail."""
    assert problems(form, text)
