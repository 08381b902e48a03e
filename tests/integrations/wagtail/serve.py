"""Serves the example site at a port, from an empty database: `python -m tests.integrations.wagtail.serve PORT`. It prints "ready" when the
pages are there and the port is open."""

from __future__ import annotations

import sys

import django
from django.conf import settings
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.management import call_command
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.wsgi import get_wsgi_application


class Quiet(WSGIRequestHandler):
    def log_message(self, *given: object) -> None: ...


def main() -> None:
    django.setup()
    without_migrations = bool(getattr(settings, "MIGRATION_MODULES", {}))
    call_command("migrate", run_syncdb=without_migrations, verbosity=0, skip_checks=True)
    call_command("newsroom")
    server = ThreadedWSGIServer(("127.0.0.1", int(sys.argv[1])), Quiet, ipv6=False)
    server.set_app(StaticFilesHandler(get_wsgi_application()))
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
