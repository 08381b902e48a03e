#!/usr/bin/env bash
# Prints the home of a Java 17 or newer: found, or installed where the user may, or asked for in a sentence.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/system.sh

# "17.0.15", "21", "1.8.0_402" -> 17, 21, 1
fits() {
    local version
    version="$("$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)" || return 1
    [ -n "$version" ] && [ "$version" -ge 17 ]
}

home_of() { "$1" -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java\.home = //p'; }

find_java() {
    local candidate mac
    mac="$(/usr/libexec/java_home -v 17+ 2>/dev/null || true)"
    for candidate in "${JAVA_HOME:+$JAVA_HOME/bin/java}" java "${mac:+$mac/bin/java}" /usr/lib/jvm/*/bin/java; do
        if [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 && fits "$candidate"; then
            home_of "$candidate"
            return
        fi
    done
    return 1
}

find_java && exit
apt_install openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless && find_java && exit
say "Spark needs Java 17 or newer and none was found; install one (Debian, Ubuntu: openjdk-17-jre-headless;" \
    "Fedora: java-21-openjdk-headless; macOS: brew install openjdk@17), or set JAVA_HOME, and try again"
exit 1
