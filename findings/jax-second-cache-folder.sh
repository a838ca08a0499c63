#!/usr/bin/env bash
# JAX takes a second folder for its cache on disk, and goes on to use the first.
#
# Guess:    after jax.config.update("jax_compilation_cache_dir", second) programs go to the second,
#           as they go to the first after the first update.
# Seen:     the config says the second; new programs go to the first, and the second stays empty.
# Versions: jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, 400 MB of disk, half a minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
import pathlib
import sys

import jax
import numpy as np

jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
folders = [pathlib.Path(sys.argv[1], name) for name in ("first", "second")]
for number, folder in enumerate(folders, start=2):
    folder.mkdir()
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.jit(lambda x, number=number: x * number)(np.ones(number, np.float32))
    found = {each.name: len(list(each.glob("*-cache"))) for each in folders}
    print("jax", jax.__version__, "uses", folder.name, "as it says:", found)
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" "$folder" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2 uses first as it says: {'first': 1, 'second': 0}
jax 0.10.2 uses second as it says: {'first': 2, 'second': 0}
RECORDED
