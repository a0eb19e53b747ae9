# SPDX-License-Identifier: MIT
"""A host with a proxy, an internet with servers, and what tests of the proxy ask of both."""
import contextlib

from dnslib import NameServer
from netlib import Network
from proxylib import Proxy
from weblib import Certificate, Web


class World(contextlib.ExitStack):
    """All of it, for the tests of a file: they use names and sessions of their own."""

    def __init__(self, **proxy):
        super().__init__()
        with contextlib.ExitStack() as stack:
            self.network = stack.enter_context(contextlib.closing(Network()))
            self.dns = stack.enter_context(contextlib.closing(NameServer(self.network)))
            self.certificate = Certificate()
            self.internet = stack.enter_context(contextlib.closing(Web(self.network.internet, self.certificate.server)))
            # Whoever is led to the host itself finds servers, too.
            self.local = stack.enter_context(contextlib.closing(Web(self.network.host, self.certificate.server)))
            self.proxy = stack.enter_context(contextlib.closing(Proxy(self.network, **proxy)))
            self.enter_context(stack.pop_all())

    def contacts(self):
        """Whom the host has sent anything to since the last time, but for name servers."""
        return self.network.wire.take()

    def another_proxy(self, **more):
        return contextlib.closing(Proxy(self.network, **more))
