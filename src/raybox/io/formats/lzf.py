"""Decompress LZF, the compression of binary PCD files (format: LibLZF by Marc Lehmann)."""

MOST_EXPANSION = 88  # bytes that one compressed byte can become at most: 3 bytes repeat at most 264

_LITERAL = 32  # a smaller control byte begins a run of literal bytes


def decompress(data: bytes, size: int) -> bytes:
    """Return the ``size`` bytes that LZF data stand for.

    A control byte below 32 is followed by that many literal bytes and one more. Any other one refers back:
    its upper three bits are a length (7: the next byte is added), its lower five and the following byte a
    distance. Raise `ValueError` for data that end within a run, refer back before the first byte, or have
    another size.
    """
    out = bytearray()
    at, end = 0, len(data)
    try:
        while at < end and len(out) <= size:
            control = data[at]
            at += 1
            if control < _LITERAL:
                out += data[at : at + control + 1]
                at += control + 1
                continue
            length = control >> 5
            if length == 7:
                length += data[at]
                at += 1
            start = len(out) - ((control & 31) << 8) - data[at] - 1
            at += 1
            if start < 0:
                raise ValueError(f"a reference to {-start} bytes before the first one")
            piece = out[start : start + length + 2]  # it ends early if it overlaps what it appends
            out += (piece * ((length + 2) // len(piece) + 1))[: length + 2]
    except IndexError as error:
        raise ValueError("a reference that is cut off") from error
    if at > end:
        raise ValueError("a run of bytes that is cut off")
    if len(out) != size:
        more = "more than" if len(out) > size else f"{len(out)} of"
        raise ValueError(f"{more} {size} bytes")
    return bytes(out)
