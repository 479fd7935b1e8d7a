"""Clients from a kubeconfig or a pod's service account, for the cluster and the user that kubectl would take.

The `kubernetes` package reads the files. Where its rules are not kubectl's, those of kubectl are here: which
context is current, how credential plugins run, how long a token serves, and whom a user acts as.
"""

from __future__ import annotations

import asyncio
import math
import os
import ssl
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import yaml
from kubernetes.aio import client as generated
from kubernetes.aio import config
from kubernetes.aio.config.dateutil import parse_rfc3339
from kubernetes.aio.config.kube_config import FileOrData, KubeConfigLoader, KubeConfigMerger

from planner.model.cached_property import cached_property
from planner.model.errors import InputError, Where
from webhook.kube.api.client import Api, Json
from webhook.kube.api.credential_plugin import plugin_credentials

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder in which Kubernetes mounts a pod's token and the API server's CA."""


TOKEN_SECONDS = 60.0
"""Seconds after which a token's file is read again."""


_PLUGIN_FIELDS = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url", "disable-compression")
"""The fields of a cluster that a credential plugin gets as the kubeconfig has them."""


async def connect(kubeconfig: str | None = None, *, in_cluster: bool = False, account: Path = ACCOUNT) -> Api:
    """Returns a client from a kubeconfig (None: $KUBECONFIG, ~/.kube/config) or, with `in_cluster`, from the
    pod's service account.

    `account`: the folder with the service account's CA, and its token, which is read again each minute.
    Raises `InputError` if the configuration is missing or malformed. No call is made yet.
    """
    configuration = generated.Configuration()
    # From Python 3.13 on, certificates without extensions for which Go does not ask would be refused.
    configuration.disable_strict_ssl_verification = True
    where = "--in-cluster" if in_cluster else kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
    try:
        if in_cluster:
            loader = config.incluster_config.InClusterConfigLoader(account / "token", account / "ca.crt")
            loader.load_and_set(configuration)
        else:
            await _load(_existing(where), configuration)
        return Api(configuration)
    except (TypeError, AttributeError, yaml.YAMLError):
        raise InputError("is no kubeconfig", Where(where)) from None
    except (config.ConfigException, OSError, ssl.SSLError, ValueError, KeyError) as error:
        raise InputError(f"gives no way to a cluster: {error}", Where(where)) from None


def _existing(kubeconfig: str) -> str:
    """Returns those of the paths, one or several as in $KUBECONFIG, whose files have content; all if none has
    any. Raises `InputError` if none exists, because the package treats a missing file as an empty one.
    """
    files = {path: Path(path).expanduser() for path in kubeconfig.split(os.pathsep) if path}
    if not any(file.exists() for file in files.values()):
        raise InputError("no such file: give --kubeconfig, or set KUBECONFIG", Where(kubeconfig))
    filled = [path for path, file in files.items() if file.exists() and file.stat().st_size]
    return os.pathsep.join(filled) or kubeconfig


async def _load(kubeconfig: str, configuration: Any) -> None:
    """Sets the cluster and the user of the current context: the one that the first file with any names (the
    package would take the last file's).
    """
    files = KubeConfigMerger(kubeconfig)
    contexts = (content.get("current-context") for content in files.config_files.values())
    loader = _Loader(files.config, active_context=next(filter(None, contexts), None), config_base_path=None)
    await loader.load_and_set(configuration)
    if configuration.proxy and urlsplit(configuration.proxy).scheme not in ("http", "https"):
        raise ValueError(f"proxy-url {configuration.proxy}: only proxies with http and https can be used")
    configuration.client_session_kwargs = {"headers": loader.impersonation}
    if loader.token_until < math.inf:
        configuration.refresh_api_key_hook = loader.renew


class _Loader(KubeConfigLoader):  # type: ignore[misc]
    """The package's reader of one context, with kubectl's rules for credentials."""

    token: str
    """The value of the header Authorization; unset for a user without a token."""
    token_until = math.inf
    """When the token is to be renewed, in seconds since the epoch."""

    @property
    def impersonation(self) -> list[tuple[str, str]]:
        """The headers that say whom the user acts as; none if it acts as itself."""
        user: Json = self._user.value if self._user is not None else {}
        if not user.get("as"):
            return []
        headers = [("Impersonate-User", user["as"])]
        headers += [("Impersonate-Uid", user["as-uid"])] if user.get("as-uid") else []
        headers += [("Impersonate-Group", group) for group in user.get("as-groups") or ()]
        for key, values in (user.get("as-user-extra") or {}).items():
            headers += [(f"Impersonate-Extra-{quote(key.lower(), safe='')}", value) for value in values]
        return headers

    async def renew(self, configuration: Any) -> None:
        """Sets the token of a configuration before a call. Calls that come meanwhile wait for one renewal."""
        async with self._renewing:
            if time.time() >= self.token_until and "exec" in self._user:
                await self.load_from_exec_plugin()
            elif time.time() >= self.token_until:
                self._load_user_token()
        configuration.api_key["BearerToken"] = self.token

    @cached_property
    def _renewing(self) -> asyncio.Lock:
        return asyncio.Lock()

    async def load_from_exec_plugin(self) -> bool:
        """Takes the credentials that the user's plugin prints. Raises `PluginError` if it prints none, where
        the package would go on without credentials.
        """
        folder = Path(self._get_base_path(self._user.path))
        status = await plugin_credentials(self._user["exec"].value, folder, self._cluster_for_plugins())
        if "clientCertificateData" in status:
            self.cert_file = _file(status, "clientCertificateData")
            self.key_file = _file(status, "clientKeyData")
        if "token" in status:
            self.token = f"Bearer {status['token']}"
            ends = status.get("expirationTimestamp")
            self.token_until = parse_rfc3339(ends).timestamp() if ends else math.inf
        return True

    def _cluster_for_plugins(self) -> Json:
        cluster: Json = self._cluster.value
        folder = self._get_base_path(self._cluster.path)
        authority = FileOrData(self._cluster, "certificate-authority", file_base_path=folder).as_data()
        extensions = {entry["name"]: entry["extension"] for entry in cluster.get("extensions") or ()}
        return {field: cluster[field] for field in _PLUGIN_FIELDS if field in cluster} | {
            "certificate-authority-data": authority,
            "config": extensions.get("client.authentication.k8s.io/exec"),
        }

    def _load_user_token(self) -> bool:
        """Takes the user's token, or that of its file without the line end, which the package keeps."""
        if "tokenFile" not in self._user or self._user.safe_get("token"):
            return bool(super()._load_user_token())
        file = Path(self._get_base_path(self._user.path)) / self._user["tokenFile"]
        self.token = f"Bearer {file.read_text().strip()}"
        self.token_until = time.time() + TOKEN_SECONDS
        return True


def _file(status: Json, key: str) -> str:
    """Returns a file with a text of a plugin's status, because OpenSSL reads only files. It is removed when
    the program ends.
    """
    return str(FileOrData(status, "", key, base64_file_content=False).as_file())
