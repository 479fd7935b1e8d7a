"""`bayplan certs`: manages the webhook's CA and serving certificate in a folder."""

from __future__ import annotations

import argparse
import base64
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from rich.text import Text

from certs.authority import (
    CertificateError,
    CertificateNames,
    names_of,
    needs_renewal,
    read_bundle,
    service_names,
)
from certs.rotation import CA_BUNDLE, CA_CERT, TLS_CERT, Rotation
from planner.model.errors import InputError, Where
from webhook.cli.common.parsers import Subparsers, subcommand, verb
from webhook.report import terminal

EPILOG = """examples:
  bayplan certs init --dir /certs --service bayplan --namespace bayplan-system
  bayplan certs init --dir ./certs --service bayplan --namespace default --loopback --dns hook.example.org
  bayplan certs renew --dir /certs
  bayplan certs show --dir /certs
  bayplan certs bundle --dir /certs --base64    for `caBundle` in the webhook configurations

The CA is valid for 365 days, the serving certificate for 150. `renew` renews what expires within 15 days and
otherwise does nothing; run it every 12 hours. A new CA is added to the bundle immediately, and signs from the
next run on.

exit status: 0 done, 1 missing, or due for renewal (show), 2 bad input or usage
"""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `certs` with its verbs `init`, `renew`, `show` and `bundle`."""
    parser = subcommand(
        subparsers,
        "certs",
        description="Manage the webhook's CA and serving certificate in a folder.",
        epilog=EPILOG,
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    init = _verb(verbs, "init", _init, "create missing certificates, or replace those for other names")
    init.add_argument("--service", required=True, metavar="NAME", help="name of the webhook's Service")
    init.add_argument("--namespace", required=True, metavar="NS", help="namespace of the Service")
    init.add_argument(
        "--dns",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="additional DNS names or IP addresses",
    )
    init.add_argument("--loopback", action="store_true", help="include localhost, 127.0.0.1 and ::1")
    _verb(verbs, "renew", _renew, "renew certificates that expire soon, for the same names")
    _verb(verbs, "show", _show, "show names, expiry times and fingerprints, without keys")
    bundle = _verb(verbs, "bundle", _bundle, "print the CAs that clients should trust")
    bundle.add_argument("--base64", action="store_true", help="encode on one line, for `caBundle`")


def run(args: argparse.Namespace) -> int:
    """Runs the verb. Raises `InputError` for a folder or file that cannot be used."""
    do: Callable[[argparse.Namespace], int] = args.do
    try:
        return do(args)
    except CertificateError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        place = str(error.filename or args.dir)
        raise InputError(f"cannot be read or written: {error.strerror}", Where(place)) from None


def _verb(
    verbs: Subparsers,
    name: str,
    do: Callable[[argparse.Namespace], int],
    text: str,
) -> argparse.ArgumentParser:
    parser = verb(verbs, name, text, EPILOG)
    parser.add_argument("--dir", required=True, type=Path, metavar="DIR", help="folder with the certificates")
    parser.set_defaults(run=run, do=do)
    return parser


def _init(args: argparse.Namespace) -> int:
    names = service_names(args.service, args.namespace, extra=args.dns, loopback=args.loopback)
    return _check(args.dir, names)


def _renew(args: argparse.Namespace) -> int:
    leaf = _first(args.dir / TLS_CERT)
    if leaf is None:
        return _not_there(args.dir / TLS_CERT)
    return _check(args.dir, names_of(leaf))


def _check(folder: Path, names: CertificateNames) -> int:
    done = Rotation(folder, names).check(datetime.now(UTC))
    for step in done or ("nothing was due",):
        sys.stdout.write(f"{folder}: {step}\n")
    return 0


def _show(args: argparse.Namespace) -> int:
    now = datetime.now(UTC)
    rows = []
    due = False
    for name in (TLS_CERT, CA_CERT):
        certificate = _first(args.dir / name)
        if certificate is None:
            return _not_there(args.dir / name)
        due = due or needs_renewal(certificate, now)
        rows.append((name, _subject(certificate), *_end(certificate, now), _fingerprint(certificate)))
    columns = ("certificate", "for", "ends", "days left", "SHA-256")
    terminal.console().print(terminal.table(columns, rows))
    if due:
        _note("a certificate is due; run `bayplan certs renew`")
    return 1 if due else 0


def _bundle(args: argparse.Namespace) -> int:
    path = args.dir / CA_BUNDLE
    if not path.exists():
        return _not_there(path)
    pem = path.read_bytes()
    read_bundle(pem)
    sys.stdout.write(base64.b64encode(pem).decode() + "\n" if args.base64 else pem.decode())
    return 0


def _first(path: Path) -> x509.Certificate | None:
    if not path.exists():
        return None
    try:
        return read_bundle(path.read_bytes())[0]
    except CertificateError as error:
        raise InputError(str(error), Where(str(path))) from None


def _not_there(path: Path) -> int:
    _note(f"{path} is not there; `bayplan certs init` makes it")
    return 1


def _subject(certificate: x509.Certificate) -> str:
    names = names_of(certificate)
    return ", ".join((*names.dns, *names.ips)) or certificate.subject.rfc4514_string()


def _end(certificate: x509.Certificate, now: datetime) -> tuple[str, Text]:
    end = certificate.not_valid_after_utc
    days = (end - now).days
    return f"{end:%Y-%m-%d}", Text(str(days), "red" if needs_renewal(certificate, now) else "green")


def _fingerprint(certificate: x509.Certificate) -> str:
    return certificate.fingerprint(hashes.SHA256()).hex()[:16] + "…"


def _note(text: str) -> None:
    sys.stderr.write(f"bayplan: {text}\n")
