"""Metrics, as Prometheus reads them."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fake_program import FakeProgram
from prometheus_client.parser import text_string_to_metric_families
from running import socket_of, wait_until
from sources import DAEMON, REAL, SIMULATED

from deepum.client.channel import Channel
from deepum.daemon import metrics
from deepum.daemon.metrics_server import MetricsServer

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "docs" / "grafana.json"


def families(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Samples by their full name, as the official parser reads them."""
    return {
        sample.name: [
            (each.labels, each.value) for each in family.samples if each.name == sample.name
        ]
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def ask(port: int, path: str = "/metrics", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_each_metric_has_a_value_where_something_is_known() -> None:
    metric_families = families(metrics.text(DAEMON, [replace(SIMULATED, budget_bytes=1)]))
    assert set(metric_families) == {name for name, _, _ in metrics.catalogue()}


def test_each_metric_is_what_it_says_it_is() -> None:
    kinds = {
        family.name: family.type
        for family in text_string_to_metric_families(metrics.text(DAEMON, [SIMULATED]))
    }
    for name, kind, _ in metrics.catalogue():
        assert kinds[name.removesuffix("_total")] == kind
        assert (kind == metrics.COUNTER) == name.endswith("_total")


def test_sessions_are_told_apart_and_what_is_not_known_is_left_out() -> None:
    program = 'a "name"\\ of\ntwo lines'
    metric_families = families(metrics.text(DAEMON, [SIMULATED, replace(REAL, program=program)]))
    labels = [labels for labels, _ in metric_families["deepum_session_launches_total"]]
    assert [each["pid"] for each in labels] == ["101", "102"]
    assert labels[1]["program"] == program
    virtual = metric_families["deepum_session_gpu_virtual_seconds_total"]
    assert [(labels["pid"], value) for labels, value in virtual] == [("101", 80.0)]
    assert metric_families["deepum_sessions"] == [({}, 2.0)]


@contextlib.contextmanager
def serving(
    environment: dict[str, str], folder: Path, port: int
) -> Iterator[subprocess.Popen[str]]:
    """A daemon that is to tell metrics on that port; it is ended afterwards."""
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "deepum", "daemon"],
        env={**environment, "DEEPUM_METRICS": str(port)},
        stderr=subprocess.PIPE,
        text=True,
    ) as daemon:
        try:
            assert wait_until(socket_of(folder).exists)
            yield daemon
        finally:
            daemon.terminate()
            daemon.wait(20)


def test_metrics_of_a_daemon_that_serves(environment: dict[str, str], runtime_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with serving(environment, runtime_dir, port) as daemon:
        program = FakeProgram(runtime_dir)
        program.train(2)
        status, text = ask(port)
        metric_families = families(text)
        assert status == 200
        assert [value for _, value in metric_families["deepum_session_launches_total"]] == [12.0]
        assert metric_families["deepum_sessions"] == [({}, 1.0)]
        with Channel(environment) as channel:
            assert channel.daemon().metrics_port == port
        assert ask(port, "/")[0] == 404
        assert ask(port, Host="evil.example:80")[0] == 403
        program.close()
    assert daemon.returncode == 0


def test_a_port_that_is_taken_is_a_warning(environment: dict[str, str], runtime_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with serving(environment, runtime_dir, port) as daemon:
            program = FakeProgram(runtime_dir)
            program.train(1)
            program.close()
            daemon.terminate()
            assert daemon.stderr is not None
            message = daemon.stderr.read()
    assert f"deepum: warning: metrics: port {port}: Address already in use" in message


def test_there_are_none_unless_asked_for(
    daemon: subprocess.Popen[str], environment: dict[str, str]
) -> None:
    with Channel(environment) as channel:
        assert channel.daemon().metrics_port is None
    listening = Path(f"/proc/{daemon.pid}/net/tcp").read_text().splitlines()[1:]
    inodes = {line.split()[9] for line in listening}
    links = [str(fd.readlink()) for fd in Path(f"/proc/{daemon.pid}/fd").iterdir()]
    assert not {f"socket:[{inode}]" for inode in inodes} & set(links)


def test_only_the_loopback_interface_is_listened_on() -> None:
    server = MetricsServer(0, lambda: "")
    try:
        assert server._server.server_address[0] == "127.0.0.1"
        assert ask(server.port) == (200, "")
    finally:
        server.close()


def test_the_page_has_each_metric_with_its_text() -> None:
    rows = re.findall(
        r"^\| `(deepum_\w+)` \| (\w+) \| (.*) \|$",
        (ROOT / "docs" / "metrics.md").read_text(),
        re.MULTILINE,
    )
    assert rows == metrics.catalogue()


def test_the_dashboard_uses_only_metrics_and_labels_that_exist() -> None:
    text = DASHBOARD.read_text()
    board = json.loads(text)
    panels = board["panels"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    assert expressions
    for expression in expressions:
        names = set(re.findall(r"\bdeepum_\w+", expression))
        assert names and names <= {name for name, _, _ in metrics.catalogue()}, expression
    legends = [target["legendFormat"] for panel in panels for target in panel["targets"]]
    used = {label for legend in legends for label in re.findall(r"{{(\w+)}}", legend)}
    assert used <= {*metrics.LABELS, "version"}
    assert len({panel["id"] for panel in panels}) == len(panels)


@pytest.mark.parametrize("port", ["65536", "-1", "http"])
def test_a_port_that_is_none_is_refused(environment: dict[str, str], port: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "deepum", "daemon"],
        env={**environment, "DEEPUM_METRICS": port},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith("deepum: error: DEEPUM_METRICS: ")
