"""set_context, set_device and what device they select."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest
from conftest import ROOT
from face_namespace import ms
from quick_cases import one_in

from msops import common
from msops.errors import ArgumentTypeError, ArgumentValueError, BackendError, MsopsError


@pytest.fixture(autouse=True)
def _same_context_again():
    names = ("mode", "device_target", "device_id", "save_graphs")
    before = {name: ms.get_context(name) for name in names}
    yield
    ms.set_context(**before)


def in_new_process(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    paths = [str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | environment
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def test_defaults_are_those_of_mindspore():
    assert ms.get_context("mode") == ms.PYNATIVE_MODE == 1
    assert ms.GRAPH_MODE == 0
    assert ms.get_context("device_id") == 0
    assert ms.get_context("device_target") == ("CPU" if jax.default_backend() == "cpu" else "GPU")
    assert ms.get_context("save_graphs") is None


def test_sets_and_gives_back():
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU", device_id=0, save_graphs=True)
    assert ms.context.get_context("mode") == ms.GRAPH_MODE
    assert ms.context.get_context("device_target") == "CPU"
    assert ms.context.get_context("save_graphs") is True
    ms.set_device("GPU", 1)
    assert (ms.get_context("device_target"), ms.get_context("device_id")) == ("GPU", 1)
    ms.set_device("CPU")
    assert (ms.get_context("device_target"), ms.get_context("device_id")) == ("CPU", 1)


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"mod": 0}, ArgumentValueError, "Did you mean mode"),
        ({"nonsense": 0}, ArgumentValueError, "implicit_gather; MindSpore's others are"),
        ({"mode": 2}, ArgumentValueError, "got 2"),
        ({"mode": True}, ArgumentValueError, "got True"),
        ({"device_target": "TPU"}, ArgumentValueError, "CPU, GPU, Ascend; got 'TPU'"),
        ({"device_id": "0"}, ArgumentTypeError, "got '0'"),
        ({"device_id": -1}, ArgumentValueError, "got -1"),
        ({"mode": 0, "device_target": "TPU"}, ArgumentValueError, "got 'TPU'"),
        ({"host_memory_pool": True, "implicit_gather": "no"}, ArgumentValueError, "got 'no'"),
    ],
)
def test_a_bad_keyword_is_explained_and_changes_nothing(keywords, error, text):
    with pytest.raises(error, match=text):
        ms.set_context(**keywords)
    assert ms.get_context("mode") == ms.PYNATIVE_MODE
    assert ms.get_context("host_memory_pool") is False


@pytest.mark.parametrize("name", ["jit_level", "save_graphs", "compile_cache_path", "infer_boost"])
def test_what_means_nothing_here_is_kept_and_logged(caplog, name):
    with caplog.at_level("DEBUG", "msops.context"):
        ms.set_context(**{name: 1})
    (record,) = caplog.records
    assert record.levelname == "DEBUG"
    assert record.getMessage().startswith(f"set_context: {name} does nothing here: ")
    assert ms.get_context(name) == 1
    with pytest.raises(ArgumentValueError, match=f"Did you mean .*{name}"):
        ms.set_context(**{f"{name}s": 1})


def test_a_script_for_several_devices_runs_on_one(caplog):
    common_arguments = {"device_num": 8, "gradients_mean": True}
    ms.context.set_auto_parallel_context(parallel_mode="stand_alone", **common_arguments)
    assert caplog.records == []
    ms.context.set_auto_parallel_context(parallel_mode=ms.context.ParallelMode.DATA_PARALLEL)
    (record,) = caplog.records
    assert "'data_parallel' has no effect" in record.getMessage()
    assert ms.context.get_auto_parallel_context("device_num") == 8
    ms.context.reset_auto_parallel_context()
    assert ms.context.get_auto_parallel_context("parallel_mode") == "stand_alone"
    for wrong in (ms.context.set_auto_parallel_context, ms.context.get_auto_parallel_context):
        with pytest.raises(ArgumentValueError, match=r"Did you mean .*parallel_mode"):
            wrong(parallel_mod=1) if wrong.__name__.startswith("set") else wrong("parallel_mod")


def test_an_unknown_keyword_cannot_be_read():
    with pytest.raises(ArgumentValueError, match="no context keyword"):
        ms.get_context("nonsense")


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="this machine has a GPU")
def test_a_missing_gpu_raises_at_first_use():
    ms.set_context(device_target="GPU")
    with pytest.raises(BackendError, match="msops run --device CPU"):
        ms.Tensor([1.0])


def test_a_missing_device_number_raises_at_first_use():
    ms.set_context(device_target="CPU", device_id=99)
    with pytest.raises(BackendError, match="expected device_id below"):
        ms.Tensor([1.0])


def test_ascend_runs_on_the_default_device_and_says_so_once():
    code = """
import warnings
from face_namespace import ms
ms.set_context(device_target="Ascend")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    x = ms.Tensor([1.0])
    assert (x + ms.Tensor(1.0)).tolist() == [2.0]
print(*[entry.message for entry in caught])
"""
    done = in_new_process(code)
    assert done.stdout.startswith("msops: there is no Ascend device under JAX; "), done.stderr
    assert done.stdout.count("no Ascend device") == 1


@pytest.mark.parametrize("use", one_in(3, ["ms.Tensor([1.0])", "net(x)", "gradient(x)"]))
def test_the_warning_of_ascend_names_the_line_of_the_script(tmp_path, use):
    script = tmp_path / "script.py"
    script.write_text(f"""
import warnings
from face_namespace import ms

class Net(ms.nn.Cell):
    def construct(self, x):
        return x

x, net, gradient = ms.Tensor([1.0]), Net(), ms.grad(lambda a: a)
ms.set_context(device_target="Ascend")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    {use}
print([(entry.filename, entry.lineno) for entry in caught])
""")
    done = in_new_process(f"import runpy; runpy.run_path({str(script)!r})")
    assert done.stdout == f"{[(str(script), 13)]}\n", done.stderr


@pytest.fixture
def _numpy_random_state():
    state = np.random.get_state()
    yield
    np.random.set_state(state)


@pytest.mark.usefixtures("_numpy_random_state")
def test_set_seed_seeds_numpy_and_is_remembered():
    common.set_seed(5)
    # What MindSpore 2.7.2 leaves numpy to draw after set_seed(5), and after set_seed(2**32 - 1).
    assert np.random.rand() == 0.22199317108973948
    assert common.get_seed() == 5
    common.set_seed(2**32 - 1)
    assert np.random.rand() == 0.0976320289940138
    for bad, error in (
        (-1, ValueError),
        (2**32, ValueError),
        (True, TypeError),
        (1.5, TypeError),
        ("a", TypeError),
        (None, TypeError),
        (np.int64(3), TypeError),
    ):
        with pytest.raises(error, match="expected seed int from 0 to 4294967295; got") as caught:
            common.set_seed(bad)
        assert isinstance(caught.value, MsopsError)
    assert common.get_seed() == 2**32 - 1


def test_there_is_no_seed_at_first():
    done = in_new_process("from msops import common; print(common.get_seed())")
    assert done.stdout == "None\n", done.stderr


def test_a_fixed_device_outlasts_the_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("""
from face_namespace import ms
ms.set_context(device_target="GPU", device_id=3, mode=ms.GRAPH_MODE)
ms.set_device("Ascend")
print(*map(ms.get_context, ("device_target", "device_id", "mode")), ms.Tensor([1.0]).tolist())
""")
    words = ["msops", "run", "--device", "CPU", str(script)]
    done = in_new_process(
        f"import runpy, sys; sys.argv = {words!r}; runpy.run_module('msops', run_name='__main__')"
    )
    assert done.stdout == "CPU 0 0 [1.0]\n", done.stderr


def test_tensors_and_results_are_on_the_selected_device():
    code = """
import json
from face_namespace import ms
ms.set_context(device_target="CPU", device_id=2)
x = ms.Tensor([1.0, 2.0])
class Net(ms.nn.Cell):
    def construct(self, x):
        return x + ms.ops.ones((2,)), ms.Tensor([1.0])
places = [x, x + 1, ms.ops.zeros((2,)), *Net()(x), ms.grad(lambda a: a * a)(x)]
ms.set_context(mode=ms.GRAPH_MODE)
places += [*Net()(x), ms.grad(lambda a: a * a)(x)]
print(json.dumps([[d.id for d in t.value.devices()] for t in places]))
"""
    done = in_new_process(code, XLA_FLAGS="--xla_force_host_platform_device_count=4")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[2]] * 9


@pytest.mark.slow
def test_importing_the_face_starts_no_backend():
    code = """
import face_namespace
from jax._src import xla_bridge
assert not xla_bridge.backends_are_initialized()
"""
    done = in_new_process(code)
    assert done.returncode == 0, done.stderr
