"""What the code of a plug-in uses, read from its functions: hidden randomness, clocks, global variables, new arrays.

Playing a policy finds most mistakes, but not which line is to blame, and not randomness that happens to change nothing
in the rounds that were played. So every function of a plug-in is also looked through, with the helpers that it calls.
"""

import ast
import dis
import inspect
import sys
import textwrap
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import JIT, is_foreign, is_verb
from saferank.checks.contract import ContractError

_RANDOM = ("random", "secrets", "uuid", "numpy.random")
_CLOCKS = ("time", "datetime")
_ALLOCATING = {
    getattr(np, name): f"np.{name}" for name in (
        "arange", "argsort", "array", "bincount", "concatenate", "copy", "cumsum", "diff", "empty", "empty_like",
        "flatnonzero", "full", "full_like", "linspace", "nonzero", "ones", "ones_like", "repeat", "sort",
        "unique", "where", "zeros", "zeros_like",
    )
}  # fmt: skip

_WRITING = (
    "append",
    "clear",
    "extend",
    "fill",
    "insert",
    "itemset",
    "partition",
    "pop",
    "put",
    "resize",
    "sort",
    "update",
)
"""Methods of arrays, lists and dictionaries that change them."""


class Use(NamedTuple):
    """A global name that a function reads or writes."""

    code: CodeType
    line: int
    name: str
    value: Any
    written: bool


def check_kernels(name: str, kernels: Sequence[Any]) -> None:
    """Raise a ``ContractError`` on the first thing that the kernels of ``name`` must not use."""
    for function in _with_helpers(kernels):
        for use in [*_uses(function.__code__, _names_of(function)), *_array_writes(function)]:
            _judge(name, function, use)
            _judge_kernel(name, function, use)


def check_functions(name: str, functions: Sequence[Any]) -> None:
    """The same for functions that are not compiled, which may make arrays: ``start`` and ``leader``."""
    for function in functions:
        if isinstance(function, FunctionType):
            for use in [*_uses(function.__code__, _names_of(function)), *_array_writes(function)]:
                _judge(name, function, use)


def _judge(name: str, function: FunctionType, use: Use) -> None:
    home = _home_of(use.value)
    who = f"{_called(function)} of {name}"
    if _is_in(home, _RANDOM):
        raise _error(
            use,
            f"{who} uses {use.name}, a hidden source of randomness: the same seed would give other results. Draw from "
            "rng alone, with uniform, below, word or shuffle_front of saferank.randomness.",
        )
    if _is_in(home, _CLOCKS):
        raise _error(
            use,
            f"{who} uses {use.name}, a clock: the same seed would give other results. Count pages in state.round.",
        )
    if use.written:
        raise _error(
            use,
            f"{who} writes the global variable {use.name}. Give the state an array for it: nothing may be remembered "
            "outside the state.",
        )


def _judge_kernel(name: str, function: FunctionType, use: Use) -> None:
    who = f"{_called(function)} of {name}"
    making = _ALLOCATING.get(use.value) if callable(use.value) and getattr(use.value, "__hash__", None) else None
    if making is not None:
        raise _error(
            use,
            f"{who} calls {making}, which makes an array: it does not compile. Kernels make no new arrays. Make the "
            "array in start() as a field of the state, and write a loop over its entries.",
        )
    helper = use.value
    if JIT and isinstance(helper, FunctionType) and not is_verb(helper) and helper.__module__ == function.__module__:
        raise _error(
            use,
            f"{who} calls {use.name}(), a plain Python function: it does not compile. Decorate {use.name} with @kernel "
            "of saferank.verbs.",
        )


def _called(function: FunctionType) -> str:
    return f"{function.__name__}()"


def _error(use: Use, sentence: str) -> ContractError:
    return ContractError(sentence, f"{use.code.co_filename}:{use.line}")


def _is_in(home: str, modules: Sequence[str]) -> bool:
    return any(home == module or home.startswith(f"{module}.") for module in modules)


def _home_of(value: Any) -> str:
    """The module that a value comes from: its own name, that of its class, or that of the object it is bound to."""
    if isinstance(value, ModuleType):
        return value.__name__
    bound = getattr(value, "__self__", None)
    if bound is not None and not isinstance(bound, ModuleType):
        return type(bound).__module__
    return str(getattr(value, "__module__", None) or type(value).__module__)


def _with_helpers(kernels: Sequence[Any]) -> list[FunctionType]:
    """The kernels of a user and the kernels of users that they call, directly or not."""
    found: dict[FunctionType, None] = {}
    waiting = [getattr(kernel, "py_func", kernel) for kernel in kernels if kernel is not None]
    while waiting:
        function = waiting.pop(0)
        if function in found or not isinstance(function, FunctionType) or not is_foreign(function):  # type: ignore[arg-type]
            continue
        found[function] = None
        uses = _uses(function.__code__, _names_of(function))
        waiting += [use.value.py_func for use in uses if hasattr(use.value, "py_func")]
        if not JIT:
            waiting += [use.value for use in uses if isinstance(use.value, FunctionType) and not is_verb(use.value)]
    return list(found)


def _names_of(function: FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}


def _uses(code: CodeType, names: dict[str, Any]) -> list[Use]:
    return list(_each_use(code, names))


def _each_use(code: CodeType, names: dict[str, Any]) -> Iterator[Use]:
    line, instructions = code.co_firstlineno, list(dis.get_instructions(code))
    for number, instruction in enumerate(instructions):
        if instruction.positions is not None and instruction.positions.lineno is not None:
            line = instruction.positions.lineno
        if instruction.opname == "STORE_GLOBAL":
            yield Use(code, line, instruction.argval, None, written=True)
        elif instruction.opname == "IMPORT_NAME":
            yield Use(code, line, instruction.argval, sys.modules.get(instruction.argval), written=False)
        elif instruction.opname in ("LOAD_GLOBAL", "LOAD_DEREF"):
            yield _read(code, line, instructions[number:], names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _each_use(constant, names)


def _array_writes(function: FunctionType) -> Iterator[Use]:
    """The places where a function writes into a global array: ``NAME[...] = value``, or a method like ``NAME.fill``.

    Compiled code refuses such a write itself; Python does not. A function whose source is not known has none.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # made by exec, or a lambda inside an expression
        return
    names, own = _names_of(function), {*function.__code__.co_varnames, *function.__code__.co_cellvars}
    for node in ast.walk(tree):
        name = _written_name(node)
        if name is not None and name not in own and isinstance(names.get(name), np.ndarray | list | dict | set | tuple):
            line = function.__code__.co_firstlineno + node.lineno - 1  # type: ignore[attr-defined]
            yield Use(function.__code__, line, name, None, written=True)


def _written_name(node: ast.AST) -> str | None:
    """The name at the root of what an expression writes into; None when it writes into nothing."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return _root(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _WRITING:
        return _root(node.func.value)
    return None


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _read(code: CodeType, line: int, instructions: Sequence[dis.Instruction], names: dict[str, Any]) -> Use:
    """The value of a name, followed through modules: ``np.random.random`` is three names and one value."""
    name = str(instructions[0].argval)
    value = names.get(name)
    for following in instructions[1:]:
        if following.opname not in ("LOAD_ATTR", "LOAD_METHOD") or not isinstance(value, ModuleType):
            break
        name, value = f"{name}.{following.argval}", getattr(value, str(following.argval), None)
    return Use(code, line, name, value, written=False)
