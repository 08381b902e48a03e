"""One service of the benchmark: open to everybody, without Spark unless it is the centre's.

python -m benchmarks.relays.serve    with the settings as JSON on standard input
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tidings.service.settings import Settings
from tidings.service.web.server import serve

if __name__ == "__main__":
    given = json.loads(sys.stdin.readline())
    serve(Settings(**{**given, "data": Path(given["data"]), "upstream": tuple(given.get("upstream", ()))}))
