#!/usr/bin/env bash
# islpy counts 0 points in an infinite set and in a set with a parameter.
#
# Guess:    count_val of a set without a finite count is infinity, a NaN value, or an error.
# Seen:     it is 0, as for an empty set; a finite set is counted right. max_val of the same set
#           does say infinity.
# Versions: islpy 2026.2.2; x86-64 Linux.
# Needs:    Python 3.11, 100 MB of disk, half a minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet islpy==2026.2.2
cat > "$folder/probe.py" <<'PYTHON'
from importlib.metadata import version

import islpy as isl

print("islpy", version("islpy"))
for text in (
    "{ [i] : 0 <= i < 5 }",
    "{ [i] : 0 = 1 }",
    "{ [i] : i >= 0 }",
    "[n] -> { [i] : 0 <= i < n }",
):
    points = isl.Set(text)
    print(text, "empty:", points.is_empty(), "count:", points.count_val())
print("largest of { [i] : i >= 0 }:", isl.Set("{ [i] : i >= 0 }").max_val(isl.Aff("{ [i] -> [(i)] }")))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
islpy 2026.2.2
{ [i] : 0 <= i < 5 } empty: False count: 5
{ [i] : 0 = 1 } empty: True count: 0
{ [i] : i >= 0 } empty: False count: 0
[n] -> { [i] : 0 <= i < n } empty: False count: 0
largest of { [i] : i >= 0 }: infty
RECORDED
