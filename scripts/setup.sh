#!/usr/bin/env bash
# Makes .venv with the versions pinned in requirements.lock, and Tidings in it as an editable package.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/system.sh

fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2])' >/dev/null 2>&1; }

find_python() {
    local candidate
    for candidate in "${PYTHON:-python3}" python3.13 python3.12 python3.11 python3.14; do
        if fits "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    say "Python 3.11 or newer is needed, and '${PYTHON:-python3}' is $("${PYTHON:-python3}" --version 2>&1 || true);" \
        "install it, or name one: make PYTHON=/path/to/python3.11"
    exit 1
}

if ! fits .venv/bin/python; then
    python="$(find_python)"
    if ! "$python" -c 'import venv, ensurepip' >/dev/null 2>&1; then
        version="$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
        apt_install "python$version-venv" python3-venv || true
        "$python" -c 'import venv, ensurepip' >/dev/null 2>&1 || {
            say "$python cannot make virtual environments; install the package python3-venv and try again"
            exit 1
        }
    fi
    say "making .venv with $("$python" --version)"
    rm -rf .venv
    "$python" -m venv .venv
fi

say "installing the pinned packages"
# PySpark comes as sources, of which pip makes a wheel to unpack it at once; half a gigabyte of jars need no packing for that.
printf '[bdist_wheel]\ncompression = stored\n' >.venv/wheels.cfg
DIST_EXTRA_CONFIG="$PWD/.venv/wheels.cfg" \
    .venv/bin/python -m pip install -qq --disable-pip-version-check --no-compile -r requirements.lock || {
    say "the packages could not be installed; the lines above say why (no network? then see pip's settings)"
    exit 1
}
# On all cores, and without what is hardly imported, in a third of the time that pip takes for it. Some files are meant to be wrong.
.venv/bin/python -m compileall -qq -j 0 .venv/lib \
    -x '[/_]tests?/|/(mypyc?|pygments|fontTools|backrefs|pymdownx)/|/pyspark/(ml|mllib|pandas)/' || true
# The build tool is in the lock too, so this step asks the network for nothing.
.venv/bin/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
