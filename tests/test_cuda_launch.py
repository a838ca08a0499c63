"""The C++ side of generated CUDA code, on a driver that only writes down what it is asked."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

SOURCES = (
    "call_table",
    "cubin_store",
    "cuda_call",
    "cuda_driver",
    "launch_plan",
    "message",
    "search_report",
)
HERE = Path(__file__).resolve().parent / "cuda_driver"
NATIVE = ROOT / "xla_kernels" / "src"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with run_call, and with the fake driver in a folder of its own."""
    folder = tmp_path_factory.mktemp("cuda_driver")
    (folder / "driver").mkdir()
    compiler = ("g++", "-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror")
    for command in (
        (*compiler, "-shared", "-fPIC", HERE / "fake_libcuda.cc", "-o", "driver/libcuda.so.1"),
        (
            *compiler,
            f"-I{NATIVE}",
            HERE / "run_call.cc",
            *(NATIVE / f"{name}.cc" for name in SOURCES),
            "-ldl",
            "-o",
            "run_call",
        ),
    ):
        subprocess.run(command, cwd=folder, check=True)
    return folder


class Runner:
    """Runs run_call, and reads what the driver was asked."""

    def __init__(self, folder: Path, log: Path) -> None:
        self._folder = folder
        self._log = log

    def __call__(
        self,
        plan: str,
        *,
        cubins: str = "code:1",
        functions: str = "",
        arrays: int = 2,
        workspaces: str = "",
        checks: str = "",
        streams: tuple[str, ...] = ("10",),
        driver: str = "driver",
    ) -> str:
        environment = os.environ | {
            "LD_LIBRARY_PATH": str(self._folder / driver),
            "FAKE_CUDA_LOG": str(self._log),
        }
        command = [cubins, functions, plan, str(arrays), workspaces, checks, *streams]
        done = subprocess.run(
            [self._folder / "run_call", *command],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.partition("\n")[2] if " buffers, " in done.stdout else done.stdout

    @property
    def asked(self) -> list[str]:
        """What the driver was asked, loading aside."""
        return [
            line
            for line in self._log.read_text().splitlines()
            if not line.startswith(("load", "capture"))
        ]

    @property
    def loaded(self) -> list[str]:
        """What the driver was asked about loading."""
        return [
            line
            for line in self._log.read_text().splitlines()
            if line.startswith(("load", "capture"))
        ]


@pytest.fixture
def run(programs: Path, tmp_path: Path) -> Runner:
    return Runner(programs, tmp_path / "log")


def test_steps_run_in_order_on_the_stream(run: Runner) -> None:
    assert run("1,1,0,64,0,1,8,2,0,7,128,2,0,1", functions="scale_pp") == ""
    assert run.asked == [
        "copy 64 bytes from 0 to 1",
        "set 8 bytes at 1 to 0",
        "launch code.scale_pp 7x1x1 128x1x1 shared 0 stream 10 0 1",
    ]


def test_a_result_in_the_buffer_of_its_parameter_is_not_copied(run: Runner) -> None:
    assert run("1,1,1,8,0,1,8") == ""
    assert run.asked == ["set 8 bytes at 1 to 0"]


def test_workspaces_lie_behind_the_arrays_and_apart(run: Runner) -> None:
    assert run("0,2,8,0,3,8,0,4,8", workspaces="1,300,256") == ""
    assert run.asked == [f"set 8 bytes at {i} to 0" for i in (2, 3, 4)]


def test_code_is_loaded_once_per_device_and_outside_of_a_recording(run: Runner) -> None:
    plan, functions = "2,0,1,1,0", "one_"
    cubins = "code:1,other:2"
    assert run(plan, functions=functions, cubins=cubins, streams=("10", "20", "11", "21")) == ""
    assert [line.split()[1] for line in run.asked] == ["code.one_", "other.one_"] * 2
    loads = [line for line in run.loaded if line.startswith("load")]
    assert loads == ["load code:1 in 1", "load code:1 in 2", "load other:2 in 2"]
    assert run.loaded[:3] == ["capture mode 2", "load code:1 in 1", "capture mode 1"]


def test_a_device_of_another_architecture_is_named_as_the_reason(run: Runner) -> None:
    assert run("", streams=("30",)) == (
        "Custom 'lu' on GPU: its code was compiled for GPUs of another architecture than this "
        "one.\nLower the program again with MSOPS_CUDA_ARCH naming this GPU's architecture, for "
        "example sm_90, or without that variable on a machine that has such a GPU.\n"
    )


def test_code_that_is_not_here_says_where_it_was_looked_for(run: Runner) -> None:
    message = run("", cubins="-abc")
    assert message.startswith(
        "Custom 'lu' on GPU: expected to find its CUDA code by hash, but no cubin here has it:\n"
        "  hash -abc\n"
    )
    assert "MSOPS_LIBRARY_PATH" in message


def test_an_error_of_the_driver_is_told_by_name(run: Runner) -> None:
    message = run("2,0,1,1,0", functions="fault_")
    assert message.startswith(
        "Custom 'lu' on GPU: cuLaunchKernel failed with error 700:\n"
        "  CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered\n"
    )
    assert "cuModuleGetFunction failed with error 500" in run("2,0,1,1,0", functions="missing")


def test_without_a_driver_the_remedy_is_to_install_it(run: Runner) -> None:
    message = run("", driver="nowhere")
    if "libcuda.so.1 does not open" not in message:
        pytest.skip("this machine has a driver")
    assert "Install NVIDIA's driver" in message


def test_an_index_out_of_range_is_an_error_of_the_run(run: Runner) -> None:
    options = {"arrays": 1, "workspaces": "4", "checks": "first,second"}
    assert run("2,0,1,1,1,1", functions="index_p", **options) == (
        "Custom 'lu' on GPU: an index is out of range:\n"
        "  second\nCorrect the index, or guard the access by an if.\n"
    )
    assert run.asked[-1] == "wait for 10"
    assert run("2,0,1,1,1,0", functions="right_p", **(options | {"arrays": 0})) == ""


@pytest.mark.parametrize(
    ("plan", "word"),
    [
        ("9", 0),
        ("0,2,8", 0),
        ("0,-1,8", 0),
        ("0,0", 0),
        ("0,0,-8", 0),
        ("1,0,2,8", 0),
        ("0,0,8,2,1,1,1,0", 3),
        ("2,0,0,1,0", 0),
        ("2,0,1,1025,0", 0),
        ("2,0,1,1,2,0", 0),
        ("2,0,1,1,1,2", 0),
        ("2,0,1,1,1,-1", 0),
        ("2,0,1,1,1,0,3,0,1,3,0,0,8", 6),
    ],
)
def test_a_plan_that_is_none_is_refused(run: Runner, plan: str, word: int) -> None:
    assert run(plan, functions="one_p") == (
        f"Custom 'lu' on GPU: word {word} of its launch plan begins no step.\n"
        "Lower the program again with this version of msops.\n"
    )
