"""`tidings bench joins`: every scheme in a line, the rate of exact deltas, and the picture."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from tidings.cli import main
from tidings.dissemination.schemes import SCHEMES

SMALL = ["bench", "joins", "--subscriptions", "300", "--events", "30"]


def test_schemes_are_compared_and_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "schemes.png"
    done = CliRunner().invoke(main, [*SMALL, "-o", str(picture)])
    assert done.exit_code == 0, done.output
    lines = {line.split()[0]: line.split()[1:] for line in done.output.splitlines() if line.strip()}
    assert set(SCHEMES) <= set(lines)
    # Rel-Sel sends each row once: three numbers, the key and a payload of 100 bytes are 112 bytes.
    assert lines["Rel-Sel"][:2] == ["112", "1.00"]
    sent = {name: float(lines[name][0].replace(",", "")) for name in SCHEMES}
    assert sent["Ref-SJ-Clu+"] <= sent["Ref-SJ-Clu"] <= sent["Ref-SJ-Tup"] < sent["Ref-J"]
    assert sent["Enum-SJ"] < sent["Enum-J"]
    assert re.search(r"exact deltas of 300 subscriptions: [\d,]+ changes/s", done.output)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_picture_needs_a_name_of_one() -> None:
    done = CliRunner().invoke(main, [*SMALL, "-o", "schemes.txt"])
    assert done.exit_code == 1
    assert "end it with .png or .svg" in done.output
    assert len(done.output.strip().splitlines()) == 1
