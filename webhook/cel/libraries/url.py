"""url(): absolute URIs and absolute paths, and their parts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from webhook.cel.compiler.functions import Overload, overload, scanning
from webhook.cel.values.budget import Meter
from webhook.cel.values.errors import FunctionError
from webhook.cel.values.values import register_type

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:", re.ASCII)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_BAD_FIELD: Final = re.compile(f";|{_BAD_ESCAPE.pattern}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_HOST: Final = re.compile(
    r"(?:\[[^][%]+(?:%25[^][%]+)?]|(?:[^][:%\x00-\x20\\^`{|}]|%(?:[89A-Fa-f][0-9A-Fa-f]|25))*)(?::[0-9]*)?"
)
_FRAGMENT_IN_AUTHORITY: Final = re.compile(r"//[^/?]*#")
"""Go parses a request URI, which has no fragment, before it parses the URL."""
_SAFE: Final = "/%$&+,;=:@!*'()-._~[]"


@dataclass(frozen=True, slots=True)
class URL:
    """A valid URI, split into its parts."""

    parts: SplitResult


register_type(URL, "kubernetes.URL")


def parse(text: str) -> URL:
    """Returns the URL of a text, which must begin with a scheme or with `/`. Raises FunctionError
    if invalid.
    """
    refused = FunctionError("url() needs an absolute URI or an absolute path")
    scheme = _SCHEME.match(text)
    if _CONTROL.search(text) or not (scheme or text.startswith("/")):
        raise refused
    if scheme and _FRAGMENT_IN_AUTHORITY.match(text, scheme.end()):
        raise refused
    try:
        parts = urlsplit(text)
    except ValueError:
        raise refused from None
    if scheme and not text.startswith("/", scheme.end()):  # `mailto:ann@example.com` has no path
        return URL(parts._replace(path=""))
    if _BAD_ESCAPE.search(parts.path) or not _HOST.fullmatch(parts.netloc.rpartition("@")[2]):
        raise refused
    return URL(parts)


def _is(text: str) -> bool:
    try:
        parse(text)
    except FunctionError:
        return False
    return True


def _host(url: URL) -> str:
    return unquote(url.parts.netloc.rpartition("@")[2])


def _hostname(url: URL) -> str:
    host = _host(url)
    if host.startswith("["):
        return host[1 : host.find("]")]
    return host.partition(":")[0]


def _port(url: URL) -> str:
    return _host(url).rpartition("]")[2].partition(":")[2]


def _escaped_path(url: URL) -> str:
    return quote(url.parts.path, safe=_SAFE)


def _query(meter: Meter, url: URL) -> dict[str, list[str]]:
    meter.charge(len(url.parts.query))
    # As upstream: a field with a semicolon or a bad escape is left out.
    fields = [field for field in url.parts.query.split("&") if not _BAD_FIELD.search(field)]
    try:
        return parse_qs("&".join(fields), keep_blank_values=True, max_num_fields=10_000)
    except ValueError:
        raise FunctionError("url's query has too many fields") from None


_U: Final = "kubernetes.URL"
OVERLOADS: Final[tuple[Overload, ...]] = (
    scanning(f"url(string) -> {_U}", parse),
    scanning("isURL(string) -> bool", _is),
    overload(f"<{_U}>.getScheme() -> string", lambda url: url.parts.scheme),
    overload(f"<{_U}>.getHost() -> string", _host),
    overload(f"<{_U}>.getHostname() -> string", _hostname),
    overload(f"<{_U}>.getPort() -> string", _port),
    overload(f"<{_U}>.getEscapedPath() -> string", _escaped_path),
    overload(f"<{_U}>.getQuery() -> map", _query, metered=True),
)
