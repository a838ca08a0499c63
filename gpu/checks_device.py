"""The CUDA device that the checks run on; as a script, says whether there is one.

Apart from the other modules because it does not import msops: `make gpu` asks before it installs
anything into the Python it was given.
"""

from __future__ import annotations

import sys

try:
    import jax
except ImportError:
    sys.exit(f"{sys.executable} has no JAX. Name a Python with jax[cuda13]: make gpu PYTHON=...")


def cuda_device() -> jax.Device:
    """Returns the first CUDA device.

    Raises:
      SystemExit: JAX sees none; the status is 2.
    """
    try:
        return jax.devices("cuda")[0]
    except RuntimeError as error:
        print(f"JAX {jax.__version__} in {sys.executable} sees no CUDA device: {error}")
        print("Run this where there is one, with PYTHON=... naming a Python with jax[cuda13].")
        sys.exit(2)


if __name__ == "__main__":
    print(f"Checking on {cuda_device().device_kind}.")
