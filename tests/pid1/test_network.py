# SPDX-License-Identifier: MIT
"""The network of sessions under the installed unit: as a system user with its few rights, through crash and reload."""
import contextlib
import http.server
import os
import threading

import pytest

from pid1lib import ALICE, SOCKET, alive, as_user, crash, status_of, systemctl, wait_for

FETCH = """
def fetch(port):
    import http.client
    c = http.client.HTTPConnection("127.0.0.1", 3128, timeout=20)
    c.request("GET", f"http://127.0.0.1:{port}/")
    r = c.getresponse()
    print(r.status, r.read().decode().strip())
"""


class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):                   # pylint: disable=invalid-name
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):          # pylint: disable=arguments-differ
        pass


@pytest.fixture
def port():
    """Of a server on the loopback of the service's machine."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def proxies():
    """uid and pid of those that live."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8") as f:
            if f.read().strip() == "sandbox-proxy" and alive(int(pid)):
                found.append((int(status_of(pid)["Uid"].split()[0]), int(pid)))
    return found


def allow(service, *rules):
    service.configure(environments={"python": {"network": list(rules)}})


def alices(code):
    return as_user(ALICE, f"print(json.dumps(Client({SOCKET!r}).run({code!r}, 'a', env='python')))")


def test_as_another_user(service, port):
    """The proxy is hers, with no right of the service's left, and ends with the service."""
    allow(service, f"127.0.0.1:{port}")
    reply = alices(FETCH + f"fetch({port}); fetch(1)")
    assert reply["stdout"].startswith("200 hello\n403 "), reply
    assert "network: refused 127.0.0.1:1 (not in the allow list of environment python)" in reply["notice"]
    [(uid, pid)] = proxies()
    assert uid == ALICE
    status = status_of(pid)
    assert status["NoNewPrivs"] == "1" and {status[c] for c in ("CapPrm", "CapEff", "CapAmb", "CapInh")} == {"0" * 16}
    service.stop()
    wait_for(lambda: not proxies(), 10)


def test_crash(service, port):
    """The same socket for the next proxy; what was used still counts."""
    allow(service, f"127.0.0.1:{port}")
    service.run(FETCH + f"fetch({port})", "a", env="python")
    before = wait_for(lambda: service.show("a")["network"]["connections"] and service.show("a")["network"])
    wait_for(lambda: service.unit("NFileDescriptorStore") == "2")
    wait_for(lambda: b'"connections":1' in record(service), 10)
    crash(service)
    assert service.run(f"fetch({port})", "a", env="python")["stdout"] == "200 hello\n"
    wait_for(lambda: service.show("a")["network"]["connections"] == 2)
    assert service.show("a")["network"]["bytes_in"] > before["bytes_in"] > 0
    service.call("Kill", session="a", project=service.project)
    wait_for(lambda: service.unit("NFileDescriptorStore") == "0")


def record(service):
    folder = "/run/nix-sandbox/sandboxd/sessions"
    with open(os.path.join(folder, service.show("a")["id"]), "rb") as f:
        return f.read()


def test_reload_takes_away(service, port):
    allow(service, f"127.0.0.1:{port}")
    service.run(FETCH + f"fetch({port})", "a", env="python")
    allow(service)
    systemctl("reload", "sandboxd.service")
    reply = service.run(f"fetch({port})", "a", env="python")
    assert reply["stdout"].startswith("403 ") and f"network: refused 127.0.0.1:{port}" in reply["notice"], reply
