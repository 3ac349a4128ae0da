"""What every check uses: its error, a sentence with a place, and kernels as plain Python, which sees every index."""

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CellType, CodeType, FunctionType
from typing import Any, TypeVar, cast

from saferank._kernel import JIT, CompilationError, implementation, is_verb, specialised, why_not_compiled
from saferank.plugins import place_of, place_of_problem


class ContractError(AssertionError):
    """A full sentence on how a policy, click model or store breaks its contract.

    ``place`` is the file and line of the part that breaks it, or None where it is not known; ``str()`` has both.
    """

    def __init__(self, sentence: str, place: str | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.place = place

    def __str__(self) -> str:
        return self.sentence if self.place is None else f"{self.place}: {self.sentence}"


def require(claim: bool, sentence: str) -> None:
    """Raise a ``ContractError`` with the sentence unless the claim holds."""
    if not claim:
        raise ContractError(sentence)


@contextmanager
def blaming(part: object) -> Iterator[None]:
    """A ``ContractError`` inside that does not know its place is about this function or class."""
    try:
        yield
    except ContractError as problem:
        problem.place = problem.place or place_of(part)
        raise


@contextmanager
def failing(sentence: str, advice: Callable[[Exception], str]) -> Iterator[None]:
    """Whatever fails inside is a ``ContractError``: this sentence, the problem, this advice, and the line."""
    try:
        yield
    except ContractError:
        raise
    except Exception as problem:
        what = f"{sentence}: {type(problem).__name__}: {problem}. {advice(problem)}"
        raise ContractError(what, place_of_problem(problem)) from problem


def called(who: str, sizes: str, advice: Callable[[Exception], str], verb: Callable[..., Any], *arguments: Any) -> Any:
    """What a verb returns; a failure is a ``ContractError`` with its line and this advice."""
    with failing(f"{verb.__name__}() of {who} fails {sizes}", advice):
        try:
            return verb(*arguments)
        except CompilationError as problem:
            why = why_not_compiled(problem)
            raise ContractError(f"{verb.__name__}() of {who} does not compile: {why}") from problem


F = TypeVar("F", bound=Callable[..., Any])


class Interpreter:
    """Makes twins of functions; asked again for the same function, it gives the same twin."""

    def __init__(self, *modules: str) -> None:
        self._roots = {"saferank", *(module.partition(".")[0] for module in modules)}
        self._twins: dict[Any, Any] = {specialised: lambda function, *kinds: self.twin(function)}

    def twin(self, function: F) -> F:
        """The function as plain Python; itself where nothing is compiled."""
        if not JIT:
            return function
        return cast(F, self._replaced(function))

    def _replaced(self, value: Any) -> Any:
        """The twin of a kernel, a verb or a function of the package or plug-in; any other value itself."""
        plain = getattr(value, "py_func", value)
        if not isinstance(plain, FunctionType):
            return value
        if plain in self._twins:
            return self._twins[plain]
        if is_verb(plain):
            return self._known(plain, self._dispatching(plain))
        known = plain is not value or (plain.__module__ or "").partition(".")[0] in self._roots
        return self._copied(plain) if known else value

    def _known(self, function: Any, twin: Any) -> Any:
        self._twins[function] = self._twins[twin] = twin  # a twin is its own twin
        return twin

    def _dispatching(self, verb: Any) -> Any:
        def dispatch(*arguments: Any) -> Any:
            case = implementation(verb, type(arguments[0]))
            if case is None:
                raise TypeError(f"{verb.__name__}() is not implemented for {type(arguments[0]).__name__}")
            return self._replaced(case)(*arguments)

        dispatch.__name__ = verb.__name__
        return dispatch

    def _copied(self, function: FunctionType) -> Any:
        names: dict[str, Any] = dict(function.__globals__)
        names.setdefault("__builtins__", builtins)
        cells = tuple(CellType() for _ in function.__closure__ or ())
        twin = FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells or None)
        twin.__kwdefaults__ = function.__kwdefaults__
        self._known(function, twin)  # before its parts are looked at: functions may call one another
        for name in set(_names_in(function.__code__)) & names.keys():
            names[name] = self._replaced(names[name])
        for cell, original in zip(cells, function.__closure__ or (), strict=True):
            cell.cell_contents = self._replaced(original.cell_contents)
        return twin


def _names_in(code: CodeType) -> Iterator[str]:
    """The global names and attributes that code mentions, in functions inside of it too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)
