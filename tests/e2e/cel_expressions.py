"""Random CEL expressions over the functions of Kubernetes' environment, most of them well typed.

Not drawn is what has no defined order (the entries of a map that become a list), and what Bayplan refuses on
purpose: keys of maps that JSON cannot have, and keys that are repeated.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any, Final

OBJECT: Final[dict[str, Any]] = {
    "i": 7,
    "zero": 0,
    "negative": -3,
    "largest": 9223372036854775807,
    "double": 2.5,
    "text": "gang-α/0",
    "flag": True,
    "none": None,
    "ints": [3, -1, 0, 3],
    "names": ["a", "bb", "", "ccc", "a"],
    "doubles": [1.5, -2.0, 3.0],
    "mixed": [1, "a", 2.5, None, True, [1], {"a": 1}],
    "nested": [[1, [2, [3]]], [], [4]],
    "map": {"a": 1, "b": [1, 2], "c": {"d": "x"}, "x/y": "z"},
    "spec": {"replicas": 4, "memory": "64Gi", "containers": [{"name": "main"}, {"ports": [80, 443]}]},
    "time": "2026-12-01T10:20:30.5Z",
    "span": "1h30m",
}
WRONG_TYPE: Final = 0.02
"""The part of operands that are of some other type: mostly errors, which both sides must have."""
SHORT: Final = 0.12
"""The part of operands that are not nested further, whatever the depth."""


def _texts(function: str, *texts: str) -> list[str]:
    return [f"{function}('{text}')" for text in texts]


LEAVES: Final[dict[str, list[str]]] = {
    "int": [
        *("0", "1", "-1", "2", "7", "10", "64", "-5", "0x1F", "9223372036854775807", "-9223372036854775808"),
        *("object.i", "object.zero", "object.negative", "object.largest", "object.ints[0]", "object.map.a"),
        *("object.spec.replicas", "object.spec.missing", "size(object.text)"),
    ],
    "uint": ["0u", "1u", "7u", "0xFu", "18446744073709551615u"],
    "double": [
        *("0.0", "1.0", "-2.5", "0.1", ".5", "2.675", "1e-7", "1e6", "1e21", "1e300", "123456789.125"),
        *("object.double", "object.doubles[1]"),
    ],
    "string": [
        *(
            "''",
            "'a'",
            "'bb'",
            "'α'",
            "'aßΣ'",
            "'a,b,,c'",
            "'  x '",
            "'😀x'",
            r"'\n'",
            r"r'\d+'",
            "'%d'",
            "'T'",
        ),
        *("'true'", "'tRuE'", "'12'", "'-7'", "'+5'", "' 5'", "'1.5'", "'1e3'", "'1_000'", "'NaN'", "'inf'"),
        *(
            "'99999999999999999999'",
            "'A.b_c-D'",
            "object.text",
            "object.names[1]",
            "object.time",
            "object.span",
        ),
        "object.spec.memory",
    ],
    "bool": [
        *("true", "false", "object.flag", "has(object.spec)", "has(object.missing)", "has(object.none.deep)"),
        *("'a' in object.map", "3 in object.ints", "object.none == null"),
    ],
    "bytes": ["b''", "b'abc'", r"b'\xff'", "b'α'", r"b'\x00\x01'"],
    "ints": ["[1, 2, 3]", "[3, 1, 2]", "[7, 7]", "object.ints", "object.map.b"],
    "strings": ["['a', 'b']", "['b', 'a', 'b']", "object.names", "''.split('')"],
    "doubles": ["[1.5, 2.5]", "object.doubles"],
    "anys": ["object.mixed", "object.nested", "object.spec.containers", "[[1], [2, 3]]", "[null]", "[]"],
    "map": ["{}", "{'a': 1}", "{1: 'x'}", "{true: 1}", "object.map", "object.spec", "{'k': [1, 2]}"],
    "duration": [
        *_texts("duration", "1h", "1m30s", "-1.5s", "100ms", "1us", "0", "1d", ".5h", "1h1h", "+3s", "1µs"),
        "duration(object.span)",
    ],
    "timestamp": [
        *_texts(
            "timestamp", "2026-12-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z"
        ),
        *_texts("timestamp", "2024-02-29T23:59:59+05:30", "2026-06-30T12:00:00.123456789-23:59"),
        *("timestamp(object.time)", "timestamp(0)", "timestamp(1000000000)"),
    ],
    "quantity": [
        *_texts("quantity", "1", "0", "500m", "2Gi", "1e3", "1.5", "-1", "1Ki", "100n", "1u", "1E", "1.1Gi"),
        *_texts(
            "quantity", "9223372036854775807", "12345678901234567890", "1Ei", "1k", "+1", "1.", "Ki", "1i"
        ),
        *("quantity(object.spec.memory)", "quantity('1000m')", "quantity('1Ti')", "quantity('')"),
    ],
    "ip": [
        *_texts("ip", "10.0.0.1", "::1", "127.0.0.1", "fe80::1", "224.0.0.1", "ff02::1", "::ffff:1.2.3.4"),
        *_texts("ip", "2001:db8::abcd", "0.0.0.0", "1.2.3", "01.2.3.4", "fe80::1%eth0", "2001:DB8::ABCD"),
    ],
    "cidr": _texts(
        *("cidr", "10.0.0.0/8", "192.168.0.5/24", "::/0", "2001:db8::/32", "10.0.0.0/33", "10.0.0.0/08"),
        *("1.2.3.4", "fe80::1/64", "0.0.0.0/0"),
    ),
    "url": [
        *_texts(
            "url",
            "https://a.b:80/c?d=e&d=f#g",
            "/x/y",
            "http://[::1]:8080/",
            "mailto:x@y",
            "nope",
            "http://h#f",
        ),
        *_texts(
            "url", "https://user:p@h/p%20q?a=1&b", "http://h/%zz", "//h/p", "HTTP://H.X/Y", "http://a b/"
        ),
        *_texts("url", "http://[fe80::1%25en0]/", "http://h?a=%41&a=;b"),
    ],
    "semver": [
        *_texts(
            "semver", "1.2.3", "1.2.3-alpha.1", "1.10.0", "v1.2.3", "1.2", "01.2.3", "1.2.3+b", "1.2.3-01"
        ),
        *("semver('v1.2', true)", "semver('01.02.3', true)", "semver('1.2.3.4', true)"),
    ],
    "type": [
        "int",
        "string",
        "list",
        "map",
        "type(object)",
        "type(1u)",
        "type(null)",
        "type(duration('1s'))",
    ],
    "optional": [
        *("optional.none()", "optional.of(1)", "optional.ofNonZeroValue(0)", "optional.ofNonZeroValue('')"),
        *(
            "object.?missing",
            "object.?i",
            "object.map[?'a']",
            "object.ints[?9]",
            "object.?none",
            "object.?text",
        ),
    ],
    "format": [f"format.{name}()" for name in ("dns1123Label", "uuid", "date", "datetime", "byte", "uri")],
    "any": ["1", "'a'", "null", "2.5", "1u", "b'a'", "true", "object.mixed", "object.map", "object.missing"],
}
NESTED: Final[dict[str, list[str]]] = {
    "int": [
        *(f"($int {operator} $int)" for operator in "+-*/%"),
        *("-$int", "($bool ? $int : $int)", "int($double)", "int($uint)", "int($string)", "int($timestamp)"),
        *("size($string)", "size($ints)", "$map.size()", "size($bytes)", "int($any)", "{'a': $int}.a"),
        *("$string.indexOf($string)", "$string.indexOf($string, $int)", "$string.lastIndexOf($string, $int)"),
        *("$ints.indexOf($int)", "$ints.lastIndexOf($int)", "$ints.sum()", "$ints.min()", "$ints.max()"),
        *("$ints[$int]", "$ints.filter(e, e > $int)[0]", "$timestamp.getFullYear()", "$timestamp.getMonth()"),
        *("$timestamp.getDayOfWeek()", "$timestamp.getDayOfYear()", "$timestamp.getDate('+05:30')"),
        *("$timestamp.getHours('America/New_York')", "$timestamp.getMilliseconds()", "$duration.getHours()"),
        *("$timestamp.getDayOfMonth('-02:00')", "$timestamp.getSeconds('Asia/Kolkata')"),
        *(
            "$duration.getMilliseconds()",
            "$duration.getSeconds()",
            "sign($quantity)",
            "$quantity.asInteger()",
        ),
        *("$quantity.compareTo($quantity)", "$ip.family()", "$cidr.prefixLength()", "$semver.minor()"),
        *("$semver.compareTo($semver)", "$optional.orValue($int)", "$anys.indexOf($any)"),
    ],
    "uint": [
        "uint($int)",
        "uint($double)",
        "uint($string)",
        "($uint + $uint)",
        "($uint - $uint)",
        "uint($any)",
    ],
    "double": [
        *("($double + $double)", "($double * $double)", "($double / $double)", "-$double", "double($int)"),
        *("double($uint)", "double($string)", "double($any)", "$quantity.asApproximateFloat()"),
        *("$doubles.sum()", "$doubles.max()", "$doubles[$int]"),
    ],
    "string": [
        *("($string + $string)", "string($int)", "string($double)", "string($bytes)", "string($timestamp)"),
        *("string($duration)", "string($ip)", "string($cidr)", "string($any)", "$string.charAt($int)"),
        *("$string.lowerAscii()", "$string.replace($string, $string, $int)", "$string.trim()"),
        *("$string.substring($int)", "$string.substring($int, $int)", "$strings.join($string)"),
        *("'%s|%d|%.2f'.format([dyn($any), dyn($int), dyn($double)])", "'%s'.format([$any])"),
        *("'%x %o %b'.format([$int, $int, $int])", "'%e'.format([$double])", "'%.15e'.format([$double])"),
        *("'%.0f'.format([$double])", "'%s %s'.format([dyn($map), dyn($anys)])", "'%d'.format([$any])"),
        *(
            "'%x'.format([$string])",
            "'%s'.format([$duration])",
            "'%s'.format([$type])",
            "'%f'.format([$any])",
        ),
        *("$string.find('[a-z]+')", "$string.find($string)", "$url.getScheme()", "$url.getHost()"),
        *("$url.getHostname()", "$url.getPort()", "$url.getEscapedPath()", "string($cidr.masked())"),
        *("$strings[$int]", "strings.quote($string)", "$strings.max()", "$optional.orValue($string)"),
        *("($bool ? $string : $string)", "string($type)"),
    ],
    "bool": [
        *("($bool && $bool)", "($bool || $bool)", "!$bool", "($int == $int)", "($int < $uint)"),
        *("($double >= $int)", "($string < $string)", "($any == $any)", "($bytes < $bytes)", "($any < $any)"),
        *("($duration < $duration)", "($timestamp > $timestamp)", "($any in $anys)", "($string in $map)"),
        *("$string.startsWith($string)", "$string.contains($string)", "$string.matches($string)"),
        *("$ints.all(e, e > $int)", "$ints.exists(e, e == $int)", "$ints.exists_one(e, e > $int)"),
        *("$map.all(k, k != '')", "$map.exists(k, v, v == $any)", "$strings.existsOne(i, v, v == $string)"),
        *("$ints.isSorted()", "isQuantity($string)", "$quantity.isGreaterThan($quantity)"),
        *("$quantity.isInteger()", "isIP($string)", "isCIDR($string)", "ip.isCanonical($string)"),
        *("$ip.isLoopback()", "$ip.isGlobalUnicast()", "$ip.isLinkLocalMulticast()", "($ip == $ip)"),
        *("$cidr.containsIP($ip)", "$cidr.containsCIDR($cidr)", "isURL($string)", "isSemver($string, $bool)"),
        *("$semver.isLessThan($semver)", "sets.contains($ints, $ints)", "sets.intersects($ints, $anys)"),
        *("sets.equivalent($anys, $anys)", "$optional.hasValue()", "$format.validate($string).hasValue()"),
        *("bool($string)", "(type($any) == $type)", "($anys == $anys)", "($map == $map)"),
        *("($optional == $optional)", "has(object.spec.replicas)", "format.named($string).hasValue()"),
    ],
    "bytes": ["bytes($string)", "($bytes + $bytes)", "bytes($any)"],
    "ints": [
        *("($ints + $ints)", "[$int, $int]", "$ints.map(e, e * $int)", "$ints.filter(e, e != $int)"),
        *("$ints.map(e, e > $int, e - 1)", "$ints.slice($int, $int)", "$ints.distinct()", "$ints.sort()"),
        *("$ints.reverse()", "lists.range($int)", "$ints.sortBy(e, -e)", "$anys.flatten($int)"),
        *("$ints.transformList(i, v, v > i, v)", "$string.split('').map(e, size(e))"),
    ],
    "strings": [
        *(
            "$string.split($string)",
            "$string.split($string, $int)",
            "$string.findAll($string)",
            "$strings.sort()",
        ),
        *("$string.findAll('[a-z0-9]+', $int)", "$strings.filter(e, e > $string)", "[$string, $string]"),
        *("$strings.map(e, e + $string)", "$strings.slice($int, $int)", "($strings + $strings)"),
    ],
    "doubles": ["[$double, $double]", "$doubles.sort()", "$doubles.map(e, e * $double)"],
    "anys": [
        *(
            "[dyn($any), dyn($any)]",
            "($anys + $anys)",
            "$anys.distinct()",
            "$anys.reverse()",
            "$anys.flatten()",
        ),
        *(
            "$anys.map(e, $any)",
            "$anys.filter(e, e != $any)",
            "$anys.slice($int, $int)",
            "$anys.sort()",
            "[$any]",
        ),
    ],
    "map": [
        *(
            "{'a': $any}",
            "{'a': $int, 'b': $int}",
            "$map.transformMap(k, v, v)",
            "{'a': $map}",
            "{$bool: $int}",
        ),
        *("$map.transformMap(k, v, k != 'a', $any)", "$ints.transformMap(i, v, v)", "$url.getQuery()"),
    ],
    "duration": [
        "($duration + $duration)",
        "($timestamp - $timestamp)",
        "duration($string)",
        "duration($any)",
    ],
    "timestamp": [
        "($timestamp + $duration)",
        "($timestamp - $duration)",
        "timestamp($int)",
        "timestamp($any)",
    ],
    "quantity": ["$quantity.add($quantity)", "$quantity.sub($quantity)", "$quantity.add($int)"],
    "ip": ["ip($string)", "$cidr.ip()"],
    "cidr": ["cidr($string)", "$cidr.masked()"],
    "url": ["url($string)"],
    "semver": ["semver($string)", "semver($string, true)"],
    "type": ["type($any)", "type($int)", "type($optional)"],
    "optional": [
        *("optional.of($any)", "optional.ofNonZeroValue($any)", "$map[?$string]", "$map.?a", "$optional.?a"),
        *("$optional.or($optional)", "$optional.optMap(e, e)", "$optional[?0]", "object.?map.c.?d"),
        *("object.?spec.containers[?0].name", "$optional.a", "optional.of($int)"),
    ],
    "format": ["$format"],
    "any": [f"${name}" for name in LEAVES if name not in ("any", "format")]
    + ["$map[$string]", "$anys[$int]"],
}
_WRONG: Final = [kind for kind in LEAVES if kind != "map"]
"""A map in place of a list has no order."""
_HOLE: Final = re.compile(r"\$(\w+)")


def expression(random: Random, depth: int) -> str:
    """A random expression of some type."""
    return _of(random, random.choice(list(NESTED)), depth)


def _of(random: Random, kind: str, depth: int) -> str:
    if random.random() < WRONG_TYPE:
        kind = random.choice(_WRONG)
    if depth <= 0 or random.random() < SHORT:
        return random.choice(LEAVES[kind])
    return _HOLE.sub(lambda hole: _of(random, hole[1], depth - 1), random.choice(NESTED[kind]))
