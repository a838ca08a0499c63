"""YAML files of op_def and op_doc: found, read, and joined."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import yaml

from msops.errors import ArgumentValueError, BuildError


class DefinitionFileError(ArgumentValueError, FileNotFoundError):
    """A file of op_def or op_doc does not exist."""


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice in one mapping; YAML's own loader keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} stands here twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _check_files(option: str, paths: Sequence[str], who: str) -> None:
    """Refuses paths that name no YAML file.

    Raises:
      DefinitionFileError: there is no such file.
      ArgumentValueError: its name does not end in .yaml or .yml.
    """
    for path in paths:
        if not Path(path).is_file():
            raise DefinitionFileError.explained(
                who,
                f"expected {option} to name files; there is no file {path}",
                "Correct the path.",
            )
        if Path(path).suffix.lower() not in (".yaml", ".yml"):
            raise ArgumentValueError.explained(
                who,
                f"expected {option} to name files that end in .yaml or .yml; got {path}",
                "Rename the file.",
            )


def read_files(option: str, paths: Sequence[str], who: str) -> dict[str, tuple[Any, str]]:
    """Returns what each name at the top of the files stands for, and in which file it does.

    Raises:
      DefinitionFileError: there is no such file.
      ArgumentValueError: the name of one does not end in .yaml or .yml.
      BuildError: a file is no YAML, is no mapping, or has a name that another one has.
    """
    _check_files(option, paths, who)
    entries: dict[str, tuple[Any, str]] = {}
    for path in paths:
        for name, entry in _read(option, path, who).items():
            if name in entries:
                raise BuildError.explained(
                    who,
                    f"expected {option} to define each operator once; {name!r} is in "
                    f"{entries[name][1]} and in {path}",
                    "Take one of them out.",
                )
            entries[name] = (entry, path)
    return entries


def _read(option: str, path: str, who: str) -> dict[Any, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            content = yaml.load(file, _Loader)
    except (OSError, ValueError, OverflowError, yaml.YAMLError, RecursionError) as error:
        raise BuildError.explained(
            who,
            f"{option} {path} cannot be read as YAML",
            "Correct the file: UTF-8, spaces for indentation, each key once.",
            [str(error)],
        ) from error
    if not isinstance(content, dict) or not content:
        raise BuildError.explained(
            who,
            f"expected {option} {path} to map names of operators to what they are; "
            f"got {type(content).__name__ if content is not None else 'an empty file'}",
            "Begin with the operator's name and a colon.",
        )
    return content
