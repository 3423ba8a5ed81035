"""The page docs/performance.md: what a user may expect, in one plot and one table."""

from statistics import median
from typing import Any, NamedTuple

import aims
import array_input
import batch_sizes
import own_aims
import second_rays
import small_batches
from raybox.bench import report

Results = dict[str, Any]
KINDS = {
    "oblique": "camera, oblique",
    "camera": "camera, in front",
    "incoherent": "in any direction",
    "inside": "from within",
    "sun": "to the sun",
    "lamp": "to a lamp",
    "bounce": "bounces",
}
SCENES = {
    "mesh-house": "house, triangles",
    "real-house": "house, boxes of its elements",
    "mesh-city": "city, triangles",
    "real-city": "city, boxes of its objects",
    "real-voxels": "shop, voxels",
    "real-street": "street, boxes of its objects",
    "mesh-skull": "skull, triangles",
}
"""Of parts; those of their second rays are named ``second-`` and the part."""
SECOND = "second-"
PICTURE = "![million rays a second by scene: raybox and embreex](images/rates.svg)"


class Rate(NamedTuple):
    """Million rays a second, and how many times embreex's that is; None if that was not measured."""

    mrays: float
    over_embreex: float | None = None

    def in_words(self) -> str:
        """Return the rate, and the ratio in brackets."""
        ratio = "" if self.over_embreex is None else f" ({report.short(self.over_embreex)})"
        return report.short(self.mrays) + ratio


class SceneRates(NamedTuple):
    """A scene, its number of primitives, and the rates of `nearest` by kind of rays."""

    name: str
    size: int
    rates: dict[str, Rate]


class HouseRates(NamedTuple):
    """Million rays a second of `nearest` by contestant, for a form of a building and a kind of rays."""

    name: str
    rates: dict[str, float]


FORMS_OF_THE_HOUSE = {"real-house": "boxes", "mesh-house": "triangles"}
RAYS_OF_THE_HOUSE = {"camera": "camera", "inside": "from inside", "lamp": "to a lamp", "bounce": "bounces"}


def house_rates(results: Results) -> list[HouseRates]:
    """Return the rates on a building of all contestants, as boxes and as triangles."""
    found = {
        (part, kind): HouseRates(f"{form}, {words}", {})
        for part, form in FORMS_OF_THE_HOUSE.items()
        for kind, words in RAYS_OF_THE_HOUSE.items()
    }
    for part, row in _rows(results):
        if (part, row.rays) in found and row.query == _query_of(row.rays):
            found[part, row.rays].rates[row.name] = row.mrays
    return [line for line in found.values() if line.rates]


def section(results: Results) -> str:
    """Return the section, with what was measured."""
    made = ["## How fast will it be for me?"]
    scenes = scene_rates(results)
    if scenes:
        threads = _threads_of(results)
        made += [WORDS.format(threads="one thread" if threads == 1 else f"{threads} threads"), PICTURE]
        lines = [
            (one.name, f"{one.size:,}", *(one.rates[k].in_words() if k in one.rates else "-" for k in KINDS))
            for one in scenes
        ]
        made.append(report.markdown(("scene", "size", *KINDS.values()), lines))
    made += _calls(results)
    facts = [_more(results), _arrays(results), _peers(results), _threads(results)]
    facts += [_builds(results), _memory(results), _first(results)]
    return "\n\n".join([*made, "\n".join(line for of in facts for line in of)])


WORDS = """\
Millions of rays a second that `scene.nearest` casts, with {threads}; in brackets, how many times the rate of
embreex. Rays of a camera are fast, because neighbours take nearly the same way. Rays from within a scene are
slow, because each passes many boxes. Second rays start where those of a picture hit: to the sun and to a
lamp, which are `occluded`, and on in random directions, bounces; in the triangles of the house, the picture
and the lamp are in a room. `count` and `all` are slower than `nearest` where many boxes are hit. Each call
has a fixed cost: pass all rays in one call."""


def _rows(results: Results) -> list[aims.Measured]:
    """Return the rows of `SCENES`, second rays included, each by the part that its scene is named by."""
    found = aims.all_rows(results, *SCENES, *(SECOND + part for part in SCENES))
    return [one._replace(part=one.part.removeprefix(SECOND)) for one in found]


def _query_of(rays: str) -> str:
    """Return the query of a kind of rays that the page shows."""
    return second_rays.KINDS.get(rays, "nearest")


def _threads_of(results: Results) -> int:
    """Return the least number of threads that peers were compared with."""
    return min((row.threads for _, row in aims.all_rows(results, *SCENES, "versus-*")), default=1)


def scene_rates(results: Results) -> list[SceneRates]:
    """Return the rates of all scenes in the order of `SCENES`."""
    threads, found = _threads_of(results), {}
    for part, row in _rows(results):
        if (row.query, row.threads) == (_query_of(row.rays), threads) and row.rays in KINDS:
            name = SCENES[part]
            _, _, rates = found.setdefault((name, row.size), SceneRates(name, row.size, {}))
            if row.name == "raybox":
                rates[row.rays] = Rate(row.mrays)
            elif row.name == "embreex":
                rates[row.rays] = rates[row.rays]._replace(over_embreex=row.ratio)
    order = list(SCENES.values())
    return sorted(found.values(), key=lambda one: (order.index(one.name), one.size))


def _calls(results: Results) -> list[str]:
    """Return a table of calls by their number of rays, of rays from within the triangles of buildings."""
    if "small-batches" not in results:
        return []
    found: dict[int, list[str]] = {}
    for case, times in small_batches.medians(results["small-batches"]).items():
        if case.scene in BUILDINGS and case.rays == "inside":
            of = (report.short(times[name]) if name in times else "-" for name in ("raybox", "embreex"))
            found.setdefault(case.count, []).extend(of)
    head = "rays a call", *(f"{one}, {name}" for one in BUILDINGS for name in ("µs", "embreex"))
    lines = [(f"{count:,}", *cells) for count, cells in found.items()]
    return [f"{CALLS}\n\n{report.markdown(head, lines)}"]


BUILDINGS = small_batches.HOUSE, small_batches.CITY
CALLS = """\
Microseconds of a call with rays from within: `Rays` of two arrays, `nearest`, and reading `index` and `t`, on
one thread."""


def _more(results: Results) -> list[str]:
    """Return a sentence about calls with one more ray, and with twice as many."""
    found = batch_sizes.curve(results)
    if not found:
        return []
    more, twice = max(line.one_more for line in found), max(line.twice for line in found)
    return [
        f"- **More rays**, from {batch_sizes.LEAST} on: one more takes at most {more:.2f} times as long, "
        f"twice as many {twice:.2f} times."
    ]


def _arrays(results: Results) -> list[str]:
    """Return a sentence about the cost of making rays."""
    if "array-input" not in results:
        return []
    found = array_input.ratios(results["array-input"])
    made = []
    for form, words in FORMS.items():
        chosen = [ratio for (_, name), ratio in found.items() if name == form]
        made += [f"{max(chosen) - 1:.0%} {words}"] if chosen else []
    return [f"- **Making rays** takes, in addition to `nearest`, at most {', '.join(made)}."]


FORMS = {
    "float64" + array_input.ARRAYS: "from arrays",
    array_input.PINHOLE: "by `Rays.pinhole`",
}


def _peers(results: Results) -> list[str]:
    """Return a sentence about the peers that are compared most, on triangles of buildings."""
    made = []
    chosen = [
        row
        for part, row in _rows(results)
        if part in ("mesh-house", "mesh-city") and row.query == _query_of(row.rays)
    ]
    for name in ("embreex", "open3d"):
        ratios = [row.ratio for row in chosen if row.name == name]
        if ratios:
            made.append(f"{report.short(min(ratios))} to {report.short(max(ratios))} times {name}'s")
    words = "on the triangles of the house and the city, by kind of rays, the rate is"
    return [f"- **Other libraries**: {words} {', '.join(made)}."] if made else []


def _threads(results: Results) -> list[str]:
    rows = aims.all_rows(results, "workers-*")
    ratios = [row.ratio for _, row in rows if row.name == "raybox, 1 worker"]
    if not ratios:
        return []
    return [f"- **Threads**: two threads are {min(ratios):.2f} to {max(ratios):.2f} times as fast as one."]


def _builds(results: Results) -> list[str]:
    """Return a sentence about a million boxes on one thread."""
    seconds = {
        record["name"]: median(record["seconds"])
        for part, result in results.items()
        if part.startswith("builds") and (result["size"], result["threads"]) == (10**6, 1)
        for record in result["builds"]
        if record["seconds"]
    }
    if not {"raybox balanced", "raybox fast"} <= set(seconds):
        return []
    balanced, fast = seconds["raybox balanced"], seconds["raybox fast"]
    return [
        f"- **Scenes**: a million boxes are arranged in {balanced:.2f} s on one thread, "
        f'or in {fast:.2f} s with `quality="fast"`.'
    ]


def _memory(results: Results) -> list[str]:
    if "memory-1e7" not in results:
        return []
    tree = results["memory-1e7"]["stats"]["bytes_per_box"]
    return [f"- **Memory**: {48 + tree:.0f} bytes a box, 48 of them for the box itself."]


def _first(results: Results) -> list[str]:
    if "first-use" not in results:
        return []
    compiled, loaded = (
        own_aims.first_seconds(results["first-use"][kind], "nearest") for kind in ("compiled", "loaded")
    )
    if results["first-use"]["machine"]["code"].startswith("kernels of"):
        return [f"- **First call**: import, scene and `nearest` take {loaded:.2f} s in a new process."]
    return [
        f"- **First call**: import, scene and `nearest` take {compiled:.1f} s, most of it compilation, "
        f"the first time on a machine, and {loaded:.2f} s in every later process."
    ]
