# SPDX-License-Identifier: MIT
"""What sessions reach by the allow lists of their environments, with the tools that people use; and what they are told of
the rest."""
import json
import os
import shlex
import subprocess

import pytest

import sitelib
from daemonlib import NOBODY, as_user, wait_for
from hostlib import HostDaemon
from netlib import HOST4, OTHER4, PUBLIC4
from weblib import blob

LIST = ["tls.example", "plain.example", "*.sub.example:443", "!no.sub.example", "inner.example", "plain.example:8080"]
OTHERS = ["python", "shell", "node"]
CONFIG = {"environments": {**{e: {"network": LIST} for e in OTHERS},
                           "nothing": {"preset": "shell", "network": []}, "none": {"preset": "shell"},
                           "exception": {"preset": "python", "network": [*LIST, "!plain.example"]}},
          "snapshots": {"enabled": False}}
CURL = "curl -sS --max-time 20 --cacert ca.pem"
PIP = "/usr/bin/python3 -m pip install -vvv --disable-pip-version-check --no-cache-dir --retries 0 --cert ca.pem --target to"
NPM = "npm install --no-audit --no-fund --fetch-retries=0 --cafile=ca.pem --loglevel=error"
NODE = """const https = require("https"), fs = require("fs")
await new Promise(done => https.get("https://%s/hello", { ca: fs.readFileSync("/workspace/ca.pem") }, r => {
  r.on("data", d => console.log(String(d).trim())); r.on("end", done) }).on("error", e => { console.log(e.message); done() }))"""
# Environment, the code (%s: the host), and what it says.
TOOLS = {
    "curl-https": ("shell", f"{CURL} https://%s/hello", "hello\n"),
    "curl-http": ("shell", "curl -sS --max-time 20 http://%s/hello", "hello\n"),
    "pip": ("shell", f"{PIP} --index-url https://%s/simple sandboxed >&2; cat to/sandboxed.py", "WORD = 'fetched'\n"),
    "npm": ("shell", f"{NPM} --registry=https://%s/npm/ sandboxed >&2; cat node_modules/sandboxed/index.js",
            "module.exports = 'fetched'\n"),
    "git": ("shell", "git -c http.sslCAInfo=ca.pem clone -q https://%s/repository.git; cat repository/file", "fetched\n"),
    "urllib-https": ("python", "print(fetch('https://%s/hello'))", "b'hello\\n'\n"),
    "urllib-http": ("python", "print(fetch('http://%s/hello'))", "b'hello\\n'\n"),
    "node-https": ("node", NODE, "hello\n"),
    "node-fetch": ("node", "console.log((await (await fetch('http://%s/hello')).text()).trim())", "hello\n"),
}
PLAIN = {"curl-http", "urllib-http", "node-fetch"}
NOT_LISTED = "is not in the allow list of this session's environment"


def tool_missing(tool):
    """Why it cannot be tried here, or None."""
    program = tool.partition("-")[0]
    if program == "pip":
        done = subprocess.run(["/usr/bin/python3", "-m", "pip", "--version"], capture_output=True, timeout=30, check=False)
        return None if done.returncode == 0 else "/usr/bin/python3 has no pip"
    if program not in ("curl", "npm", "git"):
        return None
    return None if os.access(f"/usr/bin/{program}", os.X_OK) else f"no /usr/bin/{program}"


def fresh(world):
    """Names as they are at the start of each test, and no contacts."""
    for name in "tls.example", "plain.example", "one.sub.example":
        world.dns.set(name, PUBLIC4)
    for name in "other.example", "no.sub.example":
        world.dns.set(name, OTHER4)
    world.dns.set("inner.example", HOST4)
    world.contacts()


@pytest.fixture(scope="module")
def module_host(world, programs):
    world.internet.files.update(sitelib.site("https://tls.example"))
    with HostDaemon(world.network, CONFIG, programs=programs) as d:
        yield d


@pytest.fixture
def host(world, module_host):
    fresh(world)
    return module_host


def notices(reply):
    return (reply["notice"] or "").splitlines()


def refusal(where, env):
    return f"network: refused {where} (not in the allow list of environment {env})"


def event(d, session, word):
    """The events of a word, once there is one: {detail, by}."""
    sid = d.show(session)["id"]

    def found():
        return [e for e in d.call("Events")["events"] if e["session"] == sid and e["event"] == word]
    return wait_for(found)


def audited(d, session, word):
    """The same of the audit trail, as sandboxctl prints it."""
    sid = d.show(session)["id"]

    def found():
        done = d.ctl("audit")
        assert done.returncode == 0, done.stderr
        return [line for line in done.stdout.splitlines() if word in line and sid in line]
    return wait_for(found)


# Tools

@pytest.mark.parametrize("tool", TOOLS)
def test_tool_fetches(world, host, tool):
    if why := tool_missing(tool):
        pytest.skip(why)
    env, code, says = TOOLS[tool]
    s = host.session(world.certificate, env)
    reply = host.run(code % shlex.quote("tls.example"), s, env, timeout_ms=60000)
    assert (reply["stdout"], reply["notice"]) == (says, None), reply
    assert set(world.contacts()) == {(PUBLIC4, 80 if tool in PLAIN else 443)}
    u = host.wait_usage(s, lambda u: u["connections"] and not u["connections_open"] and u["bytes_in"])
    assert u["refused"] == u["failed"] == 0 and u["bytes_out"] > 0


@pytest.mark.parametrize("tool", TOOLS)
def test_tool_is_refused(world, host, tool):
    """It ends by itself, and everybody is told."""
    if why := tool_missing(tool):
        pytest.skip(why)
    env, code, says = TOOLS[tool]
    port = 80 if tool in PLAIN else 443
    where = f"other.example:{port}"
    s = host.session(world.certificate, env)
    reply = host.run(code % "other.example", s, env, timeout_ms=60000)
    assert says not in reply["stdout"] and refusal(where, env) in notices(reply), reply
    said = reply["stdout"] + reply["stderr"]
    assert NOT_LISTED in said or tool not in PLAIN and "403" in said, said
    assert world.contacts() == [] and world.dns.questions("other.example") == []
    assert host.wait_usage(s, lambda u: u["refused"])["connections"] == 0
    found = event(host, s, "network_refused")
    assert found[0]["detail"].startswith(f"host=other.example port={port} reason=not-listed count=")
    assert "other.example" in audited(host, s, "network_refused")[0]


def test_a_session_fetches_everything(world, host):
    """One session, one state: tools beside each other, and more than a little."""
    s = host.session(world.certificate)
    assert host.run("a = fetch('https://tls.example/hello'); b = fetch('https://one.sub.example/hello'); c = fetch('http://plain.example:8080/hello')\n"
                    "print(a, b, c)", s, "python")["stdout"] == "b'hello\\n' " * 2 + "b'hello\\n'\n"
    assert host.run("import hashlib\nprint(hashlib.sha256(fetch('https://tls.example/blob?9000000')).hexdigest())", s, "python",
                    timeout_ms=60000)["stdout"] == digest(blob(9000000)) + "\n"
    assert host.wait_usage(s, lambda u: u["bytes_in"] > 9000000)["connections"] == 4
    assert host.run("print(a)", s, "python")["stdout"] == "b'hello\\n'\n"


def digest(data):
    import hashlib
    return hashlib.sha256(data).hexdigest()


def test_certificates_are_the_clients_business(world, host):
    """What the proxy passes on is the origin's TLS: who does not trust its certificate fails, and a name it is not for."""
    s = host.session(world.certificate)
    assert "CERTIFICATE_VERIFY_FAILED" in host.run("print(fetch('https://tls.example/hello', context=None))", s, "python")["stdout"]
    assert "doesn't match" in (said := host.run("print(fetch('https://plain.example/hello'))", s, "python")["stdout"]) or "mismatch" in said
    assert host.run("t = secure.wrap_socket(tunnel('tls.example:443')[0], server_hostname='tls.example'); print(t.getpeercert()['subject'][0][0][1])",
                    s, "python")["stdout"] == "tls.example\n"


# What is refused

def test_sentence_for_the_tool(world, host):
    s = host.session(world.certificate)
    reply = host.run("print(fetch('http://other.example/hello'))", s, "python")
    assert f"(403, 'other.example:80 {NOT_LISTED}" in reply["stdout"].replace('"', "'")
    assert notices(reply) == [refusal("other.example:80", "python")]
    s, reply = s, host.run("print(fetch('https://other.example/hello'))", s, "python")
    assert "Tunnel connection failed: 403" in reply["stdout"]


@pytest.mark.parametrize("url, where", [
    ("http://plain.example:81/", "plain.example:81"), ("https://sub.example/", "sub.example:443"), ("http://one.sub.example/", "one.sub.example:80"),
    (f"http://{PUBLIC4}/", f"{PUBLIC4}:80"), ("http://127.0.0.1.plain.example/", "127.0.0.1.plain.example:80"), (f"http://{HOST4}/", f"{HOST4}:80"),
    ("http://[2606:2800:220::34]/", "[2606:2800:220::34]:80")])
def test_anything_else_is_refused(world, host, url, where):
    s = host.session(world.certificate)
    reply = host.run(f"print(fetch({url!r}))", s, "python")
    assert "403" in reply["stdout"] and notices(reply) == [refusal(where, "python")], reply
    assert world.contacts() == []


def test_exception_and_address(world, host):
    """Reasons of other kinds have their words."""
    s = host.session(world.certificate)
    reply = host.run("print(fetch('http://no.sub.example/')); print(fetch('http://inner.example/'))", s, "python")
    assert "exception of the allow list" in reply["stdout"] and f"leads to {HOST4}" in reply["stdout"]
    exception, address = notices(reply)
    assert exception.startswith("network: refused no.sub.example:80 (") and "exception" in exception
    assert address.startswith("network: refused inner.example:80 (") and HOST4 in address
    assert world.contacts() == []


def test_repeated_refusals_are_one_line(world, host):
    s = host.session(world.certificate)
    reply = host.run("for _ in range(50): fetch('http://other.example/')", s, "python")
    assert len(notices(reply)) == 1 and notices(reply)[0].startswith("network: refused other.example:80 (not in the allow list"), reply
    host.wait_usage(s, lambda u: u["refused"] == 50)


def test_many_refusals_do_not_flood(world, host):
    """A turn's notice and the events stay short, whatever the code asks for."""
    s = host.session(world.certificate)
    reply = host.run("for n in range(300): fetch('http://host%d.other.example/' % n)", s, "python", timeout_ms=60000)
    assert len(reply["notice"]) < 8192 and notices(reply)[0] == refusal("host0.other.example:80", "python"), reply["notice"]
    host.wait_usage(s, lambda u: u["refused"] == 300)
    sid = host.show(s)["id"]
    assert len([e for e in host.call("Events")["events"] if e["session"] == sid and e["event"] == "network_refused"]) <= 128
    assert host.run("echo ok", env="none")["stdout"] == "ok\n"


def test_refusal_belongs_to_its_turn(world, host):
    s = host.session(world.certificate)
    assert notices(host.run("fetch('http://other.example/')", s, "python"))
    assert host.run("fetch('http://plain.example/')", s, "python")["notice"] is None


def test_hostile_names_are_quoted(world, host):
    s = host.session(world.certificate)
    code = """
for name in "x\\x1b[2Jevil", "a" * 300 + ".example", "a b.example", "\\xff.example", "other.example\\\\nnetwork: allowed":
    s = socket.create_connection(("127.0.0.1", 3128), 25)
    s.sendall(f"CONNECT {name}:443 HTTP/1.1\\r\\nHost: {name}:443\\r\\n\\r\\n".encode("latin-1"))
    print(s.recv(99)[9:12])
"""
    reply = host.run(code, s, "python")
    assert set(reply["stdout"].split()) <= {"b'403'", "b'400'"} and len(reply["stdout"].split()) == 5
    assert all(line.startswith("network: refused ") and line.isprintable() for line in notices(reply)), reply["notice"]
    assert "network: allowed" not in notices(reply)


# Lists

def test_nothing_is_listed(world, host):
    reply = host.run("curl -sS http://plain.example/; echo; echo $http_proxy", env="nothing")
    assert NOT_LISTED in reply["stdout"] and reply["stdout"].endswith("\nhttp://127.0.0.1:3128\n")
    assert notices(reply) == [refusal("plain.example:80", "nothing")] and world.contacts() == []


def test_no_network_at_all(world, host):
    s = host.name()
    reply = host.run("(exec 3<>/dev/tcp/127.0.0.1/3128) 2>/dev/null && echo REACHED; echo [$http_proxy]", s, env="none")
    assert (reply["stdout"], reply["notice"]) == ("[]\n", None)
    assert host.show(s)["network"] is None


def test_session_of_an_exception(world, host):
    s = host.session(world.certificate, "exception")
    reply = host.run("print(fetch('http://plain.example/')); print(fetch('http://tls.example/'))", s, "exception")
    assert "exception of the allow list" in reply["stdout"] and reply["stdout"].endswith("b'hello\\n'\n")


def test_narrowed_by_the_caller(world, host):
    s = host.session(world.certificate, network=["tls.example", "other.example"])
    reply = host.run("print(fetch('https://tls.example/hello')); print(fetch('http://plain.example/hello')); print(fetch('http://other.example/hello'))",
                     s, "python", network=["plain.example"])             # which is ignored by now
    allowed, narrowed, other = reply["stdout"].splitlines()
    assert allowed == "b'hello\\n'" and "not in the narrower one" in narrowed and NOT_LISTED in other
    lines = notices(reply)
    assert any(line.startswith("network: refused plain.example:80 (") for line in lines)
    assert refusal("other.example:80", "python") in lines
    assert host.usage(s)["narrowed"] == ["tls.example", "other.example"] and host.usage(s)["allow"] == LIST


def test_narrowed_to_nothing(world, host):
    s = host.session(world.certificate, network=[])
    assert "not in the narrower one" in host.run("print(fetch('http://plain.example/'))", s, "python")["stdout"]
    assert host.usage(s)["narrowed"] == [] and world.contacts() == []


def test_narrowing_of_what_has_no_network(host):
    s = host.name()
    reply = host.run("echo ok", s, env="none", network=["plain.example"])
    assert reply["stdout"] == "ok\n" and "has no network" in reply["notice"]
    assert host.run("echo ok", host.name(), env="none", network=[])["notice"] is None


@pytest.mark.parametrize("rules", [["no dots"], ["*.org"], [""], ["plain.example:0"], ["plain.example"] * 1025, ["@python-packages"]])
def test_rules_that_are_none(host, rules):
    e = host.refused("Run", code="true", environment="shell", network=rules)
    assert e.name in ("org.varlink.service.InvalidParameter", "InvalidParameter", "LimitExceeded") and e.parameters


def test_by_sandboxctl(world, host):
    name = host.name()
    done = host.ctl("run", "-e", "shell", "-s", name, "--network", "tls.example,other.example", "-", stdin=b"curl -sS http://plain.example/; curl -sS http://tls.example/")
    assert "not in the narrower one" in done.stdout and done.stdout.endswith("hello\n") and "network: refused plain.example:80" in done.stderr
    shown = host.ctl("show", name).stdout
    assert "plain.example" in shown and "tls.example" in shown
    assert "plain.example" in host.ctl("envs").stdout
    status, found = host.json("show", name)
    assert status == 0 and "network" in json.dumps(found)


# Wider

def test_allowed_by_root(world, host):
    s = host.session(world.certificate, network=["tls.example"])
    before = host.run("print(fetch('http://other.example/hello'))", s, "python")["stdout"]
    reply = host.call("Set", session=s, project=host.project, allow=["other.example", "!tls.example"])
    assert reply["session"]["network"]["granted"] == ["other.example", "!tls.example"]
    said = host.run("print(fetch('http://other.example/hello')); print(fetch('http://tls.example/hello')); print(fetch('http://plain.example/hello'))",
                    s, "python")["stdout"].splitlines()
    assert NOT_LISTED in before and said[0] == "b'hello\\n'" and "403" in said[1] and "403" in said[2]
    found = event(host, s, "network_allowed")
    assert found[0]["by"] == 0 and "other.example" in found[0]["detail"] and "!tls.example" in found[0]["detail"]
    assert "other.example" in audited(host, s, "network_allowed")[0]
    again = host.session(world.certificate)
    assert NOT_LISTED in host.run("print(fetch('http://other.example/hello'))", again, "python")["stdout"]


def test_allowed_where_nothing_was(world, host):
    name = host.name()
    host.run(":", name, "nothing")
    assert host.ctl("set", name, "--allow", "plain.example,one.sub.example").returncode == 0
    assert host.run("curl -sS http://plain.example/hello http://one.sub.example/hello", name, "nothing")["stdout"] == "hello\nhello\n"


def test_allowed_while_a_turn_runs(world, host):
    s = host.session(world.certificate)
    link = host.begin("import os, time\nopen('up', 'w')\nwhile isinstance(x := fetch('http://other.example/hello'), tuple): time.sleep(0.05)\nprint(x)",
                      s, "python")
    host.wait_usage(s, lambda u: u["refused"])
    host.call("Set", session=s, project=host.project, allow=["other.example"])
    assert link.answer()["stdout"] == "b'hello\\n'\n"
    link.close()


def test_not_allowed_where_there_is_no_network(host):
    name = host.name()
    host.run(":", name, "none")
    e = host.refused("Set", session=name, project=host.project, allow=["plain.example"])
    assert e.name == "NotSupported" and "no network" in e.message


def test_not_allowed_by_a_user(world, host):
    """Neither in his own session nor in another's."""
    foreign = host.session(world.certificate)
    found = as_user(NOBODY, f"""
with Link({host.sock!r}) as link:
    link.call("Run", code=":", session="mine", environment="shell", project="/test")
    said = []
    for name in "mine", {foreign!r}:
        try:
            link.call("Set", session=name, project="/test", allow=["other.example"]); said.append("done")
        except VarlinkError as e:
            said.append(e.name)
    code = link.call("Run", code="curl -sS http://other.example/hello", session="mine", environment="shell", project="/test")
    link.call("Kill", session="mine", project="/test")
    print(json.dumps([said, code["stdout"]]))
""")
    assert found[0][0] == "PermissionDenied" and found[0][1] in ("NoSuchSession", "PermissionDenied") and NOT_LISTED in found[1]
    assert host.usage(foreign)["granted"] == []
