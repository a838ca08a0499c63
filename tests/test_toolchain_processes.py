"""The cache under many processes at once, under kill -9, and under fork."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from msops._toolchain import build
from msops._toolchain.store import ObjectStore

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")

PACKAGE_FOLDER = Path(__file__).resolve().parent.parent

# Forks its children rather than starting interpreters: they reach the cache within a millisecond of
# each other. A compiler that is slow to start widens the window in which a kill hits a build.
HERD = """
import ctypes, os, random, signal, sys, time
from pathlib import Path
from msops._toolchain import resolve

seed, folder, expected = int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
source = folder / "op.c"
random.seed(seed)
gate, opener = os.pipe()
children = []
for _ in range(16):
    child = os.fork()
    if child == 0:
        os.close(opener)
        os.read(gate, 1)
        try:
            library = resolve(source, "herd")
            value = ctypes.CDLL(str(library.path)).f()
        except BaseException as error:
            print(type(error).__name__, error, flush=True)
            os._exit(2)
        os._exit(0 if value == expected else 3)
    children.append(child)
os.close(gate)
os.close(opener)
killed = random.sample(children, 6)
for child in killed:
    time.sleep(random.random() * 0.03)
    os.kill(child, signal.SIGKILL)
outcomes = {child: os.waitpid(child, 0)[1] for child in children}
bad = [status for child, status in outcomes.items() if child not in killed and status != 0]
bad += [status for child in killed if (status := outcomes[child]) not in (0, signal.SIGKILL)]
hit = sum(outcomes[child] == signal.SIGKILL for child in killed)
print("bad", bad, "hit", hit)
"""

# Sleeps where the real compiler would work, and counts the compilations.
SLOW_COMPILER = """#!/bin/sh
test "$1" = --version && exec gcc "$@"
echo started >> "$COMPILATIONS"
sleep 0.05
exec gcc "$@"
"""


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    compiler = tmp_path / "slow-gcc"
    compiler.write_text(SLOW_COMPILER)
    compiler.chmod(0o755)
    for name, value in (
        ("MSOPS_CACHE_DIR", tmp_path / "cache"),
        ("CC", compiler),
        ("COMPILATIONS", tmp_path / "compilations"),
        ("PYTHONPATH", PACKAGE_FOLDER),
    ):
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("MS_CUSTOM_AOT_WHITE_LIST", raising=False)
    return dict(os.environ)


def start(code: str, environment: dict[str, str], *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(claim, what: str) -> None:
    deadline = time.monotonic() + 120
    while not claim():
        assert time.monotonic() < deadline, f"no {what} in 120 s"
        time.sleep(0.005)


@pytest.mark.parametrize("rounds", [2, pytest.param(6, marks=pytest.mark.slow)])
def test_sixteen_processes_under_kill_make_one_valid_entry_and_no_bad_load(
    tmp_path: Path, environment: dict[str, str], rounds: int
) -> None:
    hits = 0
    for seed in range(rounds):
        folder = tmp_path / f"herd{seed}"
        folder.mkdir()
        (folder / "op.c").write_text(f"int f(void) {{ return {seed} + 100; }}\n")
        environment["MSOPS_CACHE_DIR"] = str(folder / "cache")
        (tmp_path / "compilations").write_text("")
        herd = start(HERD, environment, seed, folder, seed + 100)
        output, errors = herd.communicate(timeout=120)
        words = output.split()
        assert (herd.returncode, words[:2]) == (0, ["bad", "[]"]), output + errors
        killed = int(words[-1])
        hits += killed
        # A compilation is repeated only for one that was killed.
        compilations = (tmp_path / "compilations").read_text().count("started")
        assert 1 <= compilations <= 1 + killed
        (entry,) = (folder / "cache" / "objects").rglob("*.so")
        assert hashlib.sha256(entry.read_bytes()).hexdigest() == entry.parent.name
        assert len(list((folder / "cache" / "manifests").rglob("*.json"))) == 1
    assert hits >= rounds


BUILD = "import sys; from pathlib import Path; from msops._toolchain import build\n"
BUILD += "print(build(Path(sys.argv[1]), who='builder').path)"


def test_a_killed_build_blocks_nobody_and_its_scratch_is_swept(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "op.c"
    source.write_text("int f(void) { return 1; }\n")
    mark = tmp_path / "compiler-pid"
    stuck = tmp_path / "slow-gcc"
    version = 'test "$1" = --version && exec gcc "$@"\n'
    stuck.write_text(f'#!/bin/sh\n{version}echo $$ > "{mark}.new"; mv "{mark}.new" "{mark}"\n'
                     "exec sleep 600\n")  # fmt: skip
    builder = start(BUILD, environment, source)
    wait_for(mark.exists, "stuck compiler")
    builder.kill()
    builder.communicate()
    # The stuck compiler lives on as an orphan, and must not hold the lock either.
    stuck.write_text(f'#!/bin/sh\n{version}exec gcc "$@"\n')
    assert build(source, who="next").path.exists()
    # It was not waited for: it sleeps still.
    os.kill(int(mark.read_text()), signal.SIGKILL)

    (abandoned,) = (tmp_path / "cache" / "scratch").iterdir()
    unfinished = abandoned.with_name("file")
    unfinished.touch()
    yesterday = time.time() - 86400
    for left in abandoned, unfinished:
        os.utime(left, (yesterday, yesterday))
    sweeper = start(BUILD, environment, tmp_path / "other.c")
    (tmp_path / "other.c").write_text("int g(void) { return 2; }\n")
    output, errors = sweeper.communicate(timeout=120)
    assert sweeper.returncode == 0, output + errors
    assert not abandoned.exists()
    assert not unfinished.exists()


def test_the_scratch_of_a_long_build_is_not_swept(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    store = ObjectStore(tmp_path / "cache", "owner")
    with store.scratch() as scratch:
        yesterday = time.time() - 86400
        os.utime(scratch, (yesterday, yesterday))
        (tmp_path / "op.c").write_text("int f(void) { return 1; }\n")
        other = start(BUILD, environment, tmp_path / "op.c")
        output, errors = other.communicate(timeout=120)
        assert other.returncode == 0, output + errors
        assert scratch.exists()
    assert not scratch.exists()


# C's fork runs no hooks of Python's: what a library that forks on its own does.
HOLDER = """
import ctypes, os, sys, time
from pathlib import Path
from msops._toolchain.store import ObjectStore

with ObjectStore(Path(sys.argv[1]), "holder").lock("ab"):
    child = {fork}()
    if child == 0:
        os.close(1)
        os.close(2)
        time.sleep(60)
        os._exit(0)
    print(child, flush=True)
    if {is_killed}:
        time.sleep(60)
"""


@pytest.mark.parametrize(
    ("fork", "is_killed"),
    [("os.fork", True), ("os.fork", False), ("ctypes.CDLL(None).fork", False)],
)
def test_a_lock_does_not_outlive_its_holder_in_a_forked_child(
    tmp_path: Path, environment: dict[str, str], fork: str, is_killed: bool
) -> None:
    cache = tmp_path / "cache"
    holder = start(HOLDER.format(fork=fork, is_killed=is_killed), environment, cache)
    assert holder.stdout is not None
    child = int(holder.stdout.readline())
    try:
        if is_killed:
            holder.kill()
        holder.wait(30)
        acquired = threading.Event()

        def acquire() -> None:
            with ObjectStore(cache, "next").lock("ab"):
                acquired.set()

        threading.Thread(target=acquire, daemon=True).start()
        assert acquired.wait(10)
    finally:
        os.kill(child, signal.SIGKILL)
        holder.communicate()


def test_builds_whose_keys_begin_alike_run_at_once(tmp_path: Path) -> None:
    store, is_inside = ObjectStore(tmp_path, "test"), threading.Event()

    def work() -> None:
        with store.lock("abcd" + "0" * 60):
            is_inside.set()

    with store.lock("abcf" + "0" * 60):
        threading.Thread(target=work, daemon=True).start()
        assert is_inside.wait(10)


def test_a_lock_excludes_threads_and_an_old_lock_file_means_nothing(tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "ab").write_text("left behind by someone")
    store, inside, overlaps = ObjectStore(tmp_path, "test"), [], []

    def work() -> None:
        for _ in range(20):
            with store.lock("ab"):
                inside.append(1)
                overlaps.append(len(inside))
                time.sleep(0.0005)
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(overlaps) == 1
