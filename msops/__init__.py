"""Custom operators on JAX."""

from msops._custom import Custom as Custom
from msops._native_call import register_ffi_targets as register_ffi_targets
from msops._paths import get_include as get_include


def load_ipython_extension(shell: object) -> None:
    """Registers the cell magic ``%%aot``; IPython calls this for ``%load_ext msops``.

    Args:
      shell: the running IPython.
    """
    from msops._notebook import load_ipython_extension as load

    load(shell)
