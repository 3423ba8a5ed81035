"""Error texts of the library in the words of the command line: ``--invalid miss``, not ``invalid='miss'``."""

import re
from collections.abc import Collection

_IN_COMMAND_WORDS = {
    "read them with invalid='miss'": "pass --invalid miss",
    "read with invalid='miss'": "pass --invalid miss",
    "read with invalid='skip'": "pass --invalid skip",
    'invalid="skip" leaves out': "--invalid skip leaves out",
    'use invalid="miss"': "pass --invalid miss",
    "by layout= or --layout": "by --layout",
    "leave out layout, or --layout": "leave out --layout",
    "layout is for": "--layout is for",
    "layout must be": "--layout must be",
    "correct layout": "correct --layout",
    "while layout has": "while --layout has",
    'or pass invalid="miss" and they hit nothing': "or pass --invalid miss",
    "origin=(x, y, z), or --origin X,Y,Z": "pass --origin X,Y,Z",
    'say kind "scene" or "rays" (kind=, --kind)': "pass --kind scene or --kind rays",
    'say which: kind="scene" or kind="rays"': "pass --kind scene or --kind rays",
    "or of points with an origin": "or of points with --origin X,Y,Z",
    "give an origin of the same dimension": "pass an --origin of the same dimension",
    "give a smaller chunk": "pass a smaller --chunk",
    "chunk must be a whole number of rays": "--chunk must be a whole number of rays",
    "workers must be": "--workers must be",
    "port must be": "--port must be",
    "pass another host or port": "pass another --host or --port",
    " (point sets need origin, or --origin)": "",
    "weights must": "--weights must",
    "values must": "--values must",
    "weights is for query": "--weights is for query",
    "values is for query": "--values is for query",
    "per is for query": "--per is for query",
    "k is for query": "--k is for query",
    "max_distance is for query": "--max-distance is for query",
    "origin turns points into rays, and": "--origin turns points into rays, and",
    "carry is for rows": "--carry is for rows",
    "which carry needs": "which --carry needs",
    "Replace them, np.nan_to_num(x), or mask their rows by `where`": "Replace them: np.nan_to_num(x)",
    "where is for boxes": "--where is for boxes",
    "where, column": "--where, column",
    "where: ": "--where: ",
    "Pass None to hit all.": "Leave it out to hit all.",
    "Use `in`, or pass a mask.": "Use in.",
    "Pass a mask.": "Shorten it.",
    "only comparisons, `in`, `and`, `or`, `not`, names": "only comparisons, in, and, or, not, names",
    "`in` needs": "in needs",
    "`is` is not": "is is not",
    "labels are of hits": "--labels are of hits",
    "Cast the rays at one geometry after the other.": "Save each geometry to a file of its own.",
    "load it without boxes": "leave out --boxes",
    "lod is for": "--lod is for",
    "lod must be": "--lod must be",
    "all_objects is for": "--all-objects is for",
    "all_objects=True reads": "--all-objects reads",
    "objects is for": "--objects is for",
    "tessellation is for": "--tessellation is for",
    "choose one of its levels": "pass --lod with one of its levels",
    "segments needs a Scene of one Grid": "--query segments needs --grid",
    "use all, and its lengths": "pass --query all, which lists the length in each",
    "Make a Scene of the boxes alone: Boxes, Instances of Boxes, or a list. rb.load(path, boxes=True)": (
        "Pass --boxes, which"
    ),
    "returns a box of each object of a file, Boxes.of_triangles one of each triangle.": (
        "reads each object of a mesh as a box."
    ),
    "Make a scene of the boxes around its": "Pass --boxes, for boxes around its",
    "triangles: Scene(Boxes.of_triangles(mesh.vertices, mesh.faces))": "objects",
    "copies: Scene(instances.boxes())": "copies",
}


_OR_INVALID = re.compile(", or pass --invalid (?:miss|skip)")


def in_command_words(text: str, options: Collection[str]) -> str:
    """Return an error text with options in place of keywords of Python.

    options: those of the command. Advice that needs another one is left out.
    """
    for of_library, of_command in _IN_COMMAND_WORDS.items():
        whole = r"(?<![\w-])" if of_library[0].isalpha() else ""  # objects is no part of all_objects
        text = re.sub(whole + re.escape(of_library), of_command, text)
    return text if "--invalid" in options else _OR_INVALID.sub("", text)
