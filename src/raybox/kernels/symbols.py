"""What a shared library imports: ELF, Mach-O and PE files of 64 bits, little-endian."""

from collections.abc import Iterator
from struct import iter_unpack, unpack_from

_WEAK = 2  # binding of symbols that need not be defined


def imported(library: bytes) -> set[str]:
    """Return the names of functions that a library imports; of PE files, the libraries."""
    readers = {b"\x7fELF": _of_elf, b"\xcf\xfa\xed\xfe": _of_mach, b"MZ": _of_pe}
    return next(set(read(library)) for magic, read in readers.items() if library.startswith(magic))


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()


def _of_elf(data: bytes) -> Iterator[str]:
    (start,) = unpack_from("<Q", data, 40)
    size, count = unpack_from("<HH", data, 58)
    # kind, offset, size, number of the section of names
    sections = [unpack_from("<4xI16xQQI", data, start + k * size) for k in range(count)]
    for kind, offset, length, names in sections:
        if kind == 11:  # dynamic symbols
            for name, info, section in iter_unpack("<IBxH16x", data[offset : offset + length]):
                if name and not section and info >> 4 != _WEAK:
                    yield _text(data, sections[names][1] + name)


def _of_mach(data: bytes) -> Iterator[str]:
    (count,) = unpack_from("<I", data, 16)
    at = 32
    for _ in range(count):
        command, size = unpack_from("<II", data, at)
        if command == 2:  # symbols
            offset, number, names = unpack_from("<III", data, at + 8)
            for name, kind in iter_unpack("<IB11x", data[offset : offset + 16 * number]):
                if kind & 0xEF == 1:  # external, undefined
                    yield _text(data, names + name).removeprefix("_")
        at += size


def _of_pe(data: bytes) -> Iterator[str]:
    """Yield names of libraries: the linker has found the functions in these."""
    (head,) = unpack_from("<I", data, 60)
    (count,) = unpack_from("<H", data, head + 6)
    (optional,) = unpack_from("<H", data, head + 20)
    # size in memory, address, size in the file, offset
    sections = [unpack_from("<IIII", data, head + 24 + optional + 40 * k + 8) for k in range(count)]

    def offset(address: int) -> int:
        for size, start, _, place in sections:
            if start <= address < start + size:
                return int(place + address - start)
        raise ValueError(f"no section has the address {address}")

    (table,) = unpack_from("<I", data, head + 24 + 120)
    at = offset(table)
    while name := unpack_from("<I", data, at + 12)[0]:
        yield _text(data, offset(name)).lower()
        at += 20
