"""`tidings serve`: what it is started with, what stops it with a sentence, and the whole of it once."""

import fcntl
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from tidings.service.web import server

from .conftest import EXAMPLES, tidings

DAY = 86_400.0


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@pytest.fixture
def settings_of(monkeypatch, tmp_path):
    """The settings that a command line comes to, without serving them."""
    seen = []
    monkeypatch.setattr(server, "serve", lambda settings, on_listening: seen.append(settings))
    monkeypatch.setattr("tidings.spark.startup.need_spark", lambda: None)
    monkeypatch.chdir(tmp_path)

    def run(*args):
        result = tidings("serve", *args)
        assert result.exit_code == 0, result.output
        return seen.pop()

    return run


def test_without_options_it_is_a_whole_system(settings_of, tmp_path):
    settings = settings_of()
    assert settings.data == tmp_path / "tidings-data"
    assert settings.address == "http://127.0.0.1:8750"
    assert settings.open
    assert (settings.store, settings.spark, settings.longest_validity) == (None, "local[*,4]", None)
    assert (settings.retention, settings.feed_interval) == (7 * DAY, 900)


def test_every_option_arrives(settings_of, tmp_path):
    (tmp_path / "tables.toml").write_text("")
    settings = settings_of(
        "--data", "d", "--port", 99, "--url", "https://news.example.org/", "--store", "postgresql://db/t",
        "--spark", "spark://m:7077", "--taxonomy", EXAMPLES / "taxonomy.ttl", "--prefix", "ex=http://example.org/",
        "--network", f"exchange={EXAMPLES / 'exchange'}", "--tables", "tables.toml",
        "--allow-network", "10.0.0.0/8", "--allow-network", "fd00::/8", "--longest-validity", 30,
        "--retention", 0.5, "--feeds-every", 60, "--log-format", "json",
        "--memory", "1GB", "--parts", 8, "--place", "contain", "--merge", 90, "--apart",
    )  # fmt: skip
    assert (settings.port, settings.url, settings.store) == (
        99,
        "https://news.example.org",
        "postgresql://db/t",
    )
    assert (settings.spark, settings.prefixes) == ("spark://m:7077", {"ex": "http://example.org/"})
    assert settings.taxonomy == EXAMPLES / "taxonomy.ttl"
    assert settings.networks == {"exchange": EXAMPLES / "exchange"}
    assert settings.tables == Path("tables.toml")
    assert settings.allowed == ("10.0.0.0/8", "fd00::/8")
    assert (settings.longest_validity, settings.retention, settings.feed_interval) == (30 * DAY, DAY / 2, 60)
    assert settings.log_format == "json"
    assert (settings.memory, settings.parts, settings.place) == (1_000_000_000, 8, "contain")
    assert (settings.merge, settings.apart) == (90, True)


def test_the_password_of_mail_is_in_a_file_or_the_environment(settings_of, tmp_path, monkeypatch):
    server = ("--smtp", "smtp://ann@mail.example.org", "--mail-from", "Tidings <alerts@example.org>")
    monkeypatch.setenv("TIDINGS_SMTP_PASSWORD", "of the environment")
    settings = settings_of(*server)
    assert settings.mail.password == "of the environment"
    assert "of the environment" not in repr(settings)
    file = tmp_path / "password"
    file.write_text("of the file\n")
    assert settings_of(*server, "--smtp-password-file", file).mail.password == "of the file"
    for wrong in ("", "\n", "two\nlines"):
        file.write_text(wrong)
        result = tidings("serve", *server, "--smtp-password-file", file)
        assert result.exit_code == 1
        assert "has no password" in result.stderr
    assert tidings("serve", "--mail-from", "a@example.org").exit_code == 2
    assert settings_of().mail is None


@pytest.mark.parametrize(
    ("args", "is_open"),
    [
        (("--host", "127.0.0.1"), True),
        (("--host", "localhost"), True),
        (("--host", "::1"), True),
        (("--host", "[::1]"), True),
        (("--url", "http://localhost:8750"), True),
        (("--host", "0.0.0.0"), False),
        (("--host", "::"), False),
        (("--host", "192.0.2.1"), False),
        (("--host", "example.org"), False),
        (("--url", "https://tidings.example.org"), False),  # a proxy lets others in
    ],
)
def test_it_is_open_only_to_its_own_machine(settings_of, args, is_open):
    settings = settings_of(*args)
    assert settings.open is is_open
    assert "0.0.0.0" not in settings.address
    assert "[::]" not in settings.address


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--allow-network", "10.0.0.1/8"), "has host bits set; give one like 10.1.0.0/16"),
        (("--allow-network", "everything"), "is no network"),
        (("--url", "tidings.example.org"), "is no address of a service"),
        (("--url", "ftp://example.org"), "is no address of a service"),
        (("--url", "http://example.org:99999"), "is no address of a service"),
        (("--prefix", "ex"), "is not NAME=IRI"),
        (
            ("--smtp", "mail.example.org", "--mail-from", "a@example.org"),
            "is no mail server; give one like smtp://",
        ),
        (("--smtp", "smtp://mail.example.org"), "--smtp needs --mail-from too"),
        (
            ("--smtp", "smtp://ann@mail.example.org", "--mail-from", "a@example.org"),
            "no password; give it by --smtp-password-file",
        ),
        (("--operators", "no/such.py"), "no/such.py"),
        (("--host", "no.such.host.invalid"), "is no address of this machine"),
        (("--host", "192.0.2.1"), "is no address of this machine"),
        (("--store", "mysql://x/y"), "is no address of PostgreSQL"),
        (("--store", "postgresql://nobody@127.0.0.1:9/none"), "the registry does not answer"),
    ],
)
def test_mistakes_are_one_sentence(args, sentence, tmp_path, port, monkeypatch):
    monkeypatch.setattr("tidings.spark.startup.need_spark", lambda: None)
    monkeypatch.setattr("tidings.service.service._STORE_SECONDS", 0.0)
    result = tidings("serve", "--data", tmp_path / "data", "--port", port, *args)
    assert result.exit_code == 1
    assert sentence in result.stderr
    assert result.stderr.startswith("Error: ")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "args",
    [
        ("--port", 0),
        ("--retention", 0),
        ("--longest-validity", -1),
        ("--log-format", "xml"),
        ("--merge", 90),
        ("--parts", 2, "--place", "split", "--merge", 90),
        ("--parts", 1, "--apart"),
    ],
)
def test_values_out_of_range(args):
    assert tidings("serve", *args).exit_code == 2


def test_a_port_that_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr("tidings.spark.startup.need_spark", lambda: None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = tidings("serve", "--data", tmp_path, "--port", port)
    assert result.exit_code == 1
    assert result.stderr == f"Error: port {port} of 127.0.0.1 is in use; name another by --port\n"


def test_a_second_service_on_the_same_folder(tmp_path, port, monkeypatch):
    monkeypatch.setattr("tidings.spark.startup.need_spark", lambda: None)
    with (tmp_path / "LOCK").open("w+") as lock:
        lock.write("4711")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = tidings("serve", "--data", tmp_path, "--port", port)
    assert result.exit_code == 1
    assert f"process 4711 serves {tmp_path} already" in result.stderr


def test_without_java(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    result = tidings("serve", "--data", tmp_path / "data")
    assert result.exit_code == 1
    assert f"Spark needs Java 17 or newer, and there is none in JAVA_HOME={tmp_path}" in result.stderr
    assert not (tmp_path / "data").exists()


class Serving:
    """The command in a process of its own; its words are waited for."""

    def __init__(self, *args):
        command = [sys.executable, "-c", "from tidings.cli import main; main()", "serve", *map(str, args)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said = []
        self._lines = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def until(self, words, seconds=120):
        while True:
            line = self._lines.get(timeout=seconds)
            assert line is not None, "".join(self.said)
            self.said.append(line)
            if words in line:
                return line

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@pytest.mark.parametrize("matching", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_first_start_for_others_makes_an_admin_and_a_signal_ends_it_well(tmp_path, port, matching):
    """While Spark starts, or while it matches."""
    served = Serving(
        "--data", tmp_path / "data", "--host", "0.0.0.0", "--port", port, "--spark", "local[1,4]"
    )
    try:
        served.until("The admin's token")
        secret = served.until("tid_").strip()
        if matching:
            served.until("Events are being matched")
        with httpx.Client(transport=httpx.HTTPTransport(retries=6)) as http:  # the port is opened soon
            url = f"http://127.0.0.1:{port}"
            assert http.get(f"{url}/api/subscriptions").status_code == 401
            asked = http.get(f"{url}/api/subscriptions", headers={"Authorization": f"Bearer {secret}"})
        assert asked.status_code == 200, asked.text
        served.process.send_signal(signal.SIGTERM)
        served.until("Ended; the next start goes on from here.")
        assert served.process.wait(60) == 0
    finally:
        served.close()
    assert sum(secret in line for line in served.said) == 1
    assert not any("Traceback" in line for line in served.said)
    listed = tidings("token", "list", "--data", tmp_path / "data").stdout
    assert "admin" in listed
    assert secret not in listed
    assert os.stat(tmp_path / "data" / "registry.db").st_mode & 0o077 == 0
