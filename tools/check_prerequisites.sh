#!/bin/sh
# Checks what `make setup` needs from the system: a line each, with the fix for what is missing.
#
#   tools/check_prerequisites.sh [PYTHON]
#
# Prints the Python to use on standard output, everything else on standard error.
missing=0

# install DEBIAN FEDORA: prints the command that installs a package here.
install() {
  sudo=$([ "$(id -u)" = 0 ] || echo "sudo ")
  if command -v apt-get >/dev/null 2>&1; then
    echo "${sudo}apt-get install $1"
  elif command -v dnf >/dev/null 2>&1; then
    echo "${sudo}dnf install $2"
  else
    echo "install $1 (Debian, Ubuntu) or $2 (Fedora) with your package manager"
  fi
}

found() { echo "found    $1" >&2; }
lacks() {
  echo "MISSING  $1: $2" >&2
  missing=1
}

# shellcheck disable=SC2086 # No argument must stay none.
if python=$("$(dirname "$0")/find_python.sh" ${1:+"$1"}); then
  version=$("$python" -c 'import platform; print(platform.python_version())')
  minor=${version%.*}
  found "Python $version ($python)"
  if "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    found "Python's venv"
  else
    lacks "Python's venv" "$(install "python$minor-venv" "python$minor")"
  fi
  if "$python" -c 'import os, sysconfig
os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null; then
    found "Python.h"
  else
    lacks "Python.h" "$(install "python$minor-dev" "python$minor-devel")"
  fi
else
  old=$("${1:-python3}" -c 'import platform; print(platform.python_version())' 2>/dev/null)
  if [ -n "$1" ]; then
    wanted="Python 3.11 or newer (PYTHON=$1 ${old:+is }${old:-does not run})"
  else
    wanted="Python 3.11 or newer${old:+ (python3 is $old)}"
  fi
  if other=$([ -n "$1" ] && "$(dirname "$0")/find_python.sh"); then
    lacks "$wanted" "make without PYTHON=$1, which finds $other"
  elif [ -n "$old" ]; then
    # The system's python3 package is what is there, and it is too old.
    lacks "$wanted" \
      "$(install "python3.11 python3.11-venv python3.11-dev" "python3.11 python3.11-devel"), or a \
newer one in the same way${1:+, then make without PYTHON=$1}"
  else
    lacks "$wanted" "$(install "python3 python3-venv python3-dev" "python3 python3-devel"); where \
that is older, $(install "python3.11 python3.11-venv python3.11-dev" "python3.11 python3.11-devel")"
  fi
fi

# CXX may hold options too.
compiler=${CXX:-g++}
version=$($compiler -dumpfullversion -dumpversion 2>/dev/null)
if [ -z "$version" ]; then
  lacks "$compiler${CXX:+ (from CXX)}" "$(install g++ gcc-c++)${CXX:+, and unset CXX}"
elif $compiler --version | grep -q "Free Software Foundation" && [ "${version%%.*}" -lt 11 ]; then
  lacks "g++ 11 or newer (found $version)" "$(install g++-12 gcc-c++), then make CXX=g++-12"
else
  found "$compiler $version"
fi

if command -v make >/dev/null 2>&1; then
  found "make"
else
  lacks "make" "$(install make make)"
fi

[ $missing = 0 ] || exit 1
echo "$python"
