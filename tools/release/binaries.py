"""For which system a compiled library is, by its own header: names lie, and macOS names no processor in them."""

from __future__ import annotations

import struct

_ELF = {0x3E: "linux-x64", 0xB7: "linux-arm64"}
_PE = {0x8664: "win32-x64", 0xAA64: "win32-arm64"}
_MACH_O = {0x01000007: "darwin-x64", 0x0100000C: "darwin-arm64"}
_UNKNOWN = "unknown"


def platforms_of(content: bytes) -> set[str]:
    """Where it runs, as editors name platforms; several for a universal library of macOS."""
    if content[:4] == b"\x7fELF":
        (machine,) = struct.unpack_from("<H", content, 18)
        return {_ELF.get(machine, _UNKNOWN)}
    if content[:2] == b"MZ":
        (header,) = struct.unpack_from("<I", content, 0x3C)
        (machine,) = struct.unpack_from("<H", content, header + 4)
        return {_PE.get(machine, _UNKNOWN)}
    if content[:4] == b"\xcf\xfa\xed\xfe":
        (processor,) = struct.unpack_from("<I", content, 4)
        return {_MACH_O.get(processor, _UNKNOWN)}
    if content[:4] == b"\xca\xfe\xba\xbe":
        (count,) = struct.unpack_from(">I", content, 4)
        kinds = [struct.unpack_from(">I", content, 8 + 20 * index)[0] for index in range(count)]
        return {_MACH_O.get(kind, _UNKNOWN) for kind in kinds}
    return {_UNKNOWN}
