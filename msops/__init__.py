"""Custom operators on JAX."""

from msops._custom import Custom as Custom
from msops._native_call import register_ffi_targets as register_ffi_targets
from msops._paths import get_include as get_include
