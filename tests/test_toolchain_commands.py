"""Compilers as processes: they are waited for, end when Python is interrupted, or are refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from quick_cases import in_turn

from msops import Custom
from msops.errors import BuildError
from msops.ops import CustomOpBuilder

ROOT = Path(__file__).resolve().parent.parent
X = np.zeros(1, np.float32)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(tmp_path / "cache"))


def compiler(path: Path, body: str) -> str:
    """Writes a compiler that is g++ to whoever asks it."""
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exec g++ --version\n{body}\n')
    path.chmod(0o755)
    return str(path)


PARAMETERS = "int, void **, int *, long **, const char **, void *, void *"


def source(tmp_path: Path, name: str = "op.cc") -> Path:
    path = tmp_path / name
    path.write_text(f'extern "C" int f({PARAMETERS}) {{ return 1; }}\n')
    return path


def refusal(tmp_path: Path) -> str:
    with pytest.raises(BuildError) as caught:
        Custom(f"{source(tmp_path)}:f", (1,), np.float32).explain(X)
    return str(caught.value)


def test_a_compiler_that_lists_no_headers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = 'g++ "$@" || exit; while [ "$1" != -MF ]; do shift; done; rm "$2"'
    monkeypatch.setenv("CXX", compiler(tmp_path / "cxx", body))
    text = refusal(tmp_path)
    assert f"cxx built {tmp_path}/op.cc, but did not write which headers it read" in text
    assert "-MD and -MF" in text


@pytest.mark.parametrize(
    "depfile",
    [
        "",
        "out: other.cc",
        ":::",
        "no rule",
        "\\\\\\\\",
        "out: op.cc a\\000b",
        "\\377\\376",
        "out: \\\n",
    ],
)
def test_a_depfile_that_does_not_name_the_source_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depfile: str
) -> None:
    monkeypatch.setenv("CXX", depfile_writer(tmp_path, depfile))
    assert f"cxx built {tmp_path}/op.cc, but did not write which headers" in refusal(tmp_path)


@pytest.mark.parametrize("name", ["absent.h", "/absent/\\377.h", "x" * 300, "."])
def test_a_depfile_that_names_what_cannot_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("CXX", depfile_writer(tmp_path, f"out: op.cc {name}"))
    if name == ".":
        # Nor is a folder a file that could change, or a device.
        assert Custom(f"{source(tmp_path)}:f", (1,), np.float32).explain(X)
        return
    text = refusal(tmp_path)
    assert "the compiler reports that it read a file that cannot be read" in text
    assert "name another compiler with CC or CXX" in text


def test_pipes_and_devices_that_a_depfile_names_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setenv("CXX", depfile_writer(tmp_path, "out: op.cc pipe /dev/null /dev/zero"))
    assert Custom(f"{source(tmp_path)}:f", (1,), np.float32).explain(X)


def depfile_writer(tmp_path: Path, text: str) -> str:
    """Returns a compiler that writes `text`, in the escapes of printf, for its depfile."""
    find = 'while [ "$1" != -MF ]; do shift; done'
    return compiler(tmp_path / "cxx", f'g++ "$@" || exit; {find}; printf \'{text}\' > "$2"')


def test_a_compiler_that_leaves_a_process_behind_is_refused_and_the_process_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = f'sleep 600 &\necho $! > {tmp_path}/left\nexec g++ "$@"'
    monkeypatch.setenv("CXX", compiler(tmp_path / "cxx", body))
    assert "a process that it left behind holds its output open" in refusal(tmp_path)
    assert has_ended(int((tmp_path / "left").read_text()))


def has_ended(process: int) -> bool:
    """Waits for a process that was killed; returns whether it has ended, be it unclaimed."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


# Python is interrupted while it starts a compiler that runs already, as on a busy machine.
SLOW_START = """
import subprocess, time
class Slow(subprocess.Popen):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        time.sleep(0.5)
subprocess.Popen = Slow
"""


@pytest.mark.parametrize(
    ("count", "start"),
    in_turn(
        [pytest.param(1, id="one source"), pytest.param(3, id="several")],
        [pytest.param("", id="at once"), pytest.param(SLOW_START, id="while it starts")],
    ),
)
def test_interrupting_python_ends_its_compilers(tmp_path: Path, count: int, start: str) -> None:
    compiler(tmp_path / "cxx", f"echo $$ >> {tmp_path}/started\nsleep 600\nexit 1")
    paths = [source(tmp_path, f"op{index}.cc") for index in range(count)]
    code = (
        "import signal, sys\n"
        # A shell starts what runs in its background with interrupts ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import numpy as np\n"
        "from msops import Custom, ops\n"
        f"{start}\n"
        "first, *more = sys.argv[1:]\n"
        "info = ops.CustomRegOp('f').input(0, 'x').output(0, 'y').target('Ascend').get_op_info()\n"
        "if more:\n"
        "    op = Custom([first, *more], (1,), np.float32, 'aicpu', reg_info=info)\n"
        "else:\n"
        "    op = Custom(f'{first}:f', (1,), np.float32)\n"
        "op.explain(np.zeros(1, np.float32))\n"
    )
    environment = {**os.environ, "CXX": str(tmp_path / "cxx"), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", code, *paths], env=environment, stderr=subprocess.PIPE, text=True
    ) as python:
        started = tmp_path / "started"
        while not started.exists() or not started.read_text().endswith("\n"):
            time.sleep(0.05)
            assert python.poll() is None
        python.send_signal(signal.SIGINT)
        try:
            _, text = python.communicate(timeout=60)
        finally:
            python.kill()
    assert "KeyboardInterrupt" in text
    assert all(has_ended(int(line)) for line in started.read_text().split())


def test_an_interruption_that_another_thread_takes_ends_a_command() -> None:
    code = (
        "import os, pathlib, signal, threading, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from msops._toolchain.commands import map_in_threads, run_command\n"
        "def task(_):\n"
        "    time.sleep(1)  # Until Python's main thread waits.\n"
        "    signal.pthread_kill(threading.get_ident(), signal.SIGINT)\n"
        "    done = run_command(('sleep', '30'), pathlib.Path.cwd(), os.environ, None)\n"
        "    print(done.returncode)\n"
        "map_in_threads(task, [0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "KeyboardInterrupt" in done.stderr
    assert int(done.stdout) == -signal.SIGKILL


def test_output_arrives_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = r"printf 'one\ntw'; sleep 0.3; printf 'o\n\377 three'; exit 3"
    monkeypatch.setenv("CXX", compiler(tmp_path / "cxx", body))
    with pytest.raises(BuildError) as caught:
        Custom(f"{source(tmp_path)}:f", (1,), np.float32).explain(X)
    assert caught.value.output == "one\ntwo\n\ufffd three"


def test_output_is_shown_by_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    body = r"printf 'one\ntw'; sleep 0.3; printf 'o\n\377 three'; exit 3"
    monkeypatch.setenv("CXX", compiler(tmp_path / "cxx", body))
    with pytest.raises(BuildError):
        CustomOpBuilder("noisy", str(source(tmp_path)), verbose=True).build()
    assert "\none\ntwo\n\ufffd three\n" in capfd.readouterr().err


def test_a_command_that_writes_nothing_for_long_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = f"exec >&- 2>&-; sleep 0.5; touch {tmp_path}/slept; exit 4"
    monkeypatch.setenv("CXX", compiler(tmp_path / "cxx", body))
    assert "could not build" in refusal(tmp_path)
    assert (tmp_path / "slept").exists()
