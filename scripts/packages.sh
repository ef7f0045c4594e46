# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# Debian packages for scripts/setup: which are missing, and two ways to get them. Sourced after common.sh.

# The package names of the arguments that are not installed; nothing on a machine without dpkg, where the
# configure step tells what it does not find.
missing_packages() {
  local name
  command -v dpkg-query >/dev/null || return 0
  for name in "$@"; do
    if ! dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null | grep -qx installed &&
      [ ! -e "$deps/debian/installed/$name" ]; then
      echo "$name"
    fi
  done
}

# The words that run a command as root (`env` when we are); empty where there is no way. sudo may ask for a
# password on a terminal.
become_root() {
  if [ "$(id -u)" = 0 ]; then
    echo env
  elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
    echo sudo
  fi
}

run_quietly() {
  local log="$deps/$1.log"
  shift
  "$@" >"$log" 2>&1 || { tail -n 25 "$log" >&2; return 1; }
}

install_packages() {
  local as_root
  as_root=$(become_root)
  local install=($as_root DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$@")
  # A fresh machine has no package lists, or lists that name versions long gone.
  run_quietly apt "${install[@]}" 2>/dev/null && return 0
  run_quietly apt-update $as_root apt-get update || say "apt-get update failed; trying with the lists there are"
  run_quietly apt "${install[@]}" || die "apt-get install failed; see .deps/apt.log"
}

# apt-get with lists and caches of its own below .deps, which needs no rights.
private_apt() {
  apt-get -o "Dir::State::Lists=$deps/apt/lists" -o "Dir::Cache=$deps/apt/cache" -o Debug::NoLocking=1 \
    -o APT::Sandbox::User= "$@"
}

# Without root: unpacks the packages, and those that hold the libraries their CMake files name.
unpack_packages() {
  local name lists=("$deps/apt/lists")
  mkdir -p "$deps/apt/lists/partial" "$deps/apt/cache/archives/partial" "$deps/debian/installed"
  run_quietly apt-update private_apt update || die "cannot read Debian's package lists; see .deps/apt-update.log"
  local all=()
  for name in "$@"; do
    case $name in
      python3-venv) all+=(python3-pip-whl) ;;
      *)
        all+=("$name")
        mapfile -t -O "${#all[@]}" all < <(apt-cache -o "Dir::State::Lists=${lists[0]}" \
          -o "Dir::Cache=$deps/apt/cache" depends "$name" |
          sed -n 's/^ *Depends: \(libfmt[0-9.]*\|googletest\|libgmock-dev\)$/\1/p')
        ;;
    esac
  done
  (cd "$deps/apt" && run_quietly apt private_apt download "${all[@]}") ||
    die "cannot download Debian packages; see .deps/apt.log"
  for name in "$deps"/apt/*.deb; do dpkg-deb --extract "$name" "$deps/debian"; done
  rm -f "$deps"/apt/*.deb
  for name in "$@"; do touch "$deps/debian/installed/$name"; done
}

# pip as an archive that Python runs, out of an unpacked package.
unpacked_pip() {
  local wheel
  for wheel in "$deps"/debian/usr/share/python-wheels/pip-*.whl /usr/share/python-wheels/pip-*.whl; do
    if [ -e "$wheel" ]; then
      echo "$wheel/pip"
      return
    fi
  done
  die "no pip: install python3-venv"
}
