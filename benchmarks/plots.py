"""The plots of docs/performance.md and of the README."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from batch_sizes import EMBREEX, Line
from for_you import KINDS, HouseRates, SceneRates

# Okabe and Ito's colours, distinct for colour-blind people; markers repeat the distinction.
STYLES = {
    "oblique": ("#E69F00", "^"),
    "camera": ("#009E73", "v"),
    "incoherent": ("#0072B2", "o"),
    "inside": ("#D55E00", "s"),
    "sun": ("#F0E442", "*"),
    "lamp": ("#CC79A7", "D"),
    "bounce": ("#56B4E9", "P"),
}
TICKS = (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)
STYLE = {"font.size": 10, "svg.hashsalt": "raybox", "axes.spines.top": False, "axes.spines.right": False}


def rates(scenes: Sequence[SceneRates], path: Path, caption: str) -> None:
    """Draw million rays a second by scene: raybox filled, embreex hollow, a line between them."""
    step = 0.8 / len(STYLES)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(8.0, 0.9 * len(scenes) + 1.6))
        for y, scene in enumerate(scenes):
            for k, (kind, (colour, marker)) in enumerate(STYLES.items()):
                if kind in scene.rates:
                    ours, ratio = scene.rates[kind]
                    at = y + step * (k - (len(STYLES) - 1) / 2)
                    theirs = ours / ratio if ratio else ours
                    axes.plot([theirs, ours], [at, at], color=colour, lw=1)
                    axes.plot(theirs, at, marker, color=colour, mfc="white", ms=5)
                    axes.plot(ours, at, marker, color=colour, ms=6)
        axes.set_xscale("log")
        axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
        axes.minorticks_off()
        axes.grid(axis="x", color="#dddddd")
        axes.set_axisbelow(True)
        axes.set_yticks(range(len(scenes)), [f"{scene.name}\n{scene.size:,}" for scene in scenes])
        axes.invert_yaxis()
        axes.set_xlabel("million rays a second: filled raybox, hollow embreex")
        handles = [
            plt.Line2D([], [], color=colour, marker=marker, ls="", label=KINDS[kind])
            for kind, (colour, marker) in STYLES.items()
        ]
        figure.legend(handles=handles, frameon=False, ncols=4, loc="upper center")
        figure.text(0.01, -0.01, caption, fontsize=7, color="#555555", va="top")
        figure.tight_layout(rect=(0, 0, 1, 0.93))
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None}, facecolor="white", bbox_inches="tight")
        plt.close(figure)


PEERS = {"raybox": ("#0072B2", "o"), "embreex": ("#D55E00", "s"), "open3d": ("#999999", "D")}


def house(lines: Sequence[HouseRates], path: Path, caption: str) -> None:
    """Draw the rates of raybox and its peers on one building: a line for each form and kind of rays."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(7.0, 0.5 * len(lines) + 1.3))
        for y, line in enumerate(lines):
            axes.plot([min(line.rates.values()), max(line.rates.values())], [y, y], color="#cccccc", zorder=1)
            for name, rate in line.rates.items():
                colour, marker = PEERS[name]
                axes.plot(rate, y, marker, color=colour, ms=8, zorder=2)
        axes.set_xscale("log")
        axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
        rates = [rate for line in lines for rate in line.rates.values()]
        axes.set_xlim(min(rates) / 1.5, 1.5 * max(rates))
        axes.minorticks_off()
        axes.grid(axis="x", color="#dddddd")
        axes.set_axisbelow(True)
        axes.set_yticks(range(len(lines)), [line.name for line in lines])
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.set_xlabel("million rays a second, one thread")
        handles = [
            plt.Line2D([], [], color=colour, marker=marker, ls="", ms=8, label=name)
            for name, (colour, marker) in PEERS.items()
            if any(name in line.rates for line in lines)
        ]
        figure.legend(handles=handles, frameon=False, ncols=len(handles), loc="upper center")
        figure.text(0.01, -0.01, caption, fontsize=7, color="#555555", va="top")
        figure.tight_layout(rect=(0, 0, 1, 0.9))
        figure.savefig(path, metadata={"Date": None}, facecolor="white", bbox_inches="tight")
        plt.close(figure)


DASHES = {"camera": "-", "inside": "--"}
COUNTS = (16, 256, 4096, 65536, 1048576)
PACES = (10, 20, 50, 100, 200, 500, 1000, 2000)


def batch_sizes(lines: Sequence[Line], path: Path, caption: str) -> None:
    """Draw nanoseconds a ray by the number of rays, a panel for each scene."""
    scenes = list(dict.fromkeys(line.scene for line in lines))
    with plt.rc_context(STYLE):
        figure, grid = plt.subplots(
            -(-len(scenes) // 2), 2, figsize=(8.0, 3.0 * -(-len(scenes) // 2) + 0.6), squeeze=False
        )
        for scene, axes in zip(scenes, grid.flat, strict=False):
            _curves([line for line in lines if line.scene == scene], axes)
            axes.set_title(scene, fontsize=10)
        handles = [
            plt.Line2D([], [], color=PEERS[name][0], ls=dash, label=f"{name}, {kind}")
            for name in ("raybox", EMBREEX)
            for kind, dash in DASHES.items()
        ]
        figure.legend(handles=handles, frameon=False, ncols=len(handles), loc="upper center")
        figure.supxlabel("rays of a call", fontsize=10)
        figure.supylabel("nanoseconds a ray (nearest)", fontsize=10)
        figure.text(0.01, -0.01, caption, fontsize=7, color="#555555", va="top")
        figure.tight_layout(rect=(0, 0, 1, 0.95))
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None}, facecolor="white", bbox_inches="tight")
        plt.close(figure)


def _curves(lines: Sequence[Line], axes: plt.Axes) -> None:
    """Draw the curves of one scene: a colour for each library, a dash for each kind of rays."""
    for kind, dash in DASHES.items():
        some = [line for line in lines if line.rays == kind]
        for name, paces in (("raybox", [x.raybox for x in some]), (EMBREEX, [x.embreex for x in some])):
            if None not in paces:
                axes.plot([x.count for x in some], paces, dash, color=PEERS[name][0], lw=1.5)
    axes.set_xscale("log")
    axes.set_yscale("log")
    limits = axes.get_xlim(), axes.get_ylim()
    axes.set_xticks(COUNTS, [f"{count:,}" for count in COUNTS], fontsize=8)
    axes.set_yticks(PACES, map(str, PACES))
    axes.set(xlim=limits[0], ylim=limits[1])
    axes.minorticks_off()
    axes.grid(color="#dddddd")
    axes.set_axisbelow(True)
