"""A kubeconfig means the same cluster and user as for kubectl: context, names, impersonation, credentials."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from certs.authority import KeyPair, new_authority
from planner.model.errors import InputError
from webhook.kube.api import kubeconfig as module
from webhook.kube.api.client import Unreachable
from webhook.kube.api.kubeconfig import connect

SERVER = "https://127.0.0.1:1"


class Requests(list[web.Request]):
    """What an API server was asked."""

    def headers(self, prefix: str) -> list[tuple[str, str]]:
        """The headers of the newest request whose names begin with `prefix`."""
        return [(name, value) for name, value in self[-1].headers.items() if name.startswith(prefix)]

    @property
    def users(self) -> list[str]:
        """The Authorization header of each request."""
        return [request.headers["Authorization"] for request in self]


@asynccontextmanager
async def api_server(requests: Requests, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A server that answers every GET; its address."""

    async def answer(request: web.Request) -> web.Response:
        requests.append(request)
        return web.json_response({})

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    server = TestServer(app, host="127.0.0.1", scheme="https" if context else "http")
    await server.start_server(ssl=context)
    try:
        yield str(server.make_url("")).rstrip("/")
    finally:
        await server.close()


def write(file: Path, name: str = "c", *, server: str = SERVER, user: Any = None, **cluster: Any) -> str:
    """A kubeconfig with one context, cluster and user, all of one name; its path."""
    file.parent.mkdir(exist_ok=True)
    content = {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": server, **cluster}}],
        "users": [{"name": name, "user": {"token": "t"} if user is None else user}],
    }
    file.write_text(json.dumps(content))
    return str(file)


def plugin(folder: Path, script: str, **fields: Any) -> dict[str, Any]:
    """A user with a credential plugin that lies beside the kubeconfig."""
    program = folder / "bin" / "login"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": "./bin/login", "args": None, **fields}}


def credential(lines: str = "", **status: str) -> str:
    """A script that counts its runs, and prints a status with the number of the run in place of RUN."""
    printed = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    return f"""
        cd $(dirname $0)
        echo >> runs
        {lines}
        echo '{json.dumps(printed)}' | sed s/RUN/$(wc -l < runs)/
        """


async def test_of_several_files_the_first_one_that_names_a_context_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for kubectl: by the last one, commands would act on another cluster. Missing and empty files do not
    count.
    """
    without = tmp_path / "without"
    without.write_text("{kind: Config, current-context: ''}")
    first = write(tmp_path / "first", "first", server="https://first:1")
    second = write(tmp_path / "second", "second", server="https://second:1")
    (tmp_path / "empty").touch()
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'empty'}:{without}:{tmp_path / 'none'}:{first}:{second}:")
    api = await connect()
    assert api.host == "https://first:1"
    await api.close()


async def test_an_empty_variable_is_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`export KUBECONFIG=` means the file at home."""
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / ".kube" / "config", server="https://home:1")
    api = await connect()
    assert api.host == "https://home:1"
    await api.close()


async def test_the_certificate_is_that_of_the_name_in_the_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tls-server-name`, as for an API server behind a tunnel. The certificate may lack extensions for which
    Python 3.13 asks by default, and kubectl does not.
    """
    lenient = ssl.create_default_context

    def strict(*arguments: Any, **options: Any) -> ssl.SSLContext:
        context = lenient(*arguments, **options)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    now = datetime.now(UTC)
    authority, key = new_authority(now), ec.generate_private_key(ec.SECP256R1())
    certificate = (
        x509.CertificateBuilder(authority.certificate.subject, x509.Name([]), key.public_key(), 7)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("api.internal")]), critical=True)
        .sign(authority.key, hashes.SHA256())
    )
    (tmp_path / "ca.crt").write_bytes(authority.certificate_pem)
    (tmp_path / "tls.crt").write_bytes(KeyPair(certificate, key).certificate_pem)
    (tmp_path / "tls.key").write_bytes(KeyPair(certificate, key).key_pem)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    monkeypatch.setattr(ssl, "create_default_context", strict)
    async with api_server(requests := Requests(), serving) as address:
        trust = {"certificate-authority": "ca.crt", "tls-server-name": "api.internal"}
        api = await connect(write(tmp_path / "config", server=address, **trust))
        await api.get("/version")
        await api.close()
    assert len(requests) == 1


async def test_a_proxy_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    """aiohttp would speak HTTP to it."""
    file = write(tmp_path / "config", **{"proxy-url": "socks5://127.0.0.1:1080"})
    with pytest.raises(InputError, match="only proxies with http and https"):
        await connect(file)


async def test_a_user_who_acts_as_another_one_says_so(tmp_path: Path) -> None:
    """Without these headers, commands act with the rights of the user itself."""
    user = {
        "token": "t",
        "as": "jane",
        "as-uid": "7",
        "as-groups": ["a", "b"],
        "as-user-extra": {"example.com/Scope": ["x", "y"]},
    }
    async with api_server(requests := Requests()) as address:
        api = await connect(write(tmp_path / "config", server=address, user=user))
        await api.get("/version")
        await api.close()
    assert requests.headers("Impersonate-") == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-example.com%2Fscope", "x"),
        ("Impersonate-Extra-example.com%2Fscope", "y"),
    ]


async def test_a_plugins_token_is_renewed_when_it_ends(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one run for all calls that wait; what the plugin says meanwhile is shown."""
    script = credential(
        "echo log in at example.com >&2", token="run-RUN", expirationTimestamp="2030-01-01T00:00:00Z"
    )
    user = plugin(tmp_path, script, env=[{"name": "A", "value": "b"}])
    clock = [datetime(2029, 1, 1, tzinfo=UTC).timestamp()]
    monkeypatch.setattr(module.time, "time", lambda: clock[0])
    async with api_server(requests := Requests()) as address:
        api = await connect(write(tmp_path / "config", server=address, user=user))
        await api.get("/version")
        await api.get("/version")
        clock[0] = datetime(2030, 1, 1, tzinfo=UTC).timestamp()
        (tmp_path / "bin" / "login").write_text(
            (tmp_path / "bin" / "login").read_text().replace("2030-01", "2031-01")
        )
        await asyncio.gather(*(api.get("/version") for _ in range(5)))
        await api.close()
    assert requests.users == ["Bearer run-1"] * 2 + ["Bearer run-2"] * 5
    assert capfd.readouterr().err == "log in at example.com\n" * 2


async def test_calls_say_why_a_token_could_not_be_renewed(tmp_path: Path) -> None:
    """They are not made without a token, which would look like missing rights; watches try again later."""
    script = credential(
        "test $(wc -l < runs) = 1 || exit 3", token="t", expirationTimestamp="2020-01-01T00:00:00Z"
    )
    api = await connect(write(tmp_path / "config", user=plugin(tmp_path, script)))
    with pytest.raises(Unreachable, match="bin/login failed with exit status 3"):
        await api.get("/version")
    await api.close()


async def test_a_plugin_learns_of_the_cluster_where_it_asks_for_that(tmp_path: Path) -> None:
    """`provideClusterInfo`, with the settings that the kubeconfig has for it."""
    script = 'cd $(dirname $0); printf %s "$KUBERNETES_EXEC_INFO" > asked\n' + credential(token="t")
    extensions = [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}]
    user = plugin(tmp_path, script, provideClusterInfo=True)
    data = {"certificate-authority-data": "Y2E="}
    file = write(tmp_path / "config", server="http://a:1", user=user, extensions=extensions, **data)
    await (await connect(file)).close()
    spec = json.loads((tmp_path / "bin" / "asked").read_text())["spec"]
    assert spec["cluster"] == {"server": "http://a:1", **data, "config": {"audience": "x"}}


@pytest.mark.parametrize(
    ("script", "fields", "message"),
    [
        ("exit 3", {}, "bin/login failed with exit status 3"),
        (
            "",
            {"command": "no-such-login", "installHint": "brew install it"},
            "no-such-login. brew install it",
        ),
        ("echo hello", {}, "printed no ExecCredential"),
        ("echo '[]'", {}, "printed no ExecCredential"),
        (credential(), {}, "printed no token"),
        (credential(clientCertificateData="x"), {}, "no certificate with its key"),
        (credential(token="t"), {"apiVersion": "client.authentication.k8s.io/v1beta1"}, "k8s.io/v1beta1"),
    ],
)
async def test_a_plugin_without_credentials_is_an_error(
    script: str, fields: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """Commands went on without a user, and the API server refused them as `system:anonymous`."""
    with pytest.raises(InputError, match=message):
        await connect(write(tmp_path / "config", user=plugin(tmp_path, script, **fields)))


async def test_the_file_of_a_token_is_read_again_each_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line end in it is no part of the token."""
    (tmp_path / "token").write_text("first\n")
    monkeypatch.setattr(module, "TOKEN_SECONDS", 0.0)
    async with api_server(requests := Requests()) as address:
        api = await connect(write(tmp_path / "config", server=address, user={"tokenFile": "token"}))
        await api.get("/version")
        (tmp_path / "token").write_text("second\n")
        await api.get("/version")
        await api.close()
    assert requests.users == ["Bearer first", "Bearer second"]
