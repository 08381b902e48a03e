"""Nobody is sent inside: every spelling of an inner address, redirects, and names whose answers change."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from tidings.errors import TidingsError
from tidings.feeds.addresses import (
    AddressRefused,
    AsyncGuard,
    check_url,
    guarded_client,
    networks,
    refusal,
)
from tidings.feeds.http import get

LOOPBACK = ("127.0.0.0/8",)


@pytest.fixture
def site() -> Iterator[ThreadingHTTPServer]:
    """Answers "/" with a greeting and "/to/ADDRESS" with a redirect to it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            target = self.path.removeprefix("/to/")
            self.send_response(200 if target == self.path else 302)
            if target != self.path:
                self.send_header("Location", target)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


INSIDE = """
127.0.0.1 127.8.8.8 0.0.0.0 0.1.2.3 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 100.100.100.200
169.254.169.254 192.0.0.192 192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1
255.255.255.255 168.63.129.16 192.88.99.1
:: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 fe80::1 fe80::1%lo fc00::1 fd00:ec2::254
fec0::1 ff02::1 ff0e::1 2001:db8::1 100::1 64:ff9b::7f00:1 64:ff9b::a00:1 64:ff9b:1::1 2002:7f00:1:: 2002:a00:1::1
2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:0:7f00:1::1 2001:0:808:808:0:0:80ff:fffe 5f00::1 3fff::1 4000::1
"""
OUTSIDE = """
1.1.1.1 8.8.8.8 93.184.216.34 172.15.0.1 172.32.0.1 100.128.0.1 2606:4700:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808
2002:808:808::1
"""


@pytest.mark.parametrize("address", INSIDE.split())
def test_inner_addresses_are_refused(address: str) -> None:
    assert refusal(address)


@pytest.mark.parametrize("address", OUTSIDE.split())
def test_outer_addresses_are_not(address: str) -> None:
    assert refusal(address) is None


@pytest.mark.parametrize(
    ("address", "allowed", "good"),
    [
        ("127.0.0.1", LOOPBACK, True),
        ("::ffff:127.0.0.1", LOOPBACK, True),
        ("::1", LOOPBACK, False),
        ("::1", ("::1",), True),
        ("10.1.2.3", ("10.1.0.0/16", "192.168.0.0/16"), True),
        ("10.2.2.3", ("10.1.0.0/16", "192.168.0.0/16"), False),
        ("64:ff9b::7f00:1", LOOPBACK, True),
        ("169.254.169.254", LOOPBACK, False),
    ],
)
def test_allowed_networks(address: str, allowed: tuple[str, ...], good: bool) -> None:
    assert (refusal(address, networks(allowed)) is None) is good


def test_a_network_that_is_none_is_told() -> None:
    with pytest.raises(TidingsError, match="'home' is not a network"):
        networks(["home"])


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://017700000001/",
        "http://0x7f000001/",
        "http://0x7f.0.0.1./",
        "http://localhost:8750/feed",
        "http://LOCALHOST./",
        "http://a.localhost/",
        "http://[::1]/",
        "http://[::ffff:169.254.169.254]/latest/meta-data/",
        "http://user:word@10.0.0.1/",
        "https://169.254.169.254/",
        "ftp://example.org/",
        "file:///etc/passwd",
        "gopher://example.org/",
        "http://",
        "http:///path",
        "//example.org/",
        "example.org",
        "",
        "http://exa mple.org/\r\nHost: inside",
        "http://[::1/",
        "http://example.org:99999/",
        "http://" + "a" * 5000,
        "http://\ud800/",
        "unix:///var/run/docker.sock",
    ],
)
def test_addresses_that_are_refused_before_anything_is_asked(url: str) -> None:
    with pytest.raises(AddressRefused):
        check_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/feed",
        "https://user@example.org:8443/?q=1",
        "http://bücher.example/",
        "http://8.8.8.8/",
    ],
)
def test_addresses_that_may_be_asked(url: str) -> None:
    check_url(url)


def test_an_allowed_address_may_be_named() -> None:
    check_url("http://localhost:1/", LOOPBACK)
    check_url("http://2130706433/", LOOPBACK)
    with pytest.raises(AddressRefused, match="this machine"):
        check_url("http://[::1]/", LOOPBACK)


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("127.0.0.1", "127.0.0.0/8"),
        ("localhost", "127.0.0.0/8"),
        ("[::1]", "::/127"),
        ("10.1.2.3", "10.0.0.0/8"),
        ("[::ffff:192.168.1.1]", "192.168.0.0/16"),
        ("[64:ff9b::a00:1]", "10.0.0.0/8"),
        ("168.63.129.16", "168.63.129.16/32"),
    ],
)
def test_a_refusal_names_the_network_to_allow(host: str, network: str) -> None:
    url = f"http://{host}/"
    with pytest.raises(AddressRefused) as refused:
        check_url(url)
    assert str(refused.value).endswith(
        f"; to allow them, start it with tidings serve --allow-network {network}"
    )
    check_url(url, [network])


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "localhost", "0", "0.0.0.0"]
)
def test_no_spelling_connects_to_this_machine(site: ThreadingHTTPServer, host: str) -> None:
    with guarded_client() as client, pytest.raises(AddressRefused, match="makes no requests"):
        client.get(f"http://{host}:{site.server_port}/")


def test_an_allowed_network_is_reached(site: ThreadingHTTPServer) -> None:
    with guarded_client(LOOPBACK) as client:
        for host in ("127.0.0.1", "2130706433", "localhost"):
            assert client.get(f"http://{host}:{site.server_port}/").text == "hello"


def test_a_redirect_inside_is_refused(site: ThreadingHTTPServer) -> None:
    with guarded_client(LOOPBACK, follow_redirects=True) as client:
        here = f"http://127.0.0.1:{site.server_port}"
        assert client.get(f"{here}/to/{here}/").text == "hello"
        with pytest.raises(AddressRefused, match=r"169\.254\.169\.254 leads to the local link"):
            client.get(f"{here}/to/http://169.254.169.254/latest/meta-data/")
        answer = get(client, f"{here}/to/http://10.0.0.1/", None, None, 1000)
        assert answer.status == "error"
        assert "10.0.0.1 leads to a private network" in (answer.error or "")


def test_the_address_that_was_looked_at_is_the_one_connected_to(site: ThreadingHTTPServer) -> None:
    """A name that leads outside when it is looked at and inside when it is connected to would be asked twice."""
    asked = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    with guarded_client(LOOPBACK, resolve=resolve) as client:
        address = f"http://rebinding.example:{site.server_port}/"
        headers = {"Connection": "close"}
        assert client.get(address, headers=headers).text == "hello"
        assert asked == ["rebinding.example"]
        with pytest.raises(AddressRefused, match=r"rebinding\.example \(10\.0\.0\.1\)"):
            client.get(address, headers=headers)


def test_of_several_addresses_only_the_good_ones_are_tried(site: ThreadingHTTPServer) -> None:
    def resolve(host: str, port: int) -> list[str]:
        return ["10.0.0.1", "127.0.0.2", "127.0.0.1"]  # nobody listens at the second

    with guarded_client(LOOPBACK, resolve=resolve) as client:
        assert client.get(f"http://several.example:{site.server_port}/").text == "hello"


def test_names_that_lead_nowhere() -> None:
    def nothing(host: str, port: int) -> list[str]:
        return []

    def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    with guarded_client(resolve=nothing) as client, pytest.raises(AddressRefused):
        client.get("http://nowhere.example/")
    with (
        guarded_client(resolve=unknown) as client,
        pytest.raises(httpx.ConnectError, match="cannot be looked up"),
    ):
        client.get("http://nowhere.example/")


def test_the_environment_has_no_say(site: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{site.server_port}")
    with guarded_client(resolve=lambda *_: ["10.0.0.1"]) as client, pytest.raises(AddressRefused):
        client.get("http://inside.example/")
    for name in ("proxy", "mounts", "transport", "trust_env"):
        with pytest.raises(TidingsError, match="past the guard"):
            guarded_client(**{name: None})


def test_the_same_for_asyncio(site: ThreadingHTTPServer) -> None:
    async def connect(host: str, allowed: tuple[str, ...] = LOOPBACK, **options: Any) -> str:
        guard = AsyncGuard(allowed, **options)
        protocol = await guard.connect(_Peer, host, site.server_port)
        assert protocol.transport is not None
        protocol.transport.close()
        return str(protocol.transport.get_extra_info("peername")[0])

    assert asyncio.run(connect("127.0.0.1")) == "127.0.0.1"
    several = ["10.9.9.9", "127.0.0.1"]
    assert asyncio.run(connect("x.example", resolve=lambda *_: several)) == "127.0.0.1"
    for host in ("127.0.0.1", "2130706433", "localhost"):
        with pytest.raises(AddressRefused):
            asyncio.run(connect(host, ()))

    def unknown(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    with pytest.raises(OSError, match="cannot be looked up"):
        asyncio.run(connect("nowhere.example", resolve=unknown))


class _Peer(asyncio.Protocol):
    transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport


def test_a_name_that_takes_too_long_is_given_up() -> None:
    never = threading.Event()

    async def ask() -> None:
        guard = AsyncGuard(resolve=lambda *_: [str(never.wait(5))])
        async with asyncio.timeout(0.05):
            await guard.connect(asyncio.Protocol, "slow.example", 80)

    try:
        with pytest.raises(TimeoutError):
            asyncio.run(ask())
    finally:
        never.set()
