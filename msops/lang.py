"""The names of the language of loop kernels, for linters, type checkers and editors.

A kernel needs no import: it sees these names anyway. With ``import msops.lang`` or
``from msops.lang import output_tensor, parallel`` its file is plain Python to every tool, and the
function itself runs on numpy arrays.

Example:
  >>> import jax.numpy as jnp, msops
  >>> import msops.lang as ml
  >>> @msops.kernel
  ... def softplus(x):
  ...     y = ml.output_tensor(x.shape, x.dtype)
  ...     for i in ml.parallel(x.shape[0]):
  ...         y[i] = ml.log(1.0 + ml.exp(x[i]))
  ...     return y
  >>> softplus(jnp.zeros(2))
  Array([0.6931472, 0.6931472], dtype=float32)
"""

from msops._custom.language import *  # noqa: F403
from msops._custom.language import __all__ as __all__
