"""Kubernetes' CEL libraries, by example: each expression is true."""

from __future__ import annotations

import pytest

from webhook.cel import CelError, Declarations, compile
from webhook.cel.libraries.authorizer import AccessDecision, Authorizer, Query

BASE = Declarations(variables={"o": None, "authorizer": None})
OBJECT = {
    "names": ["b", "a", "c"],
    "sizes": [3, 1, 2],
    "empty": [],
    "dash-ed": 1,
    "label": "x",
    "none": None,
    "mixed": [1, "a"],
}

TRUE = (
    # the language
    "[1, 2,].size() == 2 && {'a': 1,}.size() == 1",
    "true // a comment\n && 'a\\x62c' == 'abc'",
    # quantities
    "quantity('1Gi') == quantity('1024Mi')",
    "quantity('500m').add(quantity('1.5')).compareTo(quantity('2')) == 0",
    "quantity('2').sub(3).sign() == -1",
    "quantity('1k').asInteger() == 1000",
    "quantity('0.5').asApproximateFloat() == 0.5",
    "!quantity('500m').isInteger() && quantity('1e3').isInteger()",
    "quantity('200Ki').isGreaterThan(quantity('0.2Mi')) == false",
    "quantity('50k').isLessThan(quantity('50Ki'))",
    "sign(quantity('-1')) == -1 && isQuantity('Ki') && quantity('-').isInteger()",
    "!quantity('1000m').isInteger() && !quantity('1Pi').isInteger() && quantity('1Ti').isInteger()",
    "!quantity('9223372036854775807').isInteger() && quantity('100n').asApproximateFloat() > 1e-7",
    "quantity('1').add(quantity('500m')).sub(quantity('500m')) == quantity('1')",
    "quantity('0').add(quantity('1k')).asInteger() == 1000 && quantity('9Ei') == quantity('8Ei')",
    "isQuantity('1.3Gi') && isQuantity('-1') && isQuantity('1E') && !isQuantity('1Zi') && !isQuantity('')",
    # lists
    "['a', 'b'].isSorted() && !['b', 'a'].isSorted()",
    "o.names.sort() == ['a', 'b', 'c'] && o.names.reverse() == ['c', 'a', 'b']",
    "o.sizes.sum() == 6 && o.sizes.min() == 1 && o.sizes.max() == 3 && [].sum() == 0",
    "[duration('1m'), duration('30s')].sum() == duration('90s')",
    "o.names.indexOf('a') == 1 && o.names.indexOf('z') == -1 && [1, 2, 1].lastIndexOf(1) == 2",
    "o.sizes.slice(1, 3) == [1, 2]",
    "[1, [2, [3]]].flatten() == [1, 2, [3]] && [1, [2, [3]]].flatten(2) == [1, 2, 3]",
    "[1, 2, 1, 1u].distinct().size() == 2",
    "lists.range(3) == [0, 1, 2]",
    "o.names.map(n, {'n': n}).sortBy(e, e.n).map(e, e.n) == ['a', 'b', 'c']",
    "o.names.first().value() == 'b' && o.empty.last().orValue('none') == 'none'",
    # sets
    "sets.contains(o.names, ['a']) && !sets.contains(['a'], o.names) && sets.contains([1u], [1.0])",
    "sets.equivalent([1, 1, 2], [2u, 1]) && sets.intersects([1], [1, 2]) && !sets.intersects([], [1])",
    # regular expressions
    "'abc 123 456'.find('[0-9]+') == '123' && 'abc'.find('[0-9]+') == ''",
    "'123 abc 456'.findAll('[0-9]+') == ['123', '456'] && '1 2 3'.findAll('[0-9]', 2) == ['1', '2']",
    "'aaaa'.findAll('a*') == ['aaaa'] && '1a2'.findAll('a*') == ['', 'a', '']",
    "'abc'.findAll('\\\\b') == ['', '']",
    # URLs
    "url('https://example.com:80/path/a?k=v&k=w').getHost() == 'example.com:80'",
    "url('https://[::1]:80/').getHostname() == '::1' && url('https://[::1]:80/').getPort() == '80'",
    "url('https://example.com?k=a&k=b&k=c').getQuery() == {'k': ['a', 'b', 'c']}",
    "url('/a%20b/c').getEscapedPath() == '/a%20b/c'",
    "url('/absolute').getScheme() == '' && url('ftp://x/y').getScheme() == 'ftp'",
    "isURL('https://a.b') && isURL('/x') && !isURL('a.b/c') && !isURL('https://a:b/')",
    "url('https://a/b?k=v#top').getQuery() == {'k': ['v']} && url('/a#b').getEscapedPath() == '/a'",
    "url('mailto:ann@a.b').getEscapedPath() == '' && url('https://a:99999').getPort() == '99999'",
    "url('/?a=1;b=2&c=%zz&d=1').getQuery() == {'d': ['1']}",
    "!isURL('http://a#b') && isURL('http://a/#b') && !isURL('http://[::1%a]/')",
    "url('http://[fe80::1%25eth0]:80/').getHost() == '[fe80::1%eth0]:80'",
    "isURL('/a b') && !isURL('https://a b/') && !isURL('https://a%41/') && !isURL('/a?b\tc')",
    # addresses
    "ip('10.0.0.1').family() == 4 && isIP('::1') && !isIP('10.0.0.256') && isCIDR('10.0.0.0/8')",
    "cidr('10.0.0.0/8').containsIP('10.255.0.1') && cidr('10.1.0.0/8').masked() == cidr('10.0.0.0/8')",
    "!isIP('::ffff:1.2.3.4') && ip('::ffff:102:304') == ip('1.2.3.4')",
    "string(ip('64:ff9b::1.2.3.4')) == '64:ff9b::102:304' && ip('::1.2.3.4').family() == 6",
    # versions
    "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))",
    "semver('1.0.0-2').isLessThan(semver('1.0.0-10')) && semver('1.0.0+a').compareTo(semver('1.0.0+b')) == 0",
    "semver('v1.2', true).minor() == 2 && !isSemver('v1.2') && isSemver('01.2.3', true)",
    "semver('1.2.3').major() == 1 && semver('1.2.3').patch() == 3 && !isSemver('01.2.3')",
    "!isSemver('1.2-rc.1', true) && !isSemver('v1+b', true) && isSemver('1.02.3-rc.1', true)",
    "semver('18446744073709551615.0.0').minor() == 0 && !isSemver('18446744073709551616.0.0')",
    "isSemver('1.2.3-18446744073709551615') && !isSemver('1.2.3-18446744073709551616')",
    # named formats
    "!format.dns1123Label().validate('my-label').hasValue()",
    "format.named('dns1123Label').value().validate('Not_A_Label').hasValue()",
    "!format.named('nope').hasValue() && format.uuid().validate('x').value().size() == 1",
    "!format.qualifiedName().validate('example.com/name').hasValue()",
    "format.labelValue().validate('-').hasValue() && !format.labelValue().validate('').hasValue()",
    "!format.dns1123SubdomainPrefix().validate('a.b-').hasValue()",
    "!format.date().validate('2026-01-31').hasValue() && format.date().validate('2026-02-31').hasValue()",
    "!format.datetime().validate('2026-01-31T10:00:00Z').hasValue()",
    "format.byte().validate('!').hasValue()",
    # strings
    "'%s has %d'.format(['a', 2]) == 'a has 2' && strings.quote('a\"b') == '\"a\\\\\"b\"'",
    "'%.000002f %f'.format([1234.5, -0.0000001]) == '1,234.50 -0.000000'",
    "'%e|%.14e'.format([0.00012, 12.5]) == '1.200000×10⁻⁰⁴| 1.250000×10⁰¹'",
    "'%f %.9e'.format(['-Infinity', 1e300 * 1e300]) == '-∞         ∞'",
    "'%s'.format([{'k': [1, 2.5, 'a\"']}]) == r'{\"k\":[1, 2.500000, \"a\\\"\"]}'",
    "'%s'.format([[b'x', null, int, 'ü\\t']]) == r'[b\"x\", null, int, \"ü\\t\"]'",
    "'%s'.format([[timestamp(0), 2.5]]) == '[timestamp(\"1970-01-01T00:00:00Z\"), 2.500000]'",
    "'%s %s'.format([2.5, [duration('1.5s')]]) == '2.5 [duration(\"1.5s\")]'",
    "'tacocat'.indexOf('a', 30) == -1 && 'tacocat'.lastIndexOf('a', 30) == -1 && 'ab'.indexOf('', 9) == 2",
    "bool('T') && !bool('F') && double('1_000.5') == 1000.5",
    # times
    "string(timestamp('2026-03-01T00:30:00+05:30') - duration('1h')) == '2026-02-28T23:30:00+05:30'",
    "timestamp('2026-01-01T00:00:00Z').getHours('-2:00') == 22",
    "timestamp('0001-01-01T00:00:00Z').getFullYear('-02:00') == 0",
    "timestamp('9999-12-31T23:30:00Z').getFullYear('Asia/Kolkata') == 10000",
    "timestamp('9999-12-31T23:30:00Z').getDayOfWeek('Asia/Kolkata') == 6",
    "'a,b'.split(',').join('-') == 'a-b' && 'Abc'.lowerAscii() == 'abc' && ' x '.trim() == 'x'",
    # durations
    "duration('1.5s').getMilliseconds() == 1500 && duration('-90m').getMilliseconds() == -5400000",
    # optionals
    "o.?label.orValue('d') == 'x' && o.?nope.orValue('d') == 'd' && o[?'nope'].?deeper.hasValue() == false",
    "o.?label.optMap(l, l + '!').value() == 'x!' && [?o.?nope, ?o.?label] == ['x']",
    "!has(o.label.x) && !has(o.none.x) && !has(o.?label.x)",
    "!o.?label.x.hasValue() && !o.?label.?x.hasValue() && !o.label[?0].hasValue()",
    "!optional.ofNonZeroValue(timestamp('0001-01-01T00:00:00Z')).hasValue()",
    "optional.of(1).orValue(1 / 0) == 1 && optional.none().or(optional.of(2)).value() == 2",
    # two-variable macros
    "o.sizes.all(i, v, v > 0 && i < 3) && {'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
    "o.names.transformMapEntry(i, v, {v: i}) == {'b': 0, 'a': 1, 'c': 2}",
    # escaped property names
    "o.dash__dash__ed == 1 && has(o.dash__dash__ed) && o.`dash-ed` == 1",
    "authorizer.group('').resource('pods').check('create').errored()",
)  # fmt: skip
ERRORS = (
    "quantity('x') == quantity('1')",
    "quantity('1.5').asInteger() == 1",
    "o.empty.min() == 1",
    "o.mixed.sort() == []",
    "[null].sort() == []",
    "o.?sizes.x.hasValue()",
    "has(o.sizes.x)",
    "has(o.none.x.y)",
    "'%d'.format([1.5]) == '1.5'",
    "'%f'.format([1]) == '1'",
    "'%s'.format([b'\\xff']) == ''",
    "timestamp(o.label + '2026-12-01t00:00:00z') == timestamp(0)",
    "quantity('1Ei').asInteger() == 1",
    "o.mixed.sum() == 0",
    "o.sizes.slice(2, 1) == []",
    "lists.range(-1) == []",
    "url('a.b') == url('/')",
    "'x'.matches(o.names[0] + '(')",
    "'%.001001f'.format([1.5]) == ''",
    "'%.\u0662f'.format([1.5]) == '1.50'",
    "semver('1.2') == semver('1.2.0')",
    "optional.none().value() == 1",
    "o.names.transformMapEntry(i, v, {'k': i}) == {}",
    "authorizer.path('/healthz').check('get').allowed()",
)
ABSENT = (
    "math.greatest(1, 2) == 2",
    "base64.encode(b'a') == 'YQ=='",
    "cel.bind(x, 1, x) == 1",
    "'ab'.reverse() == 'ba'",
)


@pytest.mark.parametrize("text", TRUE)
def test_the_library_works_as_documented(text: str) -> None:
    """What Kubernetes documents of its functions holds."""
    assert compile(text, BASE).evaluate({"o": OBJECT, "authorizer": Authorizer()}) is True


@pytest.mark.parametrize("text", ERRORS)
def test_a_wrong_argument_is_an_error(text: str) -> None:
    """What has no answer is an error of evaluation, with a short message."""
    program = compile(text, BASE)
    with pytest.raises(CelError) as caught:
        program.evaluate({"o": OBJECT, "authorizer": Authorizer()})
    assert caught.value.kind == "evaluation"
    assert len(caught.value.message) < 100


@pytest.mark.parametrize("text", ABSENT)
def test_what_kubernetes_lacks_is_lacking_here_until_asked_for(text: str) -> None:
    """math, base64, cel.bind and later string functions are off in the base environment, and can be had."""
    with pytest.raises(CelError) as caught:
        compile(text, BASE)
    assert caught.value.kind in ("undeclared", "type")
    extended = Declarations(libraries=frozenset({"math", "base64", "bind", "strings"}))
    assert compile(text, extended).evaluate({}) is True


def test_an_unknown_library_is_refused() -> None:
    """A library's name that does not exist is a mistake of the host's."""
    with pytest.raises(ValueError, match="unknown CEL library maths"):
        compile("1", Declarations(libraries=frozenset({"maths"})))


def test_the_authorizer_asks_the_host() -> None:
    """A host's Access gets the whole query and its answer is the expression's."""
    asked: list[Query] = []

    class Access:
        def check(self, query: Query) -> AccessDecision:
            asked.append(query)
            return AccessDecision(query.verb == "get", reason="by role")

    text = "authorizer.serviceAccount('ns', 'sa').group('apps').resource('deployments').subresource('scale')"
    text += ".namespace('ns').name('web').check('get').allowed()"
    assert compile(text, BASE).evaluate({"authorizer": Authorizer(Access())}) is True
    assert asked == [
        Query(
            group="apps",
            resource="deployments",
            subresource="scale",
            namespace="ns",
            name="web",
            verb="get",
            service_account=("ns", "sa"),
        )
    ]
