#!/bin/sh
# Prints the path of the first Python among the candidates that runs and is 3.11 or newer.
#
#   tools/find_python.sh [CANDIDATE...]
#
# A candidate is a command or a path. A name such as python3.13 is also looked for among pyenv's
# versions, whose commands are on PATH and yet do not run unless they are switched on. Fails, and
# says nothing, if there is none.
is_new_enough() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

[ $# -gt 0 ] || set -- python3 python3.13 python3.12 python3.11
for candidate; do
  for path in "$candidate" "${PYENV_ROOT:-$HOME/.pyenv}/versions/${candidate#python}".*/bin/python; do
    if is_new_enough "$path"; then
      command -v "$path"
      exit 0
    fi
  done
done
exit 1
