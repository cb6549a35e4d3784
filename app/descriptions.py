"""Descriptions of formats: a folder has a file for each, which names functions of modules that are loaded later."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Shape:
    """A shape in which programs write a format.

    Attributes
    ----------
    of : str
        The program or the shape.
    file : str
        A file in tests/corpus, whose ending is the name of the format.
    options : mapping
        The options that it requires.
    """

    of: str
    file: str
    options: Mapping[str, Any] = field(default_factory=dict)


def described(package: str, kind: type[T]) -> Iterable[T]:
    """The descriptions of a kind in the files of a package, which is being imported."""
    for module in iter_modules(sys.modules[package].__path__, f"{package}."):
        yield from (each for each in vars(import_module(module.name)).values() if isinstance(each, kind))


def loaded(reference: str) -> Callable[..., Any]:
    """The function that ``module:function`` names."""
    module, _, function = reference.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found
