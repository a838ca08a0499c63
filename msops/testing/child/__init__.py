"""What runs kernels on guarded memory, in a process of its own: a wrong kernel crashes it.

These modules import neither JAX nor numpy, nor what else msops has: they run under the sanitizers,
and start in no time. `msops.testing.child_processes` starts them without `msops` itself.

main.py       the process: a fork for each folder of jobs
runs.py       a job: one call, calls on two threads, many calls
frames.py     the memory of a call
buffers.py    memory between guard pages
settings.py   what calls change of their process
resources.py  what they take of it
files.py      files that they leave
libc.py       the C library
"""
