"""Sends one hostile request over a plain socket and says what came back, and how long after its last byte."""

from __future__ import annotations

import random
import socket
import time
from typing import NamedTuple

from tests.service.hostile.generator import Request

PATIENCE = 60.0  # seconds: others may use the machine; how late an answer is, is judged afterwards


class Sent(NamedTuple):
    request: Request
    status: int | None  # None where none was to be expected
    seconds: float  # from the last byte sent to the end of the answer, or of its head if it is a stream


def send(port: int, request: Request) -> Sent:
    chance = random.Random(request.seed)
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as raw:
        raw.settimeout(PATIENCE)
        try:
            whole = _send(raw, request, port, chance)
        except (BrokenPipeError, ConnectionResetError):
            whole = True  # it was answered before its end
        began = time.monotonic()
        if not whole:
            return Sent(request, None, 0.0)
        status = _answer(raw, request)
        return Sent(request, status, time.monotonic() - began)


def _send(raw: socket.socket, request: Request, port: int, chance: random.Random) -> bool:
    """Whether an answer can be expected."""
    body, manner = request.body, request.manner
    length = len(body) + {"short": 1_000, "long": -min(5, len(body))}.get(manner, 0)
    framing = "Transfer-Encoding: chunked" if manner == "chunks" else f"Content-Length: {length}"
    named = {name for name, _ in request.headers}
    lines = [
        f"{request.method} {request.path} HTTP/1.1",
        *(f"{name}: {value}" for name, value in request.headers),
    ]
    lines += [] if "Host" in named else [f"Host: 127.0.0.1:{port}"]
    if body or request.method not in ("GET", "HEAD", "DELETE"):
        lines.append(framing)
    if manner == "expect":
        lines.append("Expect: 100-continue")
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
    if manner == "chunks" and body:
        size = max(1, len(body) // chance.randint(1, 50))
        parts = [body[first : first + size] for first in range(0, len(body), size)]
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    elif manner == "chunks":
        body = b"0\r\n\r\n"
    message = head + body
    if manner == "cut":
        raw.sendall(message[: chance.randint(0, len(message) - 1)])
        time.sleep(chance.random() * 0.1)
        return False
    if manner == "pieces":
        for _ in range(4):
            cut = chance.randint(0, len(message))
            raw.sendall(message[:cut])
            message = message[cut:]
            time.sleep(0.01)
    raw.sendall(message * 2 if manner == "twice" else message)
    if manner == "deaf":
        time.sleep(chance.random() * 0.1)
        return False
    # What declares more than it sends is waited for; without a length it declares nothing.
    return manner != "short" or framing not in lines


def _answer(raw: socket.socket, request: Request) -> int | None:
    """The status, once the answer has come as far as its length says. None if it was cut off, as the answers to
    requests are that nobody can read."""
    came = b""
    try:
        while b"\r\n\r\n" not in came or came.startswith(b"HTTP/1.1 100"):
            if came.startswith(b"HTTP/1.1 100") and b"\r\n\r\n" in came:
                came = came.partition(b"\r\n\r\n")[2]
                continue
            if not (piece := raw.recv(65536)):
                return None
            came += piece
        head, _, body = came.partition(b"\r\n\r\n")
        status, lines = int(head.split()[1]), head.lower().split(b"\r\n")
        length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), None)
        if request.method == "HEAD" or b"text/event-stream" in head or status in (204, 304):
            return status
        # An answer in chunks may have another one behind it, of a request that was sent twice.
        while (len(body) < length) if length is not None else b"0\r\n\r\n" not in body:
            if not (piece := raw.recv(65536)):
                break
            body += piece
        return status
    except ConnectionResetError:
        return int(came.split()[1]) if came.startswith(b"HTTP/1.1 ") else None
