"""Without an extra, its module says what to install, and the others work."""

import subprocess
import sys

import pytest


def without(missing, module):
    code = f"import sys; sys.modules[{missing!r}] = None; import tidings.kinds.operators.library.{module}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stderr


@pytest.mark.parametrize(("missing", "module"), [("shapely", "spatial"), ("sqlalchemy", "lookup")])
def test_a_missing_library_is_named(missing, module):
    assert f"install Tidings with the extra '{module}'" in without(missing, module)
    assert without(missing, "text") == ""
