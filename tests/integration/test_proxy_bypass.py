# SPDX-License-Identifier: MIT
"""Tries to reach what a session may not. None succeeds: not one packet leaves the host for it, by what is seen on the
wire, where every address would answer. What names a host is told to the daemon."""
import pytest

from netlib import HOST4, HOST6, NAME_SERVER, OTHER4, OTHER6, PUBLIC4, PUBLIC6, ROUTER4, ROUTER6

RULES = ("allowed.example", "*.below.example", "led.example", "localhost", "here.example", "led.example:22")


@pytest.fixture(autouse=True)
def names(world):
    world.dns.set("allowed.example", PUBLIC4)
    for name in ("evil.example", "allowed.example.evil.example", "xallowed.example", "below.example", "xbelow.example",
                 "xn--llowed-53d.example", "allowed-example.evil.example", "x.allowed.example", "evil.example.allowed"):
        world.dns.set(name, OTHER4)
    world.contacts()


@pytest.fixture
def s(session):
    return session(*RULES)


# The target, and the host that is told.
TARGETS = [
    ("127.0.0.1", "127.0.0.1"), ("127.1.2.3", "127.1.2.3"), ("0.0.0.0", "0.0.0.0"), (PUBLIC4, PUBLIC4), (HOST4, HOST4),
    ("10.0.0.1", "10.0.0.1"), ("169.254.169.254", "169.254.169.254"), (NAME_SERVER, NAME_SERVER),
    ("[::1]", "[::1]"), ("[::]", "[::]"), ("[0:0:0:0:0:0:0:1]", "[::1]"), ("[::ffff:127.0.0.1]", "127.0.0.1"),
    ("[::ffff:7f00:1]", "127.0.0.1"), ("[0:0::0:ffff:7f00:0001]", "127.0.0.1"), ("[::ffff:169.254.169.254]", "169.254.169.254"),
    ("[::127.0.0.1]", "[::7f00:1]"), ("[64:ff9b::7f00:1]", "[64:ff9b::7f00:1]"), ("[2002:7f00:1::1]", "[2002:7f00:1::1]"),
    ("[fd00:ec2::254]", "[fd00:ec2::254]"), ("[fe80::1]", "[fe80::1]"), (f"[{PUBLIC6}]", f"[{PUBLIC6}]"), (f"[{HOST6}]", f"[{HOST6}]"),
    ("evil.example", "evil.example"), ("EVIL.Example", "evil.example"), ("evil.example.", "evil.example"),
    ("allowed.example.evil.example", "allowed.example.evil.example"), ("xallowed.example", "xallowed.example"),
    ("x.allowed.example", "x.allowed.example"), ("below.example", "below.example"), ("xbelow.example", "xbelow.example"),
    ("evil.example.allowed", "evil.example.allowed"), ("xn--llowed-53d.example", "xn--llowed-53d.example"), ("example", "example"),
]
# No host at all, however somebody else might read them.
NO_HOSTS = [
    "127.1", "127.0.1", "0", "1", "2130706433", "017700000001", "0177.0.0.1", "0x7f.1", "0x7f000001", "0x7f.0.0.0x1", "127.0.0.1.",
    "127.0.0.01", "256.0.0.1", "127.0.0.1.5", "4294967297", "0x", "1.0x7f", "allowed.example.1", "..", ".allowed.example",
    "allowed..example", "allowed.example..", "-allowed.example", "allowed-.example", "xn--a.example", "x" * 64 + ".below.example",
    "xn--.example", ("x" * 50 + ".") * 4 + "xxxxxx" + "x" * 50 + ".below.example",
]
# What is no target to any reader that is careful.
NO_TARGETS = [
    "allowed.example@evil.example:80", "allowed.example:80@evil.example:80", "@evil.example:80", "evil.example:80#@allowed.example:80",
    "evil.example#allowed.example:80", "evil.example?allowed.example:80", "evil.example/allowed.example:80", "evil.example\\allowed.example:80",
    "evil.example\\@allowed.example:80", "allowed.example%2eevil.example:80", "evil.example%2fallowed.example:80", "%65vil.example:80",
    "evil.example%00.below.example:80", "evil.example\0.below.example:80", "evil.example\r.below.example:80", "evil.example\n.below.example:80",
    "evil.example\t.below.example:80", "evil.example,allowed.example:80", "evil.example;allowed.example:80", "evil.example&allowed.example:80",
    "evil.example allowed.example:80", "allowed.example:80:22", "allowed.example", "allowed.example:", "allowed.example:0", "allowed.example:65616",
    "allowed.example:4294967376", "allowed.example:+80", "allowed.example:-65456", "allowed.example:080", "allowed.example:0x50",
    "allowed.example:80/", "http://allowed.example:80", "//allowed.example:80", ":80", "[:80", "[]:80", "[::1:80", "::1:80", "[::1]80",
    "[::1%25lo]:80", "[fe80::1%net0]:80", "[127.0.0.1]:80", "[allowed.example]:80", "[::ffff:127.0.0.1]@allowed.example:80",
    "127.0.0.1 :80", "$(evil).example:80",
    *(text.encode().decode("latin-1") + ":80" for text in (
        "evil\u3002example", "\uff45vil.example", "\u0430llowed.example", "allowed\uff0eexample", "127\u30020\u30020\u30021",
        "\uff11\uff12\uff17.0.0.1", "\u2460.0.0.1", "allowed\u00ad.example", "evil.example\u2044.below.example", "evil\u2488com:80")),
]
SPECIAL = [
    "127.0.0.1", "127.8.9.10", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.5.5", "172.31.255.254", "192.168.1.1", "169.254.169.254",
    "169.254.1.1", "100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.8", "198.18.0.1", "203.0.113.9", "224.0.0.251", "240.0.0.1",
    "255.255.255.255", HOST4, ROUTER4, "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "fe80::1", "fec0::1", "fc00::1",
    "fd00::1", "fd00:ec2::254", "64:ff9b::a00:1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::1", "2002:a00:1::1", "2001::1",
    "2001:db8::1", "100::1", "ff02::1", "ff0e::1", "4000::1", HOST6, ROUTER6,
]


def shown(text):
    return ascii(text)[:60]


@pytest.mark.parametrize("target, told", TARGETS, ids=[shown(t) for t, _ in TARGETS])
def test_host_that_is_not_listed(world, s, target, told):
    """By all three ways; each is told."""
    assert s.connect().tunnel(f"{target}:443").status == 403
    assert s.connect().get(f"http://{target}/").status == 403
    assert s.connect().socks(target.strip("[]"), 22) == 2
    refused = s.wait_refused(told, 3)
    assert {(r["port"], r["address"], r["verdict"], r["count"]) for r in refused} == {(p, None, "not-listed", 1) for p in (80, 443, 22)}
    assert not world.contacts() and not world.dns.questions(told)


@pytest.mark.parametrize("host", NO_HOSTS, ids=shown)
def test_no_host(world, s, host):
    assert s.connect().tunnel(f"{host}:80").status in (400, 403)
    assert s.connect().get(f"http://{host}/").status in (400, 403)
    assert s.connect().socks(host[:255], 80) != 0
    assert not world.contacts() and not world.dns.questions(host)


@pytest.mark.parametrize("target", NO_TARGETS, ids=shown)
def test_no_target(world, s, target):
    for request in (f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n", f"CONNECT {target} HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
                    f"CONNECT {target} HTTP/1.0\r\n\r\n"):
        answer = s.connect().request(request.encode("latin-1"))
        assert answer and answer.status == 400 and len(answer.text) > 10
    assert not world.contacts()


@pytest.mark.parametrize("address", SPECIAL)
def test_allowed_name_that_leads_to_a_special_address(world, s, address):
    world.dns.set("led.example", address)
    answer = s.connect().tunnel("led.example:443")
    assert answer.status == 403
    assert s.connect().get("http://led.example/").status == 403
    assert s.connect().socks("led.example", 22) == 2
    refused = [s.proxy.wait(lambda p=port: [r for r in s.refused() if r["port"] == p])[0] for port in (443, 80, 22)]
    assert {(r["host"], r["verdict"]) for r in refused} == {("led.example", "special-address")}
    assert len({r["address"] for r in refused}) == 1 and refused[0]["address"]
    assert not world.contacts()


@pytest.mark.parametrize("name", ["localhost", "here.example"])
def test_names_of_this_host(world, s, name):
    assert s.connect().tunnel(f"{name}:80").status == 403
    assert s.wait_refused(name)[0]["verdict"] == "special-address"
    assert not world.contacts()


@pytest.mark.parametrize("first, then", [
    (["10.0.0.1", PUBLIC4], PUBLIC4), ([PUBLIC4, "127.0.0.1", "::1"], PUBLIC4), (["fd00::1", PUBLIC6, HOST6], PUBLIC6),
    (["::1", "169.254.169.254", PUBLIC4], PUBLIC4)])
def test_only_the_public_one_of_addresses(world, s, first, then):
    world.dns.set("led.example", *first)
    assert s.connect().get("http://led.example/").status == 200
    assert set(world.contacts()) == {(then, 80)}


def test_rebinding_between_two_questions(world, s):
    world.dns.set("led.example", turns=[[PUBLIC4], ["127.0.0.1"], ["10.0.0.1"], [PUBLIC4, "10.0.0.1"]])
    assert [s.connect().tunnel("led.example:80").status for _ in range(4)] == [200, 403, 403, 200]
    assert world.contacts() == [(PUBLIC4, 80), (PUBLIC4, 80)]
    # What was judged is what was connected to: nobody asked once more.
    assert len(world.dns.questions("led.example")) == 8


@pytest.mark.parametrize("end", [["127.0.0.1"], ["10.0.0.1", "fd00::1"], ["::1"]])
def test_alias_to_a_special_address(world, s, end):
    world.dns.set("inner.evil.example", *end)
    world.dns.set("middle.evil.example", alias="inner.evil.example")
    world.dns.set("led.example", alias="middle.evil.example")
    assert s.connect().tunnel("led.example:80").status == 403
    assert not world.contacts()


def test_an_alias_that_leads_to_a_public_address_is_reached(world, s):
    """The name that was asked for is the listed one; how its owner wrote it down is his business."""
    world.dns.set("led.example", alias="evil.example")
    assert s.connect().tunnel("led.example:80").status == 200
    assert world.contacts() == [(OTHER4, 80)]


@pytest.mark.parametrize("exception", [f"!{OTHER4}", f"!{OTHER4}:80"])
def test_exception_for_an_address(world, session, exception):
    s = session("led.example", exception)
    world.dns.set("led.example", OTHER4)
    assert s.connect().tunnel("led.example:80").status == 403
    assert s.wait_refused("led.example")[0]["verdict"] == "exception"
    assert not world.contacts()


@pytest.mark.parametrize("address", ["10.0.0.1", "fd00::1", "127.0.0.1"])
def test_an_address_that_is_listed_is_not_another_of_its_kind(world, session, address):
    rule = f"[{address}]" if ":" in address else address
    s = session("led.example", rule)
    world.dns.set("led.example", "10.0.0.2", "fd00::2", "127.0.0.2")
    assert s.connect().tunnel("led.example:80").status == 403
    assert not world.contacts()


def test_redirect_is_a_request_of_its_own(world, s):
    answer = s.connect().get("http://allowed.example/go?http://evil.example/")
    assert (answer.status, answer.fields["location"]) == (302, "http://evil.example/")
    assert s.connect().get(answer.fields["location"]).status == 403
    assert world.contacts() == [(PUBLIC4, 80)]


@pytest.mark.parametrize("host", ["ALLOWED.example", "allowed.example.", "x.below.example"])
def test_what_is_the_same_name_is_allowed(world, s, host):
    world.dns.set("x.below.example", PUBLIC4)
    assert s.connect().get(f"http://{host}/").status == 200
    assert world.contacts() == [(PUBLIC4, 80)]


def test_not_even_a_question_for_what_is_not_listed(world, s):
    """Names are a way out, too."""
    name = "secret-of-the-session.evil.example"
    s.connect().tunnel(f"{name}:443")
    s.wait_refused(name)
    assert not world.dns.questions(name) and OTHER6 not in [a for a, _ in world.contacts()]
