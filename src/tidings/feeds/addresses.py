"""Restricts outgoing connections to public addresses and explicitly allowed networks (blocks SSRF and DNS rebinding).

A feed or a webhook may name any host, and the host's name may resolve to any address, which a redirect or another DNS
answer can change. So the check is made when a connection is made: a name is resolved once, each address is checked, and
the connection goes to the address that passed. Clients from this module use no other route: no proxy of the
environment, no Unix socket.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import httpcore
import httpx

from tidings.errors import TidingsError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], Sequence[str]]  # a host and a port to addresses

_Protocol = TypeVar("_Protocol", bound=asyncio.Protocol)

TIMEOUT = 20.0
DEADLINE: ContextVar[float | None] = ContextVar(
    "tidings_deadline", default=None
)  # of the answer, by monotonic()
MAX_URL = 4096
_TRIED = 4  # addresses of one name
_POOL: dict[str, Any] = {"max_connections": 100, "max_keepalive_connections": 20, "keepalive_expiry": 5.0}
_RESOLVING = 16  # names at once, apart from the threads that a server answers with

# IANA's registries of special-purpose addresses, which Python's `is_global` follows with some delay, and two
# addresses that clouds put their own services at.
_SPECIAL: tuple[tuple[str, Network], ...] = tuple(
    (kind, ipaddress.ip_network(text))
    for kind, text in (
        ("this machine", "0.0.0.0/8"),
        ("this machine", "127.0.0.0/8"),
        ("this machine", "::/127"),
        ("a private network", "10.0.0.0/8"),
        ("a private network", "172.16.0.0/12"),
        ("a private network", "192.168.0.0/16"),
        ("a private network", "fc00::/7"),
        ("a private network", "fec0::/10"),
        ("a private network", "64:ff9b:1::/48"),
        ("a provider's network", "100.64.0.0/10"),
        ("the local link", "169.254.0.0/16"),
        ("the local link", "fe80::/10"),
        ("a cloud's own services", "168.63.129.16/32"),
        ("reserved addresses", "192.0.0.0/24"),
        ("reserved addresses", "192.0.2.0/24"),
        ("reserved addresses", "192.88.99.0/24"),
        ("reserved addresses", "198.18.0.0/15"),
        ("reserved addresses", "198.51.100.0/24"),
        ("reserved addresses", "203.0.113.0/24"),
        ("reserved addresses", "240.0.0.0/4"),
        ("reserved addresses", "::/96"),
        ("reserved addresses", "100::/64"),
        ("reserved addresses", "2001:2::/48"),
        ("reserved addresses", "2001:db8::/32"),
        ("reserved addresses", "3fff::/20"),
        ("reserved addresses", "5f00::/16"),
        ("a group of machines", "224.0.0.0/4"),
        ("a group of machines", "ff00::/8"),
    )
)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class AddressRefused(TidingsError):
    """An address that this service must not connect to."""

    status = 422


def networks(allowed: Iterable[str]) -> tuple[Network, ...]:
    """Networks as they are configured: "10.1.0.0/16", "::1"."""
    found = []
    for text in allowed:
        try:
            found.append(ipaddress.ip_network(text, strict=False))
        except ValueError:
            raise TidingsError(
                f"{text!r} is not a network; write one as 10.1.0.0/16, or as a single address"
            ) from None
    return tuple(found)


def refusal(address: str, allowed: Sequence[Network] = ()) -> str | None:
    """Why a connection to `address` is refused; None if it is public, or inside an allowed network."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return "not an address"
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return _refusal(found.ipv4_mapped, allowed)  # the same machine, in another spelling
        for inner in _embedded(found):
            if (reason := _refusal(inner, allowed)) is not None:
                return reason
    return _refusal(found, allowed)


def _refusal(address: Address, allowed: Sequence[Network]) -> str | None:
    if any(address in network for network in allowed):
        return None
    for kind, network in _SPECIAL:
        if address in network:
            return kind
    # Addresses that carry another have been opened up: of themselves they are not "global".
    carries = isinstance(address, ipaddress.IPv6Address) and bool(_embedded(address))
    return None if carries or (address.is_global and not address.is_reserved) else "reserved addresses"


def _embedded(address: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """The IPv4 addresses that this one embeds and packets are forwarded to: NAT64, 6to4, Teredo."""
    if address in _NAT64:
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    if address.sixtofour is not None:
        return [address.sixtofour]
    return list(address.teredo or ())


def check_url(url: str, allowed: Iterable[str] = ()) -> None:
    """Refuses an address before any request: one that is no web address, or names a private network.

    A name is not looked up here; where it leads is seen at each connection.
    """
    if len(url) > MAX_URL:
        raise AddressRefused(f"the address has {len(url):,} characters; at most {MAX_URL:,} are accepted")
    try:
        parsed = httpx.URL(url)  # as the client reads it, which counts
        host = parsed.host
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise AddressRefused(f"{url[:200]!r} is not an address on the web: {error}") from None
    if parsed.scheme not in ("http", "https") or not host:
        raise AddressRefused(
            f"{url[:200]!r} is not an address on the web; it starts with http:// or https://"
        )
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise AddressRefused(f"there is no port {parsed.port}; one between 1 and 65535 is needed")
    bare = host.rstrip(".").lower()
    known = ["127.0.0.1", "::1"] if bare == "localhost" or bare.endswith(".localhost") else _literal(host)
    reasons = [refusal(address, networks(allowed)) for address in known]
    if reasons and all(reasons):
        raise _refused(host, known[0], reasons[0])


def _literal(host: str) -> list[str]:
    """The address that `host` is, in any of the ways that a resolver understands: 127.1, 0x7f000001, 2130706433."""
    try:
        return [str(ipaddress.ip_address(host.partition("%")[0]))]
    except ValueError:
        pass
    try:
        return [socket.inet_ntoa(socket.inet_aton(host.rstrip(".")))]
    except OSError:
        return []


def _refused(host: str, address: str, reason: str | None) -> AddressRefused:
    where = host if host == address else f"{host} ({address})"
    what = f"{where[:200]} leads to {reason}, where this service makes no requests"
    network = _network_of(address)
    if network is None:
        return AddressRefused(what)
    return AddressRefused(f"{what}; to allow them, start it with tidings serve --allow-network {network}")


def _network_of(address: str) -> Network | None:
    """The network to allow for an address: the one with a special purpose that it is in, or the address alone."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address):
        inner = [found.ipv4_mapped] if found.ipv4_mapped is not None else _embedded(found)
        found = next((one for one in inner if one is not None and _refusal(one, ()) is not None), found)
    special = (network for _, network in _SPECIAL if found in network)
    return next(special, None) or ipaddress.ip_network(str(found))


def resolve_host(host: str, port: int) -> list[str]:
    """The addresses of a host, as this machine's resolver has them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(where[0]) for *_, where in found))


def permitted(host: str, addresses: Sequence[str], allowed: Sequence[Network]) -> list[str]:
    """The addresses of a host that connections are permitted to; raises `AddressRefused` if there is none."""
    reasons = {address: refusal(address, allowed) for address in addresses}
    good = [address for address, reason in reasons.items() if reason is None]
    if not good:
        address, reason = next(iter(reasons.items()), ("no address", "nowhere"))
        raise _refused(host, address, reason)
    return good[:_TRIED]


class _TimedStream(httpcore.NetworkStream):
    """Adds a deadline: a timeout counts from one chunk to the next, so a server that sends single bytes would never hit it.
    The deadline does not move."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        deadline = DEADLINE.get()
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise httpcore.ReadTimeout("the answer took too long")
            timeout = left if timeout is None else min(timeout, left)
        return self._inner.read(max_bytes, timeout)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, timeout)

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        return _TimedStream(self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class GuardedBackend(httpcore.NetworkBackend):
    """Connections to permitted addresses only. TLS still requires a certificate of the host's name."""

    def __init__(self, allowed: Sequence[Network], resolve: Resolve = resolve_host) -> None:
        self._allowed, self._resolve = allowed, resolve
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        until = time.monotonic() + (TIMEOUT if timeout is None else timeout)
        try:
            addresses = self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(_unresolved(host, error)) from None
        failure: Exception = httpcore.ConnectTimeout(f"{host} did not answer in time")
        for address in permitted(host, addresses, self._allowed):
            if (left := until - time.monotonic()) <= 0:
                break
            try:
                return _TimedStream(
                    self._inner.connect_tcp(address, port, left, local_address, socket_options)
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        raise AddressRefused("a Unix socket is not an address on the web")


class AsyncGuard:
    """Connections of asyncio to permitted addresses only; names are resolved in separate threads, few at a time. TLS still
    requires a certificate of the host's name."""

    def __init__(self, allowed: Iterable[str] = (), *, resolve: Resolve = resolve_host) -> None:
        self._allowed, self._resolve = networks(allowed), resolve
        self._turns: anyio.CapacityLimiter | None = None  # which belongs to an event loop

    async def connect(
        self, protocol: Callable[[], _Protocol], host: str, port: int, context: ssl.SSLContext | None = None
    ) -> _Protocol:
        """A connection, with TLS if there is a context; AddressRefused or OSError if there can be none."""
        self._turns = self._turns or anyio.CapacityLimiter(_RESOLVING)
        try:
            addresses = await anyio.to_thread.run_sync(
                self._resolve, host, port, abandon_on_cancel=True, limiter=self._turns
            )
        except (OSError, UnicodeError) as error:
            raise OSError(_unresolved(host, error)) from None
        failure: OSError | None = None
        name = host if context is not None else None
        for address in permitted(host, addresses, self._allowed):
            try:
                loop = asyncio.get_running_loop()
                return (
                    await loop.create_connection(protocol, address, port, ssl=context, server_hostname=name)
                )[1]
            except OSError as error:
                failure = error
        assert failure is not None
        raise failure


def _unresolved(host: str, error: Exception) -> str:
    return f"the name {host[:200]!r} cannot be looked up: {error}"


def guarded_client(
    allowed: Iterable[str] = (), *, resolve: Resolve = resolve_host, timeout: float = TIMEOUT, **options: Any
) -> httpx.Client:
    """A client that connects to permitted addresses only; `AddressRefused` says that one is not."""
    context = httpx.create_ssl_context()  # with the certificates that the machine's owner set
    transport = httpx.HTTPTransport(verify=context)
    _check_pool(transport)
    backend = GuardedBackend(networks(allowed), resolve)
    transport._pool = httpcore.ConnectionPool(context, network_backend=backend, **_POOL)
    return httpx.Client(transport=transport, trust_env=False, timeout=timeout, **_checked(options))


def _check_pool(transport: httpx.HTTPTransport) -> None:
    """httpx has no parameter for a network backend, so its pool is replaced by one that has ours. Should another
    httpx keep its pool elsewhere, nothing may go out past the guard."""
    pool = getattr(transport, "_pool", None)
    if not isinstance(pool, httpcore.ConnectionPool):
        raise TidingsError("this httpx keeps its connections in another way; install httpx 0.28")


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    for name in ("proxy", "mounts", "transport", "trust_env"):
        if name in options:
            raise TidingsError(f"a guarded client takes no {name!r}; it would lead past the guard")
    return options
