"""Functions that only compiled code calls: they are optimised, and linked into their callers, and nothing else.

Numba makes machine code of every compiled function, with a wrapper for calls from Python and one for calls from C. Of a
function that another one calls all this goes unused: the caller links its optimised LLVM code, and makes machine code
of that again. Here a function that is compiled because another one calls it gets its LLVM code alone, which callers
link as before, so that their machine code is the same. That is what the cache keeps of it, too. If Python calls it
later, it is compiled again, in full.

This is so for the functions of this package, and for what these call; those of other programs in the process are
compiled as ever. It takes the place of functions of numba's own, so it is only done with a version of numba that is
known to have them.
"""

import os
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import compiler, sigutils
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUContext
from numba.core.dispatcher import Dispatcher

KNOWN_NUMBA = "0.68."
_OWN = str(Path(__file__).parents[1]) + os.sep


class LinkedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The optimised code of a function, for its callers to link."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def serialize_using_object_code(self) -> Any:
        """What the cache keeps."""
        return self.serialize_using_bitcode()


def install() -> None:
    """Let numba compile so from now on, in this process; nothing is done with an unknown version of numba."""
    if not numba.__version__.startswith(KNOWN_NUMBA):
        return
    compiler.compile_extra = _compile_function
    dispatcher: Any = Dispatcher
    dispatcher.compile = _compile
    dispatcher.add_overload = _add_overload
    FunctionCache.load_overload = _load_overload
    JITCPUCodegen.unserialize_library = _unserialize_library
    JITCPUCodegen.set_env = _set_env
    CPUContext.create_cpython_wrapper = _create_python_wrapper
    CPUContext.create_cfunc_wrapper = _create_c_wrapper


# how many functions are being compiled, each because the one before calls it; read and changed under numba's lock
_depth = 0
_plain_compile_function = compiler.compile_extra
_plain_compile = Dispatcher.compile
_plain_add_overload = Dispatcher.add_overload
_plain_load_overload = FunctionCache.load_overload
_plain_unserialize_library = JITCPUCodegen.unserialize_library
_plain_set_env = JITCPUCodegen.set_env
_plain_python_wrapper = CPUContext.create_cpython_wrapper
_plain_c_wrapper = CPUContext.create_cfunc_wrapper


def is_compiling() -> bool:
    """Whether the caller, who has numba's lock, is called while a function is compiled."""
    return _depth > 0


def _is_linked(compiled: Any) -> bool:
    return compiled is not None and isinstance(compiled.library, LinkedLibrary)


def _compile(self: Any, sig: Any) -> Any:
    """Compile a function for types; if Python calls a function that was only linked so far, compile it again."""
    global _depth
    with global_compiler_lock:
        args = tuple(sigutils.normalize_signature(sig)[0])
        if _depth == 0:
            if _is_linked(self.overloads.get(args)):
                del self.overloads[args]
            if not self.py_func.__code__.co_filename.startswith(_OWN):
                return _plain_compile(self, sig)
        _depth += 1
        try:
            return _plain_compile(self, sig)
        finally:
            _depth -= 1


def _compile_function(
    typing: Any, target: Any, function: Any, args: Any, return_type: Any, flags: Any, locals: Any, **options: Any
) -> Any:
    if _depth > 1 and options.get("library") is None:
        options["library"] = LinkedLibrary(target.codegen(), function.__qualname__)
    compiled = _plain_compile_function(typing, target, function, args, return_type, flags, locals, **options)
    if not _is_linked(compiled):  # what linked functions know of Python is kept in places of the caller's code
        for environment in compiled._find_referenced_environments():
            target.codegen().set_env(environment.env_name, environment)
    return compiled


def _add_overload(self: Any, compiled: Any) -> None:
    """Keep what was compiled; calls from Python find only what has machine code."""
    if _is_linked(compiled):
        self.overloads[tuple(compiled.signature.args)] = compiled
    else:
        _plain_add_overload(self, compiled)


def _load_overload(self: Any, sig: Any, target: Any) -> Any:
    """What the cache has of a function; if Python calls it, nothing that is only to be linked."""
    found = _plain_load_overload(self, sig, target)
    return None if _depth == 1 and _is_linked(found) else found


def _unserialize_library(self: Any, stored: Any) -> Any:
    name, kind, code = stored
    if kind != "bitcode":
        return _plain_unserialize_library(self, stored)
    library = LinkedLibrary(self, name)
    library._final_module = llvm.parse_bitcode(code)
    library._finalize_final_module()
    return library


def _set_env(self: Any, name: str, environment: Any) -> None:
    """What a function knows of Python; a linked one has no place for it until its caller has machine code."""
    if self._engine.get_global_value_address(name):
        _plain_set_env(self, name, environment)


def _create_python_wrapper(self: Any, library: Any, *given: Any, **options: Any) -> None:
    if not isinstance(library, LinkedLibrary):
        _plain_python_wrapper(self, library, *given, **options)


def _create_c_wrapper(self: Any, library: Any, *given: Any, **options: Any) -> None:
    if _depth == 0:  # only cfunc asks for one
        _plain_c_wrapper(self, library, *given, **options)
