"""What a relay registers at two parents, each a real HTTP server: whose refusal counts, and who is waited for."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.service.relay.test_relay import until
from tidings.engine.engine import Engine
from tidings.kinds.joins.schema.table import Table
from tidings.service.model import IndexChange
from tidings.service.relay.own_filters import OwnFilters
from tidings.service.relay.parent import Parent

STOCKS = Table("stocks", {"symbol": "text", "per": "number"}, key=["symbol"])
JOIN = "SELECT * FROM stocks WHERE per > 50"
PLAIN = "WHERE topic = 'sport'"


class Upstream:
    """Takes filters; it refuses all of them if `refuses`, and answers nothing until `answers` is set."""

    def __init__(self, refuses: bool = False) -> None:
        self.refuses, self.texts, self.answers = refuses, set[str](), threading.Event()
        self.answers.set()
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_PUT(self) -> None:
                told: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                upstream.answers.wait(10)
                asked = told.get("filters", told.get("register", []))
                upstream.texts |= set(asked)
                refused = [{"text": text, "reason": "no"} for text in asked if upstream.refuses]
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps({"refused": refused}).encode())

            do_POST = do_PUT

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.parent = Parent(f"http://127.0.0.1:{self._server.server_port}", None, "n" + "a" * 20)

    def close(self) -> None:
        self.answers.set()
        self.parent.close()
        self._server.shutdown()
        self._server.server_close()


class Trial:
    """Own filters over two parents."""

    def __init__(self, *upstream: Upstream, active: dict[str, str]) -> None:
        self.upstream, self.refused = upstream, dict[str, str]()
        engine = Engine(tables=[STOCKS])
        self.own = OwnFilters(
            [one.parent for one in upstream], active.items, lambda: engine, self.refused.update
        )

    def __enter__(self) -> Trial:
        self.own.start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in self.upstream:
            one.close()
        self.own.stop()


@pytest.mark.parametrize("text", [JOIN, PLAIN])
def test_a_refusal_counts_if_it_is_of_the_parent_in_use(text: str) -> None:
    first, second = Upstream(), Upstream(refuses=True)
    with Trial(first, second, active={"a": text}) as trial:
        until(lambda: first.texts and second.texts)
        trial.own.register_anew(first.parent)
        assert trial.refused == {}
        assert trial.own.registered == 1
        trial.own.register_anew(second.parent)
        until(lambda: trial.refused == {"a": "no"})
        until(lambda: trial.own.registered == 0)


def test_a_parent_that_does_not_answer_delays_no_other() -> None:
    first, second = Upstream(), Upstream()
    with Trial(first, second, active={}) as trial:
        trial.own.register_anew(second.parent)
        until(lambda: not trial.own._behind)
        first.answers.clear()
        trial.own.changed([IndexChange(1, "a", PLAIN)])
        began = time.monotonic()
        trial.own.await_upstream(8.0)
        assert time.monotonic() - began < 6.0
        assert second.texts == {PLAIN}


def test_changes_that_no_parent_has_are_not_done() -> None:
    only = Upstream()
    only.close()
    with Trial(Upstream(), active={"a": PLAIN}) as trial:
        trial.own.await_upstream()
        assert trial.own._done == trial.own._wanted
    with Trial(only, active={"a": PLAIN}) as trial:
        until(lambda: trial.own.faults)
        assert trial.own._done == 0
