"""A backup is taken of a service that runs, restored elsewhere, and goes on; what cannot be restored is refused whole."""

from __future__ import annotations

import io
import json
import tarfile
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import tidings
from tests.service.store.batches import batch, notification_row
from tidings.model.event import Event
from tidings.service.backup.archive import BackupError
from tidings.service.backup.backup import backup
from tidings.service.backup.files import Overtaken
from tidings.service.backup.restore import restore
from tidings.service.model import Channel
from tidings.service.settings import Settings
from tidings.service.store.channel_messages import ChannelMessages
from tidings.service.store.channels import ChannelStore
from tidings.service.store.database import open_mailbox, open_stores
from tidings.service.store.transactions import StoreError
from tidings.storage.event_log import EventLog


def taken(data: Path) -> io.BytesIO:
    stream = io.BytesIO()
    backup(Settings(data), stream)
    return io.BytesIO(stream.getvalue())


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A folder with stores and a log, of a service that is not running."""
    data = tmp_path / "kept"
    for store in open_stores(Settings(data)):
        store.close()
    with EventLog(data / "log") as log:
        log.append([Event("here", {"n": 1}, id="e1")])
    return data


def test_a_running_service_is_restored_elsewhere_and_goes_on(running, tmp_path: Path) -> None:
    with running() as served:
        asked = served.subscribe("WHERE n >= 0")
        accepted: list[str] = []
        stop = threading.Event()

        def publish() -> None:
            while not stop.is_set():
                accepted.append(served.publish({"n": len(accepted)})["ids"][0])

        publisher = threading.Thread(target=publish)
        publisher.start()
        while len(accepted) < 20:
            stop.wait(0.01)
        before = list(accepted)
        result = tidings("backup", tmp_path / "b.tar", "--data", served.service.settings.data)
        stop.set()
        publisher.join()
        assert result.exit_code == 0, result.output
        last = served.service.mailbox.last()
        lost = served.service.settings.data
        assert not list(lost.glob(".backup-*"))
    assert (tmp_path / "b.tar").stat().st_mode & 0o777 == 0o600
    lost.rename(tmp_path / "lost")

    assert tidings("restore", tmp_path / "b.tar", "--data", tmp_path / "new").exit_code == 0
    with running(data=tmp_path / "new") as served:
        log = served.service.log
        ids = [id for part in log.read() for id in part["id"].to_pylist()]
        assert set(before) <= set(ids) <= set(accepted)
        assert served.publish({"n": 0})["duplicates"] == 1  # what has arrived is still known
        served.publish({"n": 10**6})
        items = told(served, asked["id"], len(ids) + 1)
        assert Counter(items) == Counter({*ids, items[-1]})
        (newest,) = served.http.get(f"/api/subscriptions/{asked['id']}/notifications?limit=1").json()["items"]
        assert newest["number"] > last
        changed = served.http.post(
            f"/api/subscriptions/{asked['id']}/pause", headers={"Tidings-Ticket": asked["ticket"]}
        )
        assert changed.status_code == 200


def told(served, id: str, count: int) -> list[str]:
    """The events that a subscription was told of, oldest first, once there are as many."""
    until = threading.Event()
    for _ in range(500):
        found = served.service.mailbox.page([id], after=0, limit=100_000)
        if len(found) >= count:
            break
        until.wait(0.02)
    return [one.event.id for one in found]


def test_channels_go_on_with_what_waited(kept: Path, tmp_path: Path) -> None:
    mailbox = open_mailbox(Settings(kept))
    channel = Channel("c", "", "webhook", "https://example.org/", "", "{}", 1.0, secret="s")
    ChannelStore(mailbox).add(channel, ["s"], most=1)
    assert mailbox.record(*batch(0, [notification_row("s", "e1")]))

    def due(schedule: str, sent: Sequence[float], first: float) -> float:
        return 100.0

    ChannelMessages(mailbox).assign(due, 1.0)
    before = mailbox.last()
    stream = taken(kept)
    mailbox.close()
    restore(Settings(tmp_path / "new"), stream)
    mailbox = open_mailbox(Settings(tmp_path / "new"))
    messages = ChannelMessages(mailbox)
    assert mailbox.record(*batch(1, [notification_row("s", "e2")]))
    assert not messages.assign(due, 2.0)
    assert messages.seal(due, 100.0, 10) == 1
    (message,) = messages.to_send(100.0, 10)
    assert message.channel.secret == "s"
    assert message.until is not None
    assert message.until > before  # so its id was not used before
    (contents,) = messages.contents([message], 10)
    assert [each.event.id for each in contents.first] == ["e1", "e2"]
    mailbox.close()


# What Spark has


def a_query(data: Path, id: str, folder: str, offsets: int, commits: int) -> Path:
    """Files as Spark leaves them when micro-batches up to `offsets` were begun and those up to `commits` are done."""
    checkpoint = data / "checkpoint" / folder
    for name, count in (("spark/offsets", offsets), ("spark/commits", commits), ("pins", offsets)):
        (checkpoint / name).mkdir(parents=True)
        for number in range(count + 1):
            (checkpoint / name / f"{number}").write_text(f"{number}")
            (checkpoint / name / f".{number}.crc").write_text("sum")
    (checkpoint / "spark" / "metadata").write_text(json.dumps({"id": id}))
    return checkpoint


def numbers(folder: Path) -> list[int]:
    return sorted(int(path.name) for path in folder.iterdir())


@pytest.mark.parametrize(
    ("commits", "repeated", "committed"),
    [(8, 6, 5), (5, 6, 5), (4, 5, 4)],  # the stream went on; batch 6 is under way; 5 is not noted as done yet
)
def test_a_checkpoint_is_cut_to_what_the_mailbox_has(
    kept: Path, tmp_path: Path, commits: int, repeated: int, committed: int
) -> None:
    checkpoint = a_query(kept, "q", "", offsets=max(6, commits + 1), commits=commits)
    joins = a_query(kept, "other", "joins", offsets=0, commits=-1)
    (joins / "SEQUENCES").write_text('{"numbering": "n", "first": 1048576}')
    state = checkpoint / "spark" / "state" / "0"
    (state / "_metadata" / "v2").mkdir(parents=True)
    (state / "1" / "SSTs").mkdir(parents=True)
    (state / "1" / "SSTs" / "000008-a.sst").write_text("rows")
    for version in range(1, commits + 3):
        (state / "1" / f"{version}.changelog").write_text(f"{version}")
    (state / "1" / "9.zip").write_text("of later")
    schema = {"stateStoreInfo": [{"stateSchemaFilePaths": [f"file:{state}/_stateSchema/default/0_a"]}]}
    (state / "_metadata" / "v2" / "0").write_text(f"v2\n{json.dumps(schema)}")
    mailbox = open_mailbox(Settings(kept))
    for number in range(6):
        mailbox.record(*batch(number, [notification_row("s", f"e{number}")], query="q"))
    mailbox.close()

    new = tmp_path / "new"
    restore(Settings(new), taken(kept))
    found = new / "checkpoint" / "spark"
    assert numbers(found / "offsets") == numbers(new / "checkpoint" / "pins") == list(range(repeated + 1))
    assert numbers(found / "commits") == list(range(committed + 1))
    # The state after batch 5 has version 6.
    kept_versions = sorted(path.stem for path in (found / "state" / "0" / "1").glob("*.changelog"))
    assert kept_versions == [str(version) for version in range(1, 7)]
    assert [path.name for path in (found / "state" / "0" / "1").iterdir() if path.is_dir()] == ["SSTs"]
    assert not (found / "state" / "0" / "1" / "9.zip").exists()
    assert (
        f"file:{new}/checkpoint/spark/state/0/_stateSchema/default/0_a"
        in (found / "state" / "0" / "_metadata" / "v2" / "0").read_text()
    )
    assert numbers(new / "checkpoint" / "joins" / "spark" / "offsets") == [0]  # begun, and not recorded
    mark = json.loads((new / "checkpoint" / "joins" / "SEQUENCES").read_text())
    assert mark == {"numbering": "restored", "first": 1048576}  # they go on higher


def test_a_stream_that_is_far_ahead_of_the_mailbox_is_not_taken(kept: Path) -> None:
    a_query(kept, "q", "", offsets=90, commits=89)
    mailbox = open_mailbox(Settings(kept))
    mailbox.record(*batch(5, [], query="q"))
    mailbox.close()
    with pytest.raises(Overtaken, match="at batch 90, the mailbox of the backup at 5"):
        taken(kept)
    assert not list(kept.glob(".backup-*"))


def test_everything_else_in_the_folder_is_kept_but_what_can_be_rebuilt(kept: Path, tmp_path: Path) -> None:
    (kept / "key").write_bytes(b"secret")
    (kept / "LOCK").write_text("")
    (kept / "arrivals.db").write_text("derived")
    (kept / "output").mkdir()
    (kept / "output" / "a.parquet").write_text("derived")
    (kept / "index" / "v1").mkdir(parents=True)
    (kept / "index" / "v1" / "array").write_text("base")
    (kept / "index" / "v1.tail").write_text("{}\n")
    (kept / "index" / "CURRENT").write_text("1")
    (kept / "index" / "FINGERPRINT").write_text("agrees with the registry")
    stale = kept / ".backup-killed"
    stale.mkdir()
    (stale / "LOCK").write_text("")
    new = tmp_path / "new"
    restore(Settings(new), taken(kept))
    assert not stale.exists()
    found = {str(path.relative_to(new)) for path in new.rglob("*") if path.is_file()}
    log = "log/000000000000.log"
    index = {"index/v1/array", "index/v1.tail", "index/CURRENT"}
    assert found == {"key", "registry.db", "mailbox.db", log, *index}
    assert (new / "key").stat().st_mode & 0o777 == 0o600
    assert (new / log).stat().st_mtime == pytest.approx((kept / log).stat().st_mtime)


# What is refused


def test_a_folder_that_is_used_is_refused(kept: Path, tmp_path: Path) -> None:
    stream = taken(kept)
    with pytest.raises(BackupError, match="is not empty; name a new folder"):
        restore(Settings(kept), stream)
    (tmp_path / "file").write_text("")
    with pytest.raises(BackupError, match="is a file"):
        restore(Settings(tmp_path / "file"), stream)
    (tmp_path / "empty").mkdir()
    restore(Settings(tmp_path / "empty"), stream)
    assert (tmp_path / "empty" / "registry.db").exists()


def test_a_folder_that_is_served_is_refused(kept: Path) -> None:
    from tidings.service.web.server import _locked

    with _locked(kept), pytest.raises(BackupError, match=r"process \d+ serves .*; stop it"):
        restore(Settings(kept), taken(kept))


def test_a_backup_of_a_newer_version_is_refused(kept: Path, tmp_path: Path) -> None:
    for change, said in (
        (
            {"mailbox": "0999"},
            "mailbox in the backup has version 0999, this program knows .*; install a newer",
        ),
        ({"format": 2}, "format 2, this program knows 1; install a newer tidings"),
        ({"registry": None}, "does not say which version"),
    ):
        with tarfile.open(fileobj=taken(kept)) as archive:
            manifest = json.loads(archive.extractfile("MANIFEST.json").read())
        with pytest.raises(BackupError, match=said):
            restore(Settings(tmp_path / "new"), archive_of({"MANIFEST.json": {**manifest, **change}}))
        assert not (tmp_path / "new").exists()


def archive_of(files: dict[str, object]) -> io.BytesIO:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, value in files.items():
            content = json.dumps(value).encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    stream.seek(0)
    return stream


@pytest.mark.parametrize("share", [0.1, 0.999])
def test_a_part_of_a_backup_restores_nothing(kept: Path, tmp_path: Path, share: float) -> None:
    whole = taken(kept).getvalue()
    end = whole.rindex(b"COMPLETE")
    with pytest.raises(BackupError, match="take another|no backup"):
        restore(Settings(tmp_path / "new"), io.BytesIO(whole[: int(end * share)]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept"]


@pytest.mark.parametrize("name", ["files/../../outside", "files//etc/outside", "files/./x"])
def test_a_backup_writes_nowhere_else(kept: Path, tmp_path: Path, name: str) -> None:
    manifest = {"format": 1, "registry": "0001", "mailbox": "0001"}
    with pytest.raises(BackupError, match="no file of a service"):
        restore(Settings(tmp_path / "new"), archive_of({"MANIFEST.json": manifest, name: 1}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept"]


def test_mistakes_are_one_sentence(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a backup")
    for words, said in (
        (("restore", tmp_path / "text", "--data", tmp_path / "new"), "this is no backup of tidings"),
        (("backup", tmp_path / "text", "--data", kept), "exists; name a new file"),
        (("backup", tmp_path / "b", "--data", tmp_path / "none"), "no service keeps anything in"),
        (("backup", tmp_path / "no" / "b", "--data", kept), "No such file"),
        (("restore", tmp_path / "none", "--data", tmp_path / "new"), "does not exist"),
    ):
        result = tidings(*words)
        assert result.exit_code in (1, 2)
        assert said in result.stderr
        assert "Traceback" not in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "text"]


def test_a_database_that_is_used_is_refused(kept: Path, tmp_path: Path) -> None:
    stream = taken(kept)
    restore(Settings(tmp_path / "new"), stream)
    from tidings.service.store.database import open_database

    database = open_database(Settings(tmp_path / "new"), "registry", new=True)
    with pytest.raises(StoreError, match="holds a registry already"), database.writing() as connection:
        database.create(connection, "0001")
    database.close()
