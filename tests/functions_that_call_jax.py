# Programs whose functions wait for JAX, from several threads at once. test_host_call.py runs this
# with PENDING set: whether their inputs are still being computed when they are called.
# ruff: noqa: F821
import faulthandler
import threading

import jax
import jax.numpy as jnp
import numpy as np

from msops import Custom

faulthandler.dump_traceback_later(60, exit=True)
if PENDING:
    jax.config.update("jax_cpu_enable_async_dispatch", False)


def first(x):
    return x


work = jax.jit(lambda x: jnp.sin(x) @ jnp.cos(x) + jnp.exp(x).sum())
inner = Custom(lambda x: np.asarray(work(x)), first, first)
nested = jax.jit(lambda x: inner(x) @ x)
outer = Custom(lambda x: np.asarray(nested(x)), first, first)

inputs = [jnp.ones((200, 200)) * i for i in range(4)]
if not PENDING:
    jax.block_until_ready(inputs)

PROGRAMS = [
    jax.jit(lambda x: sum(inner(x @ x + i) for i in range(4))),
    jax.jit(lambda x: sum(outer(x @ x + i) for i in range(2))),
    jax.jit(lambda x: jax.lax.scan(lambda c, _: (inner(c) / 1e4, None), x @ x, None, length=3)[0]),
    lambda x: jax.vmap(inner)(jnp.stack([x, x])),
    inner,
]
for program in PROGRAMS:
    expected = [program(x) for x in inputs]
    jax.block_until_ready(expected)

    def check(program=program, expected=expected):
        for x, value in zip(inputs, expected, strict=True):
            np.testing.assert_array_equal(program(x + 0 if PENDING else x), value)

    threads = [threading.Thread(target=check) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("done")
