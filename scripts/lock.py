"""Writes requirements.lock: one exact version of every package that Tidings and its extras need.

pip resolves pyproject.toml as if nothing were installed, and reports what it would take; names and versions
are all that is kept, so that the file says nothing about where they came from.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
HEADER = "# Written by `make lock`: Tidings with its extras spark, service, postgresql, remote, mail, chat, stemming, docs and dev, for Python 3.11 and newer.\n"


def resolved() -> dict[str, str]:
    command = [sys.executable, "-m", "pip", "install", "-qq", "--dry-run", "--ignore-installed"]
    command += ["--report", "-", f"{ROOT}[spark,service,postgresql,remote,mail,chat,stemming,docs,dev]"]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    packages = (item["metadata"] for item in report["install"])
    return {re.sub(r"[-_.]+", "-", p["name"]).lower(): p["version"] for p in packages}


def main() -> None:
    versions = resolved()
    del versions["tidings"]
    LOCK.write_text(HEADER + "".join(f"{name}=={version}\n" for name, version in sorted(versions.items())))
    print(f"{LOCK.name}: {len(versions)} packages")


if __name__ == "__main__":
    main()
