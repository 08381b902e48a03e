#!/usr/bin/env bash
# What some tests run against: PostgreSQL and Chromium, found, or installed where the user may. Without them those tests
# are skipped, so this never fails.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/system.sh

# has NAME FOLDER…: whether a program is on the path, or in one of the folders.
has() {
    local name="$1" folder
    shift
    command -v "$name" >/dev/null 2>&1 && return
    for folder in "$@"; do
        [ -x "$folder/$name" ] && return
    done
    return 1
}

has_postgresql() { has initdb /usr/lib/postgresql/*/bin /usr/local/pgsql*/bin /usr/pgsql*/bin /opt/homebrew/opt/postgresql*/bin; }
has_chromium() { has chromium || has chromium-browser || has google-chrome || has google-chrome-stable; }

missing=""
has_postgresql || { apt_install postgresql && has_postgresql; } || missing="PostgreSQL"
has_chromium || { apt_install chromium chromium-browser && has_chromium; } || missing="${missing:+$missing and }Chromium"
[ -z "$missing" ] ||
    say "$missing cannot be installed here, so tests that need it are skipped; install it by hand to run them"
exit 0
