"""Names of the C++ API of extensions, and the Python error of each kind of exception."""

import mindspore as ms
from mindspore import ops

module = ops.CustomOpBuilder("extension_names", ["extension_names.cpp"], backend="CPU").load()


def report(what, function, *args):
    """Prints a result, or class and first line of an error."""
    try:
        print(what, function(*args))
    except BaseException as error:
        text = error.args[0] if error.args else ""
        print(what, type(error).__name__, text.split("\n")[0])


x = ms.Tensor([[1.0, 2.0, 3.0]], ms.float32)
report("shape", module.shape, x)
report("rank", module.rank, x)
report("rank", module.rank, ms.Tensor(1.0))
report("like", module.like_size, x, 34)
report("like", module.like_size, x, 30)
for type_id in [0, 7, *range(30, 46), 49, 51, 52]:
    report(type_id, module.name, type_id, False)
    report(type_id, module.name, type_id, True)
for kind in range(31):
    report("kind", module.raise_kind, kind)
for what in ("zero", "internal", "global"):
    report(what, module.check, what)
