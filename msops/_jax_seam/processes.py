"""The processes that run a program together, over `jax.distributed`."""

from __future__ import annotations

from typing import Any

from jax._src import distributed


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
