"""Units of coordinates by the code of their reference system, without its database."""

import re

_EPSG = re.compile(r"EPSG[:/](?:[^:/]*[:/])?(\d{4,6})")
_METRES = (
    *(range(25828, 25839), range(32601, 32661), range(32701, 32761), range(5554, 5557)),  # UTM
    *(range(31466, 31470), range(30161, 30180), range(6669, 6688)),  # Gauss and Krüger; Japan's plane systems
    (28992, 7415, 28991, 31370, 2056, 21781, 27700, 2154, 3067, 3006, 3301, 5514, 2180, 3414, 3857),
)
_DEGREES = (4326, 4979, 4258, 4937, 4269, 4612, 6668, 6697)
_FEET = (2263, 6539)


def units_of(reference_system: object) -> str | None:
    """Return "metre", "degree" or "US survey foot"; None for a code that is not in this small table.

    Of a compound system, the first code is that of x and y.
    """
    text = str(reference_system)
    found = _EPSG.search(text)
    code = int(found[1]) if found else 0
    if code in _DEGREES or "CRS84" in text:
        return "degree"
    if code in _FEET:
        return "US survey foot"
    return "metre" if any(code in codes for codes in _METRES) else None
