"""Error texts of the library in the words of the command line: ``--invalid miss``, not ``invalid='miss'``."""

_IN_COMMAND_WORDS = {
    "or read with invalid='miss'": "or pass --invalid miss",
    'or pass invalid="miss" and they hit nothing': "or pass --invalid miss",
    "origin=(x, y, z), or --origin X,Y,Z": "pass --origin X,Y,Z",
    'say kind "scene" or "rays" (kind=, --kind)': "pass --kind scene or --kind rays",
    'say which: kind="scene" or kind="rays"': "pass --kind scene or --kind rays",
    "or of points with an origin": "or of points with --origin X,Y,Z",
    "give an origin of the same dimension": "pass an --origin of the same dimension",
    "give a smaller chunk": "pass a smaller --chunk",
    "chunk must be a whole number of rays": "--chunk must be a whole number of rays",
    "workers must be": "--workers must be",
    "weights must": "--weights must",
    "values must": "--values must",
    "weights is for query": "--weights is for query",
    "values is for query": "--values is for query",
    "per is for query": "--per is for query",
    "raybox.stream.cast on one machine, or for": "raybox cast without --cluster, or for",
}


def in_command_words(text: str) -> str:
    """Return an error text with options in place of keywords of Python."""
    for of_library, of_command in _IN_COMMAND_WORDS.items():
        text = text.replace(of_library, of_command)
    return text
