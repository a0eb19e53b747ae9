# SPDX-License-Identifier: MIT
"""The node driver with a network: a node that does not know proxies goes through one all the same."""
import contextlib
import http.server
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading

import pytest
from harness import Driver
from node_session import Session

SENTENCE = "Not in the list: secret.test. Ask your administrator."


class Origin(http.server.BaseHTTPRequestHandler):
    """Says what it was asked."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("transfer-encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        text = json.dumps([self.command, self.path, self.headers["host"], body.decode()]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_GET

    def log_message(self, *_):
        pass


class Proxy(http.server.BaseHTTPRequestHandler):
    """Every host but secret.test is one of the origins; what it was asked for is in server.asked."""
    protocol_version = "HTTP/1.1"

    def refuse(self):
        self.send_response(403, "Forbidden")
        self.send_header("content-length", str(len(SENTENCE)))
        self.end_headers()
        self.wfile.write(SENTENCE.encode())

    def do_CONNECT(self):
        self.server.asked.append(f"CONNECT {self.path}")
        if self.path.startswith("secret."):
            return self.refuse()
        port = self.server.ports[self.path.rpartition(":")[2]]
        with socket.create_connection(("127.0.0.1", port)) as there:
            self.wfile.write(b"HTTP/1.1 200 Fine\r\n\r\n")
            back = threading.Thread(target=copy, args=(there, self.connection))
            back.start()
            copy(self.connection, there)
            back.join()
        self.close_connection = True

    def do_GET(self):
        self.server.asked.append(f"{self.command} {self.path}")
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        match = re.fullmatch(r"http://([^/]+)(/.*)", self.path)
        if match is None or match[1].startswith("secret."):
            return self.refuse()
        assert self.headers["host"] == match[1]
        text = json.dumps([self.command, match[2], match[1], body.decode()]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_GET

    def log_message(self, *_):
        pass


def copy(a, b):
    with contextlib.suppress(OSError):
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)


class Machine:
    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="nix-sandbox-proxy-")
        self.cert, key = os.path.join(self.directory, "cert"), os.path.join(self.directory, "key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
                        "99", "-keyout", key, "-out", self.cert, "-subj", "/CN=site.test", "-addext",
                        "subjectAltName=DNS:site.test,IP:127.0.0.1"], check=True, stderr=subprocess.DEVNULL)
        self.plain, self.secure, self.proxy = (http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind)
                                               for kind in (Origin, Origin, Proxy))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, key)
        self.secure.socket = context.wrap_socket(self.secure.socket, server_side=True)
        self.proxy.asked = []
        self.proxy.ports = {"443": self.secure.server_port, "8443": self.secure.server_port,
                            "80": self.plain.server_port, "8080": self.plain.server_port}
        for server in (self.plain, self.secure, self.proxy):
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def env(self, **more):
        url = f"http://127.0.0.1:{self.proxy.server_port}"
        return {"http_proxy": url, "https_proxy": url, "no_proxy": "localhost,127.0.0.1,::1", "NODE_USE_ENV_PROXY": "1",
                "NODE_EXTRA_CA_CERTS": self.cert, **more}

    def close(self):
        for server in (self.plain, self.secure, self.proxy):
            server.shutdown()
            server.server_close()
        shutil.rmtree(self.directory)


@pytest.fixture(scope="module")
def machine():
    m = Machine()
    yield m
    m.close()


@pytest.fixture
def asked(machine):
    """What the proxy was asked for in this test."""
    machine.proxy.asked.clear()
    return machine.proxy.asked


@pytest.fixture
def js(machine):
    with Driver("node", env=machine.env()) as driver:
        yield Session(driver)


def shown(*words):
    return json.dumps(list(words)) + "\n"


ASK = """
const ask = (module, ...args) => new Promise((done, fail) => {
    const body = typeof args.at(-1) == 'string' && args.length > 1 ? args.pop() : '';
    require(module).request(...args, (r) => {
        let text = ''; r.on('data', (d) => text += d); r.on('end', () => done(text));
    }).on('error', fail).end(body);
});
"""


@pytest.mark.parametrize("url, line", [
    ("http://site.test/a?b=c", "GET http://site.test/a?b=c"), ("http://site.test:8080/", "GET http://site.test:8080/"),
    ("https://site.test/a?b=c", "CONNECT site.test:443"), ("https://site.test:8443/a", "CONNECT site.test:8443"),
])
def test_where_requests_go(js, asked, url, line):
    host, path = re.fullmatch(r"\w+://([^/]+)(.*)", url).groups()
    js(f"console.log(await (await fetch('{url}')).text())", shown("GET", path, host, ""))
    assert asked == [line]
    module = url.partition(":")[0]
    js(f"{ASK}; console.log(await ask('{module}', '{url}'))", shown("GET", path, host, ""))
    assert asked == [line, line]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_bodies(js, scheme):
    url = f"{scheme}://site.test/up"
    js(f"console.log(await (await fetch('{url}', {{ method: 'POST', body: 'über' }})).text())",
       shown("POST", "/up", "site.test", "über"))
    js(f"{ASK}; console.log(await ask('{scheme}', '{url}', {{ method: 'POST', headers: {{ 'content-length': 3 }} }}, 'abc'))",
       shown("POST", "/up", "site.test", "abc"))
    js(f"console.log(await ask('{scheme}', {{ host: 'site.test', path: '/list', headers: ['host', 'site.test', 'x', 'y'] }}))",
       shown("GET", "/list", "site.test", ""))
    js(f"console.log(await ask('{scheme}', {{ host: 'site.test', path: '/own', agent: false }}))",
       shown("GET", "/own", "site.test", ""))


def test_many_at_once(js, asked):
    js("const all = await Promise.all([...Array(40).keys()].map(async (i) =>"
       " (await (await fetch(`${i % 2 ? 'http' : 'https'}://site.test/${i}`)).json())[1]));"
       "all.every((path, i) => path === `/${i}`)", "true\n")
    assert len(asked) >= 40 - 19


@pytest.mark.parametrize("code", [
    "require('http').get('http://site.test/1', done)", "require('node:https').get('https://site.test/1', done)",
    "http.get('http://site.test/1', done)", "(await import('node:http')).get('http://site.test/1', done)",
    "(await import('https')).default.get('https://site.test/1', done)",
    "(await import('./m.mjs')).default('http://site.test/1', done)", "require('./c.js')('https://site.test/1', done)",
])
def test_first_use_of_the_modules(js, asked, code):
    for name, text in (("m.mjs", "import { get } from 'node:http'; export default get"),
                       ("c.js", "const { get } = require('https'); module.exports = get")):
        with open(f"{js.driver.workspace}/{name}", "w", encoding="utf-8") as f:
            f.write(text)
    js(f"let done; const status = new Promise(r => {{ done = m => {{ m.resume(); r(m.statusCode) }} }}); {code}; await status",
       "200\n")
    assert len(asked) == 1


def test_nothing_is_loaded_before_it_is_used(js):
    loaded = "process.moduleLoadList.filter((m) => /undici|_http_|https/.test(m)).length"
    with Driver("node") as driver:
        js(loaded, driver.turn(loaded)["stdout"])


def test_refusals(js, asked):
    js("try { await fetch('https://secret.test/') } catch (e) { console.log(e.cause.message, e.cause.statusCode) }",
       f"{SENTENCE} 403\n")
    js("await fetch('https://secret.test/')", "", re.compile("fetch failed.*" + re.escape(SENTENCE), re.DOTALL), 1)
    js(f"{ASK}; await ask('https', 'https://secret.test/')", "", re.compile(re.escape(SENTENCE)), 1)
    js("const r = await fetch('http://secret.test/'); console.log(r.status, await r.text())", f"403 {SENTENCE}\n")
    assert len(asked) == 4


def test_no_proxy(js, machine, asked):
    for scheme, server in (("http", machine.plain), ("https", machine.secure)):
        url = f"{scheme}://127.0.0.1:{server.server_port}/near"
        near = shown("GET", "/near", f"127.0.0.1:{server.server_port}", "")
        js(f"console.log(await (await fetch('{url}')).text())", near)
        js(f"{ASK}; console.log(await ask('{scheme}', '{url}'))", near)
    assert asked == []


@pytest.mark.parametrize("entry, direct", [
    ("site.test", True), (".test", True), ("*.test", True), ("TEST", True), ("*", True), ("a, site.test:80", True),
    ("site.test:8080", False), ("te.test", False), ("", False), ("other,[::1],::1", False),
])
def test_forms_of_no_proxy(js, asked, entry, direct):
    js(f"process.env.no_proxy = '{entry}'; const r = await fetch('http://site.test/').catch((e) => e.cause.code);"
       "console.log(typeof r)", f"{'string' if direct else 'object'}\n")
    assert asked == ([] if direct else ["GET http://site.test/"])


def test_code_can_do_without(js, asked):
    js("delete process.env.http_proxy; (await fetch('http://site.test/').catch((e) => e.cause.code))", re.compile("'E"))
    assert asked == []


def test_proxy_is_away(machine):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{s.getsockname()[1]}"
        with Driver("node", env=machine.env(http_proxy=url, https_proxy=url)) as driver:
            js = Session(driver)
            for scheme in ("http", "https"):
                js(f"(await fetch('{scheme}://site.test/').catch((e) => e.cause.code))", "'ECONNREFUSED'\n")
                js(f"{ASK}; (await ask('{scheme}', '{scheme}://site.test/').catch((e) => e.code))", "'ECONNREFUSED'\n")


def test_abort(js):
    js("await fetch('https://site.test/', { signal: AbortSignal.abort() })", "", re.compile("AbortError"), 1)
    js("(await fetch('https://site.test/')).status", "200\n")


def test_without_a_network():
    with Driver("node") as driver:
        Session(driver)("fetch.name + require('http').globalAgent.constructor.name", "'fetchAgent'\n")
