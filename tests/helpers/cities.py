"""Documents of CityJSON, built object by object."""

import json


def prism(outline, holes=(), bottom=0, top=4):
    """Return the surfaces of a prism, as rings of points: floor, roof, walls of outline and holes."""
    rings = [list(outline), *[list(hole) for hole in holes]]
    roof = [[(x, y, top) for x, y in ring] for ring in rings]
    floor = [[(x, y, bottom) for x, y in ring[::-1]] for ring in rings]
    walls = [
        [[(*a, bottom), (*b, bottom), (*b, top), (*a, top)]]
        for ring in rings
        for a, b in zip(ring, ring[1:] + ring[:1], strict=True)
    ]
    return [floor, roof, *walls]


def block(x, y, size, bottom=0, top=4):
    return prism([(x, y), (x + size, y), (x + size, y + size), (x, y + size)], (), bottom, top)


def geometry(kind, lod, boundaries, **more):
    return {"type": kind, "lod": lod, "boundaries": boundaries, **more}


class City:
    """A CityJSON document that numbers the points of its surfaces."""

    def __init__(self, **header):
        self.numbers = {}
        self.objects = {}
        self.header = header

    def number(self, point):
        return self.numbers.setdefault(tuple(point), len(self.numbers))

    def surfaces(self, surfaces):
        return [[[self.number(point) for point in ring] for ring in surface] for surface in surfaces]

    def body(self, lod, x=0, height=5, size=10, **more):
        """Return a block of a level of detail as a solid; level 0 is the floor alone."""
        surfaces = self.surfaces(block(x, 0, size, 0, height))
        if str(lod).startswith("0"):
            return geometry("MultiSurface", lod, surfaces[:1])
        return geometry("Solid", lod, [surfaces], **more)

    def add(self, name, kind, /, *geometries, parents=(), **attributes):
        item = {"type": kind, "attributes": attributes, "geometry": list(geometries)}
        self.objects[name] = item | ({"parents": list(parents)} if parents else {})

    def document(self):
        head = {"type": "CityJSON", "version": "2.0", "CityObjects": self.objects}
        return json.loads(json.dumps(head | {"vertices": list(self.numbers)} | self.header))

    def write(self, path):
        path.write_text(json.dumps(self.document()))
        return path
