"""The serving certificates of `bayplan serve`: from files, or from a Secret that its replicas share."""

from __future__ import annotations

import argparse
import logging
import ssl
from pathlib import Path
from typing import Protocol

from certs.authority import CertificateError, service_names
from certs.reload import ReloadingContext
from planner.model.errors import InputError, Where
from webhook.kube.certificates import SecretCertificates
from webhook.kube.runtime import ClusterRuntime

log = logging.getLogger("bayplan")


class Tls(Protocol):
    """A source of serving certificates, which it renews or reloads while the server runs."""

    @property
    def context(self) -> ssl.SSLContext:
        """The TLS context of the server."""
        ...

    def ends(self) -> float:
        """Returns when the current certificate expires, in seconds since the epoch."""
        ...

    async def watch(self) -> None:
        """Loads new certificates into the context. Runs until it is cancelled."""
        ...


def add_secret(parser: argparse.ArgumentParser) -> None:
    """Adds the options for certificates in a Secret."""
    group = parser.add_argument_group("certificates in the cluster, with --in-cluster or --kubeconfig")
    group.add_argument(
        "--certificate-secret", metavar="NAME", help="make, renew and serve what lies in this Secret"
    )
    group.add_argument(
        "--webhook-configurations",
        nargs="+",
        default=["bayplan"],
        metavar="NAME",
        help="put the CA into these, mutating and validating (default: bayplan)",
    )
    group.add_argument(
        "--service",
        default="bayplan",
        metavar="NAME",
        help="the Service that is called (default: %(default)s)",
    )
    group.add_argument(
        "--certificate-names", nargs="+", default=[], metavar="NAME", help="further DNS names or addresses"
    )


def in_secret(args: argparse.Namespace, side: ClusterRuntime) -> SecretCertificates:
    """Returns the source of the certificates in a Secret of the cluster. Raises `InputError` for invalid
    names, or an unusable file of `--client-ca`.
    """
    try:
        names = service_names(args.service, args.namespace, extra=args.certificate_names)
    except CertificateError as error:
        raise InputError(str(error), Where("--service, --namespace, --certificate-names")) from None
    place = (args.namespace, args.certificate_secret)
    try:
        return SecretCertificates(
            side.api, *place, names, args.webhook_configurations, client_ca=args.client_ca
        )
    except OSError as error:
        raise InputError(f"no usable CA: {error.strerror or error}", Where(f"{args.client_ca}")) from None


def from_files(args: argparse.Namespace) -> ReloadingContext | None:
    """Returns the source of the certificates in files; None if they are in a Secret, or if the server uses
    plain HTTP.

    Raises `InputError` for options that exclude each other, or unusable files.
    """
    if args.client_names and not args.client_ca:
        raise InputError("--client-names are names in certificates; add --client-ca")
    if args.client_ca and args.insecure:
        raise InputError("--client-ca needs TLS; leave out --insecure")
    if args.certificate_secret:
        if args.insecure or args.tls_cert or args.tls_key:
            raise InputError("--certificate-secret is instead of --tls-cert, --tls-key, --insecure")
        if not (args.kubeconfig or args.in_cluster):
            raise InputError("--certificate-secret lies in a cluster; add --in-cluster or --kubeconfig")
        return None
    if args.insecure:
        if args.tls_cert or args.tls_key:
            raise InputError("--insecure is plain HTTP; leave it out, or --tls-cert and --tls-key")
        return None
    if args.tls_cert is None or args.tls_key is None:
        raise InputError(
            "needs --tls-cert and --tls-key (`bayplan certs init` makes them), --certificate-secret, "
            "or --insecure"
        )
    try:
        return ReloadingContext(args.tls_cert, args.tls_key, client_ca=args.client_ca, report=log.info)
    except OSError as error:
        _check_authority(args.client_ca)
        raise InputError(
            f"no usable pair: {error.strerror or error}", Where(f"{args.tls_cert}, {args.tls_key}")
        ) from None


def _check_authority(client_ca: Path | None) -> None:
    """Raises `InputError` if the file of `--client-ca` cannot be used."""
    if client_ca is None:
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=client_ca)
    except OSError as error:
        raise InputError(f"no usable CA: {error.strerror or error}", Where(f"{client_ca}")) from None
