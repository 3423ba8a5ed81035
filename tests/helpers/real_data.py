"""Real files of tests/data/real: a house, a city, a shop, a lidar frame and a skull.

Large files are stored compressed. Importing this module unpacks all into `FOLDER`, once for each content.
`python tests/helpers/real_data.py` prints that folder. SOURCE.txt in a folder names sources and licences.
"""

import hashlib
import lzma
import os
import shutil
import tempfile
from pathlib import Path

STORED = Path(__file__).parents[1] / "data" / "real"


def unpacked(stored: Path, parent: Path) -> Path:
    """Return a folder in `parent` with the files of `stored`, those of .xz unpacked.

    Its name contains a checksum of the path and the content of `stored`. A missing file is written under
    another name and renamed, so that no other process reads a part of it.
    """
    files = sorted(path for path in stored.rglob("*") if path.is_file())
    checksum = hashlib.sha256(str(stored).encode())
    for path in files:
        checksum.update(path.read_bytes())
    folder = parent / f"raybox-real-{checksum.hexdigest()[:16]}"
    for path in files:
        target = folder / path.relative_to(stored)
        is_packed = path.suffix == ".xz"
        _write(path, target.with_suffix("") if is_packed else target, is_packed=is_packed)
    return folder


def _write(source: Path, target: Path, *, is_packed: bool) -> None:
    """Copy or unpack a file, unless the target exists."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=target.parent)
    with os.fdopen(descriptor, "wb") as file, (lzma.open if is_packed else open)(source, "rb") as content:
        shutil.copyfileobj(content, file)
    try:
        os.replace(name, target)
    except PermissionError:  # Windows: another process has written the target, and reads it
        os.remove(name)
        if not target.exists():
            raise


FOLDER = unpacked(STORED, Path(tempfile.gettempdir()))
HOUSE = FOLDER / "duplex_ifc" / "duplex_a_20110907.ifc"
HOUSE_BOXES = HOUSE.with_name("duplex_aabb.csv")
CITY = FOLDER / "delft_cityjson" / "delft.city.json"
SHOP = FOLDER / "voxel_store" / "scene_store8.vox"
SKULL = FOLDER / "skull_mesh" / "skull.obj"
LIDAR = FOLDER / "pandaset_frame"  # frame.npz, cuboids.csv, meta.json

if __name__ == "__main__":
    print(FOLDER)
