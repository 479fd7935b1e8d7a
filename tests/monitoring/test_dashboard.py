"""The dashboard's queries, asked of a real Prometheus that scrapes a real server over its own probe port."""

from __future__ import annotations

import json
import re
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.manifests import monitoring
from tests.manifests.monitoring import PANELS
from tests.webhook.calls import EXAMPLES, example, review
from webhook.cli.main import main

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0
"""Seconds that a program may take to start on a machine with much to do."""
BOARD = json.loads(yaml.safe_load(monitoring.DASHBOARD.read_text())["data"]["bayplan.json"])
QUERIES = [
    (panel["title"], target["expr"], target["legendFormat"])
    for panel in BOARD["panels"]
    for target in panel["targets"]
]


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def wait_until(holds: Callable[[], bool], expected: str) -> None:
    """Raises `AssertionError` where it does not hold in time."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if holds():
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise AssertionError(f"in {PATIENCE:g} s not: {expected}")


def got(url: str) -> str:
    """What stands there."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of the metrics of a server over TLS that has answered some calls, a bad one among them."""
    folder = tmp_path_factory.mktemp("server")
    main(["certs", "init", "--dir", str(folder), "--service", "bayplan", "--namespace", "bayplan-system"])
    port, probes = free_port(), free_port()
    command = [
        *(
            sys.executable,
            "-m",
            "webhook.cli.main",
            "serve",
            "--port",
            str(port),
            "--probe-port",
            str(probes),
        ),
        *("--tls-cert", str(folder / "tls.crt"), "--tls-key", str(folder / "tls.key")),
        *("-c", str(EXAMPLES / "clusters" / "superpod-32.yaml"), "--ledger", str(folder / "book.db")),
    ]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    try:
        wait_until(lambda: got(f"http://127.0.0.1:{probes}/readyz") != "", "the server is ready")
        for name in ("job-six-nodes-one-rack", "job-76-gpus-one-rack", "job-nine-nodes-one-rack"):
            for phase in ("mutate", "validate"):
                asked(port, phase, json.dumps(review(example(name))).encode())
        with pytest.raises(urllib.error.HTTPError):
            asked(port, "mutate", b"{")
        yield probes
    finally:
        process.terminate()
        process.wait(60)


def asked(port: int, phase: str, body: bytes) -> bytes:
    """A call as the API server makes it."""
    anyone = ssl.create_default_context()
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    url, head = f"https://127.0.0.1:{port}/{phase}", {"Content-Type": "application/json"}
    call = urllib.request.Request(url, body, head)
    with urllib.request.urlopen(call, timeout=60, context=anyone) as answer:
        return bytes(answer.read())


@pytest.fixture(scope="module")
def query(
    programs: Path, server: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Any]]:
    """Ask a Prometheus that has scraped the server several times."""
    folder, port = tmp_path_factory.mktemp("prometheus"), free_port()
    scrape = {"job_name": "bayplan", "static_configs": [{"targets": [f"127.0.0.1:{server}"]}]}
    settings = {"global": {"scrape_interval": "1s"}, "scrape_configs": [scrape]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
    command = [
        str(programs / "prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)

    def ask(expression: str) -> Any:
        text = urllib.parse.urlencode({"query": expression})
        return json.loads(got(f"http://127.0.0.1:{port}/api/v1/query?{text}"))["data"]["result"]

    try:
        scrapes = "count_over_time(bayplan_reload_failed[5m])"
        wait_until(lambda: any(int(row["value"][1]) > 3 for row in ask(scrapes)), "some scrapes")
        yield ask
    finally:
        process.terminate()
        process.wait(60)


def test_all_panels_are_asked() -> None:
    """The JSON has the queries of the table."""
    assert [row[1:] for row in QUERIES] == [row for panel in PANELS for row in panel.queries]


@pytest.mark.parametrize(("title", "expression", "legend"), QUERIES, ids=lambda text: str(text)[:40])
def test_a_query_of_the_dashboard_has_an_answer(
    title: str, expression: str, legend: str, query: Callable[[str], Any]
) -> None:
    """Every row with the labels of its legend."""
    rows = query(expression.replace("$__rate_interval", "5m"))
    assert rows, title
    for label in re.findall(r"\{\{(\w+)\}\}", legend):
        assert all(label in row["metric"] for row in rows)


def test_the_answers_are_the_servers(query: Callable[[str], Any]) -> None:
    """A replica, no failed reload, days of the certificate, the calls that were made, five ages."""
    assert query("count(bayplan_reload_failed)")[0]["value"][1] == "1"
    (days,) = query("(min(bayplan_certificate_expiry_timestamp_seconds) - time()) / 86400")
    assert float(days["value"][1]) > 30
    assert query("sum(bayplan_decisions_total)")[0]["value"][1] == "6"
    assert query("sum(bayplan_bad_calls_total)")[0]["value"][1] == "1"
    assert {row["metric"]["age"] for row in query("bayplan_waiting_gangs")} == {
        "1m",
        "10m",
        "1h",
        "1d",
        "older",
    }
    assert float(query("sum(bayplan_unused_reservations)")[0]["value"][1]) >= 1
    assert query('bayplan_policy_answers_total{answer="changed"} > 0')
    assert query("max(topology_domain_utilization_ratio) > 0")
