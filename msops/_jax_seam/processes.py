"""The processes that run a program together, over `jax.distributed`."""

from __future__ import annotations

from typing import Any

import jax
from jax._src import distributed

from msops._jax_seam.lowering import Lowering, OneDevice


def processes_of(lowering: Lowering) -> tuple[int, ...]:
    """Returns the processes that run the program together; none if it is for this one alone.

    Nor has a part any, which not every process need lower. Processes know of one another by
    `jax.distributed`.
    """
    if distributed.global_state.client is None:
        return ()
    context = lowering.context.module_context.axis_context
    if isinstance(context, OneDevice):
        return ()
    place = getattr(context, "mesh", context)
    if isinstance(place, jax.sharding.AbstractMesh):
        return tuple(range(jax.process_count())) if place.size > jax.local_device_count() else ()
    devices = place.devices.flat if hasattr(place, "devices") else place.device_assignment or ()
    processes = sorted({device.process_index for device in devices})
    return tuple(processes) if len(processes) > 1 else ()


class ProcessStore:
    """Texts by keys that the processes of `jax.distributed` share; keys are paths in a folder."""

    def __init__(self, folder: str) -> None:
        self.process: int = distributed.global_state.process_id
        self._client: Any = distributed.global_state.client
        self._folder = folder

    def put(self, key: str, text: str) -> None:
        """Gives a key a text, whatever it had."""
        self._client.key_value_set(f"{self._folder}/{key}", text, allow_overwrite=True)

    def get_all(self, folder: str) -> dict[str, str]:
        """Returns the texts in a folder of this one, by the last parts of their keys."""
        entries = self._client.key_value_dir_get(f"{self._folder}/{folder}/")
        return {key.rpartition("/")[2]: text for key, text in entries}

    def delete(self, key: str) -> None:
        """Removes a key."""
        self._client.key_value_delete(f"{self._folder}/{key}")
