"""Versions and devices, as the CUDA driver reports them."""

from __future__ import annotations

import ctypes
import functools

_COMPUTE_CAPABILITY_MAJOR = 75
_COMPUTE_CAPABILITY_MINOR = 76


@functools.cache
def device_architectures() -> tuple[str, ...]:
    """Returns the distinct architectures of the visible devices, e.g. ``("sm_90",)``, sorted.

    Asked through libcuda: neither a JAX backend nor a CUDA context is started. Without a driver, or
    without a device, there are none.

    Source: CUDA driver API, ``cuDeviceGetAttribute``.
    """
    driver = _open_driver()
    count = ctypes.c_int()
    if driver is None or driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return ()
    return tuple(sorted({_architecture(driver, ordinal) for ordinal in range(count.value)}))


@functools.cache
def driver_major() -> int | None:
    """Returns the newest major version of CUDA whose code the driver takes; None without one.

    Source: CUDA driver API, ``cuDriverGetVersion``.
    """
    driver = _open_driver()
    version = ctypes.c_int()
    if driver is None or driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return None
    return version.value // 1000


def _open_driver() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def _architecture(driver: ctypes.CDLL, ordinal: int) -> str:
    """Returns the architecture of one device."""
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    for call, *arguments in (
        (driver.cuDeviceGet, ctypes.byref(device), ordinal),
        (driver.cuDeviceGetAttribute, ctypes.byref(major), _COMPUTE_CAPABILITY_MAJOR, device),
        (driver.cuDeviceGetAttribute, ctypes.byref(minor), _COMPUTE_CAPABILITY_MINOR, device),
    ):
        status = call(*arguments)
        if status != 0:
            raise OSError(f"libcuda reported error {status} about device {ordinal}")
    return f"sm_{major.value}{minor.value}"
