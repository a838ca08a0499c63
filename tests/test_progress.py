"""What a terminal shows while a kernel is built, and that nothing else sees it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

SLOW_COMPILER = """#!/bin/sh
case "$*" in *--version*) ;; *) sleep 2.5 ;; esac
exec g++ "$@"
"""
SCRIPT = """
import jax.numpy as jnp
from msops import Custom

op = Custom("two.cc:Two", lambda x: x, lambda x: x)
print(op(jnp.zeros(1)))
"""
KERNEL = """
extern "C" int Two(int n, void **params, int *ndims, long **shapes, const char **dtypes,
                   void *stream, void *extra) {
  *static_cast<float *>(params[1]) = 2;
  return 0;
}
"""


@pytest.mark.parametrize(
    "is_terminal", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["terminal", "file"]
)
@pytest.mark.slow
def test_a_build_of_more_than_two_seconds_is_announced(tmp_path: Path, is_terminal: bool) -> None:
    (tmp_path / "two.cc").write_text(KERNEL)
    (tmp_path / "script.py").write_text(SCRIPT)
    compiler = tmp_path / "slow"
    compiler.write_text(SLOW_COMPILER)
    compiler.chmod(0o755)
    settings = {"CXX": str(compiler), "MSOPS_CACHE_DIR": str(tmp_path / "cache")}
    reader, writer = pty.openpty() if is_terminal else os.pipe()
    # The second run finds the library in the cache.
    for line in ("Custom 'Two': building two.so; the cache keeps it ...\r\n", ""):
        done = subprocess.run(
            [sys.executable, "script.py"],
            cwd=tmp_path,
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            stderr=writer,
            text=True,
            check=True,
        )
        assert done.stdout == "[2.]\n"
        os.write(writer, b"end")
        shown = ""
        while not shown.endswith("end"):
            shown += os.read(reader, 1000).decode()
        assert shown == (line if is_terminal else "") + "end"
    os.close(reader)
    os.close(writer)
