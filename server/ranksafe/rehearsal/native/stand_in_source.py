"""The assembly text and the version script of one stand-in library, for x86-64.

Assembly, because the symbols are other people's mangled names: a stub for one needs its name, not its declaration.
Another processor needs `_FUNCTIONS` in its own instructions and nothing else.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from ranksafe.rehearsal.native.shared_library import Symbol

NO_DEVICE = 100
"""``cudaErrorNoDevice``: what the C functions of the CUDA libraries return; to cuBLAS, cuDNN and NCCL it is an error
that they do not know, which is as good."""
_UNKNOWN_SIZE = 4096
_POINTER = 8

# The address of the stub itself goes to the handler, which asks the dynamic linker for its name. A jump, not a call:
# to the unwinder it is the caller of the stub that calls the handler.
_TEXT = ["lea ranksafe_no_device_text(%rip), %rax"]
_FUNCTIONS = {
    "raise": ["1: lea 1b(%rip), %rdi", "jmp ranksafe_stand_in_called@PLT"],
    "nothing": ["xor %eax, %eax", "ret"],
    "error": [f"mov ${NO_DEVICE}, %eax", "ret"],
    "text": [*_TEXT, "ret"],
    "gives text second": [*_TEXT, "mov %rax, (%rsi)", "xor %eax, %eax", "ret"],
    "gives text third": [*_TEXT, "mov %rax, (%rdx)", "xor %eax, %eax", "ret"],
    "handle": ["lea ranksafe_no_device_handle(%rip), %rax", "ret"],
}
_DESTRUCTOR = re.compile(r"D[012]Ev$")
_RETURNS_TEXT = re.compile(
    r"(GetErrorString|GetErrorName|GetStatusString|GetStatusName|GetLastError)$"
)
_GIVES_TEXT = {
    "cuGetErrorName": "gives text second",
    "cuGetErrorString": "gives text second",
    "cuptiGetCallbackName": "gives text third",
    "cuptiGetErrorMessage": "gives text second",
    "cuptiGetResultString": "gives text second",
}
"""Through which argument a text comes (``cuda.h`` and ``cupti_result.h``, ``cupti_callbacks.h`` of CUDA 13.0): kineto
formats it without looking at the result, and a null pointer ends the profiler."""
_RETURNS_SIZE = re.compile(r"cudnnGet(Cudart)?Version$")
_REGISTERS_KERNELS = re.compile(r"^__cudaRegisterFatBinary$")


def assembly(symbols: Iterable[Symbol], *, c_interface: bool) -> str:
    """Definitions of all symbols. ``c_interface``: of a library that reports errors by its functions' results."""
    symbols = sorted(symbols, key=lambda symbol: symbol.name)
    names = {symbol.name for symbol in symbols}
    lines = [".text"]
    for symbol in symbols:
        if symbol.kind == "TLS":
            lines += _zeros(symbol, '.section .tbss,"awT",@nobits', "tls_object")
        elif symbol.name.startswith("_ZTI"):
            lines += _type_info(symbol.name)
        elif symbol.name.startswith("_ZTS"):
            lines += _text(symbol.name, symbol.name[4:])
        elif symbol.name.startswith("_ZTV"):
            lines += _virtual_table(symbol, names)
        elif symbol.kind == "OBJECT":
            lines += _zeros(symbol, ".bss", "object")
        else:
            lines += _function(symbol.name, c_interface=c_interface)
    lines += _local_data() if c_interface else []
    lines.append('.section .note.GNU-stack,"",@progbits')
    return "\n".join(lines) + "\n"


def version_script(symbols: Sequence[Symbol], versions: Iterable[str]) -> str:
    """A version script that gives each symbol the version its users ask for; all of ``versions`` exist afterwards."""
    by_version: dict[str, list[str]] = defaultdict(list)
    for version in versions:
        by_version[version] = []
    for symbol in symbols:
        if symbol.version is not None:
            by_version[symbol.version].append(symbol.name)
    nodes = []
    for version, names in by_version.items():
        members = "".join(f' "{name}";' for name in sorted(names))
        nodes.append(f"{version} {{{f' global:{members}' if members else ''} }};")
    return "\n".join(nodes) + "\n"


def _function(name: str, *, c_interface: bool) -> list[str]:
    if not c_interface:
        # A destructor that raises would end the process; without an object there is nothing to destroy.
        behaviour = "nothing" if _DESTRUCTOR.search(name) else "raise"
    elif name in _GIVES_TEXT:
        behaviour = _GIVES_TEXT[name]
    elif _RETURNS_TEXT.search(name):
        behaviour = "text"
    elif _RETURNS_SIZE.search(name):
        behaviour = "nothing"
    elif _REGISTERS_KERNELS.search(name):
        behaviour = "handle"
    else:
        behaviour = "error"
    return [
        f".globl {name}",
        f".type {name}, @function",
        f"{name}:",
        *_FUNCTIONS[behaviour],
        f".size {name}, . - {name}",
    ]


def _zeros(symbol: Symbol, section: str, kind: str) -> list[str]:
    size = symbol.size or _UNKNOWN_SIZE
    return [
        section,
        ".balign 64",
        *_header(symbol.name, kind, size),
        f".zero {size}",
        ".text",
    ]


def _type_info(name: str) -> list[str]:
    """A ``std::type_info`` of a class without bases, after the Itanium C++ ABI, 2.9.5: good for typeid, for catching
    by exactly that type and as the goal of a dynamic_cast that finds nothing."""
    return [
        '.section .data.rel.ro,"aw"',
        f".balign {_POINTER}",
        *_header(name, "object", 2 * _POINTER),
        f".quad _ZTVN10__cxxabiv117__class_type_infoE + {2 * _POINTER}",
        f".quad .Lname_of{name}",
        ".section .rodata",
        f'.Lname_of{name}: .string "{name[4:]}"',
        ".text",
    ]


def _text(name: str, text: str) -> list[str]:
    return [
        ".section .rodata",
        *_header(name, "object", len(text) + 1),
        f'.string "{text}"',
        ".text",
    ]


def _virtual_table(symbol: Symbol, names: set[str]) -> list[str]:
    """A virtual table whose every function is the one that raises, under the table's own name."""
    slots = max((symbol.size or _UNKNOWN_SIZE) // _POINTER - 2, 0)
    type_info = f"_ZTI{symbol.name[4:]}"
    return [
        f".Lvirtual{symbol.name}: lea .Ltable{symbol.name}(%rip), %rdi",
        "jmp ranksafe_stand_in_called@PLT",
        '.section .data.rel.ro,"aw"',
        f".balign {2 * _POINTER}",
        *_header(symbol.name, "object", (slots + 2) * _POINTER),
        f".Ltable{symbol.name}:",
        f".quad 0, {type_info if type_info in names else 0}",
        f".rept {slots}",
        f".quad .Lvirtual{symbol.name}",
        ".endr",
        ".text",
    ]


def _local_data() -> list[str]:
    return [
        ".section .rodata",
        'ranksafe_no_device_text: .string "no CUDA-capable device is detected (ranksafe: simulated GPUs)"',
        ".bss",
        ".balign 64",
        "ranksafe_no_device_handle: .zero 256",
    ]


def _header(name: str, kind: str, size: int) -> list[str]:
    return [f".globl {name}", f".type {name}, @{kind}", f".size {name}, {size}", f"{name}:"]
