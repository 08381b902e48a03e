# Sourced by the other scripts: sentences, and packages of the system where this user may install them.

say() { echo "tidings: $*" >&2; }

# apt_install PACKAGE…: installs the first package that the system has; fails if it has none or we may not.
apt_install() {
    command -v apt-get >/dev/null 2>&1 || return 1
    local as_root=""
    if [ "$(id -u)" != 0 ]; then
        { command -v sudo && sudo -n true; } >/dev/null 2>&1 || return 1
        as_root="sudo -n"
    fi
    say "installing a system package (one of: $*)"
    $as_root apt-get update -qq >&2 || true # stale lists may still do
    local package
    for package in "$@"; do
        # Another script may be installing something at this moment.
        if $as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq -o DPkg::Lock::Timeout=300 --no-install-recommends "$package" >&2; then
            return 0
        fi
    done
    return 1
}
