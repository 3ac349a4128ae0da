"""Code that only compiled code calls. What is private to numba stands in this file.

Numba compiles every function as if Python might call it: with a wrapper for Python and one for C, optimised on its own,
translated to machine code, and optimised again inside every function that calls it. Kernels are copied into their
callers, so nothing of this is used of a kernel that only other kernels call. Therefore a kernel has two sides:

* ``Kernel`` is what Python calls. Its code is optimised once, together with all that it calls, and kept on disk.
* ``Kernel.inner`` is what compiled callers use. It ends as the code that numba writes for LLVM, which
  ``KernelLibrary`` puts into the code of the outermost kernel.

Verbs have a type of their own (``VerbType``), which leads to the inner side of the case; numba's ``overload`` would
compile one more function for every verb and type. Together this takes a third of the time of numba's own way, and the
loops come out as fast. Nothing of numba is replaced: the classes are numba's own with some methods changed.
``tests/test_inner_code.py`` says what breaks when numba changes, and ``pyproject.toml`` names the versions it was made
for.
"""
# mypy: disable-error-code="misc, no-untyped-call, untyped-decorator, attr-defined, no-any-return, no-untyped-def"
# Numba has few annotations.

import gc
from collections.abc import Callable
from typing import Any

from numba import _dynfunc, extending
from numba.core import compiler, errors
from numba.core import types as _types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering

types: Any = _types  # numba has few annotations
numba_extending: Any = extending

_INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_OUTER = {"no_cfunc_wrapper": True}


class KernelLibrary(JITCodeLibrary):
    """The code of a kernel, to which that of the kernels it calls is added as it was written, each once."""

    def add_linking_library(self, library: Any) -> None:
        """Take in a library that the kernel calls, and what that one calls.

        A library stands behind all that call it: LLVM leaves out what no caller has asked for yet. So what was taken in
        before, and is called by this one too, goes to the end.
        """
        if isinstance(library, KernelLibrary) and not library._finalized:
            taken = dict.fromkeys((library, *library._linking_libraries))
            self._linking_libraries = [each for each in self._linking_libraries if each not in taken] + list(taken)
        else:
            super().add_linking_library(library)

    def _optimize_functions(self, module: Any) -> None:
        """Numba's first, quick optimisation, without the functions that are only declared: a kernel names hundreds."""
        module.data_layout = self._codegen._data_layout
        for function in module.functions:
            if not function.is_declaration:
                passes, builder = self._codegen._function_pass_manager()
                passes.run(function, builder)

    def _get_module_for_linking(self) -> Any:
        if self._finalized:
            return super()._get_module_for_linking()
        if self._shared_module is None:
            self._shared_module = self._final_module.clone()
            for function in self._shared_module.functions:
                if not function.is_declaration and function.linkage.name == "external":
                    function.linkage = "linkonce_odr"  # may come in twice, and may go when it was copied everywhere
        return self._shared_module

    def finalize(self) -> None:
        """Link, optimise and translate; also an inner side, when a function that is no kernel calls it."""
        self._shared_module = None
        super().finalize()


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(NativeLowering):
    """Numba's pass from its own to LLVM's code, which for an inner side is the end."""

    _name = "kernel_lowering"

    def run_pass(self, state: Any) -> bool:
        """Write the code; for the outer side also finish it."""
        state.library = KernelLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        inner = state.flags.no_cpython_wrapper
        state.flags.no_compile = inner
        super().run_pass(state)
        if inner:
            lowered = state["cr"]
            module, name = lowered.fndesc.lookup_module(), lowered.fndesc.qualname.split(".")[-1]
            key = _dynfunc.make_function(module, name, "never called", 0, lowered.env, (state.library,))
            state.targetctx.insert_user_function(key, lowered.fndesc, [state.library])
            state["cr"] = lowered._replace(cfunc=key)
        return True


class KernelFlags(compiler.Flags):
    """Numba's flags, of which it makes a key for every call in a function: they are compared by identity here."""

    __slots__ = ("_hash",)
    _shared: list["KernelFlags"] = []  # noqa: RUF012 (for all)

    def copy(self) -> "KernelFlags":
        """What functions compiled on the way look at: the same object for all kernels with equal flags."""
        made = KernelFlags(self)
        made.discard("no_cpython_wrapper")
        values = made.values()
        for known in self._shared:
            if known.values() == values:
                return known
        self._shared.append(made)
        return made

    def __hash__(self) -> int:
        if not hasattr(self, "_hash"):
            self._hash = super().__hash__()
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other) is True


class KernelCompiler(compiler.Compiler):
    """Numba's compiler with another last pass."""

    def __init__(
        self, typingctx: Any, targetctx: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any
    ) -> None:
        super().__init__(typingctx, targetctx, library, args, return_type, KernelFlags(flags), locals)

    def define_pipelines(self) -> list[Any]:
        """Numba's passes, with lowering replaced."""
        made = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        made.passes = [(KernelLowering if kind is NativeLowering else kind, why) for kind, why in made.passes]
        made.finalize()
        return [made]


class Kernel(CPUDispatcher):
    """A compiled function as Python calls it. To a compiled caller it has the type of its inner side."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        common = {"nopython": True, "boundscheck": None, **options}
        super().__init__(function, {}, {**common, **_OUTER}, KernelCompiler)
        self.inner = CPUDispatcher(function, {}, {**common, **_INNER}, KernelCompiler)
        self._inner_type = KernelType(self.inner)

    def compile(self, sig: Any) -> Any:
        """The code for a signature; while it is made, garbage is collected more rarely: a tenth of the time."""
        with global_compiler_lock:
            usual = gc.get_threshold()
            gc.set_threshold(50_000, 20, 50)
            try:
                return super().compile(sig)
            finally:
                gc.set_threshold(*usual)

    @property
    def _numba_type_(self) -> Any:
        return self._inner_type


class KernelType(types.Dispatcher):
    """The inner side of a kernel: a call of it compiles it for exactly these types."""

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The signature of a call."""
        pysig, args = self.dispatcher._compiler.fold_argument_types(args, kws)
        args = tuple(
            argument if isinstance(argument, types.Omitted) else types.unliteral(argument) for argument in args
        )
        self.dispatcher.compile(args)
        return self.dispatcher.overloads[args].signature.replace(pysig=pysig)


class VerbType(types.Callable, types.Opaque):
    """A verb: the type of its first argument says which kernel a call of it runs."""

    def __init__(self, name: str, case_of: Callable[[type], Any]) -> None:
        self._verb, self._case_of = name, case_of
        super().__init__(f"verb({name}, {id(case_of)})")

    def _kernel(self, arguments: Any) -> Any:
        case = self._case_of(getattr(arguments[0], "instance_class", object)) if arguments else None
        if case is None:
            kinds = ", ".join(map(str, arguments[:1]))
            raise errors.TypingError(f"No implementation of verb {self._verb}() for {kinds}")
        return case._numba_type_

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The signature of a call."""
        return self._kernel(args).get_call_type(context, args, kws)

    def get_call_signatures(self) -> Any:
        """Nothing is known before a call."""
        return (), True

    def get_impl_key(self, sig: Any) -> Any:
        """What numba's table of compiled functions knows the kernel by."""
        return self._kernel(sig.args).get_impl_key(sig)


for _kind in (KernelType, VerbType):
    numba_extending.register_model(_kind)(numba_extending.models.OpaqueModel)
