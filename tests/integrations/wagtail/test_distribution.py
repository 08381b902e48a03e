"""The app as a distribution of its own."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.integrations.wagtail.conftest import FOLDER


@pytest.mark.slow
def test_the_wheel_has_templates_and_migrations(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(tmp_path), str(FOLDER)], check=True)
    (wheel,) = tmp_path.glob("wagtail_tidings-*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    package = FOLDER / "wagtail_tidings"
    wanted = {
        str(path.relative_to(FOLDER)) for path in package.rglob("*.*") if "__pycache__" not in path.parts
    }
    assert {f"wagtail_tidings/{name}" for name in ("urls.py", "migrations/0001_initial.py")} < wanted
    assert wanted <= inside
    assert not {name for name in inside if name.startswith(("example", "newsroom"))}
