"""TBE kernels: functions that describe a computation in Ascend's DSL, turned into JAX operations.

    session.py        one run of a kernel function: what its calls leave behind
    operation.py      an operation of the DSL; checks of operands
    casting.py        dtypes, TBE's own casts and those a kernel asks for
    elementwise.py, comparison.py, reduction.py, shaping.py, cube.py    the DSL
    build.py          schedules, and the call that completes a kernel
    util.py, para_check.py, shape_util.py, platform.py    what else kernels import
    modules.py        all of it as the modules te, tbe, topi and impl
    kernel_files.py   what ``import`` means in a kernel, and files that are kernels
    entry.py          the protocol of entry functions
    program.py        what a kernel described, as a JAX function
    formats.py        Ascend's data formats

A kernel function is run once for given shapes, dtypes, formats and attributes. Its tensors are
those of the loop compiler's TVM front end, so `tvm.compute` and `topi` mix with the DSL. JAX is
known to the rules of DSL operations, to program.py and to formats.py; nothing else here computes.
"""
