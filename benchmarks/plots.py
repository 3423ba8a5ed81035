"""The plots of docs/performance.md and of its appendix."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from raybox.bench.report import Row

# Okabe and Ito's colours, distinct for colour-blind people; markers repeat the distinction.
STYLES = {"embreex": ("#0072B2", "o"), "open3d": ("#E69F00", "s"), "warp": ("#009E73", "^")}
KINDS = {"incoherent": ("#0072B2", "o"), "inside": ("#D55E00", "s"), "camera": ("#009E73", "^")}
QUERIES = ("nearest", "occluded", "count", "all")
STYLE = {"font.size": 10, "svg.hashsalt": "raybox", "axes.spines.top": False, "axes.spines.right": False}


def ratios(rows: Sequence[Row], path: Path, caption: str) -> None:
    """Draw ratios of peers, a panel for each size: dots are medians, lines all rounds."""
    chosen = [row for row in rows if row.name in STYLES and row.threads == 1 and row.size <= 10**6]
    sizes = sorted({row.size for row in chosen})
    if not sizes:
        return
    lines = [
        (q, kind) for q in QUERIES for kind in KINDS if any((r.query, r.rays) == (q, kind) for r in chosen)
    ]
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(
            1,
            len(sizes),
            figsize=(3.4 * len(sizes) + 1.2, 0.42 * len(lines) + 1.6),
            sharey=True,
            squeeze=False,
        )
        for axes, size in zip(panels[0], sizes, strict=True):
            for k, (name, (colour, marker)) in enumerate(STYLES.items()):
                for row in (r for r in chosen if r.size == size and r.name == name):
                    y = lines.index((row.query, row.rays)) + 0.22 * (k - 1)
                    axes.plot([row.low, row.high], [y, y], color=colour, lw=1.5)
                    axes.plot(row.ratio, y, marker, color=colour, ms=6)
            axes.axvline(1.0, color="black", lw=1)
            axes.set_xscale("log")
            axes.set_xticks(ticks := [1, 2, 5, 10, 20, 50], [str(t) for t in ticks])
            axes.minorticks_off()
            axes.grid(axis="x", color="#dddddd")
            axes.set_axisbelow(True)
            axes.set_title(f"{size:,} boxes")
        panels[0][0].set_yticks(range(len(lines)), [f"{q}, {kind}" for q, kind in lines])
        panels[0][0].invert_yaxis()
        figure.supxlabel("times raybox's time (1: as fast; to the right: raybox is faster)")
        handles = [plt.Line2D([], [], color=c, marker=m, label=name) for name, (c, m) in STYLES.items()]
        figure.legend(handles=handles, loc="upper right", ncols=len(handles), frameon=False)
        _save(figure, path, caption)


def rates(rows: Sequence[Row], path: Path, caption: str) -> None:
    """Draw million rays a second against the number of boxes."""
    ours: dict[str, dict[int, float]] = {}
    for row in rows:
        if (row.name, row.query, row.threads) == ("raybox", "nearest", 1):
            ours.setdefault(row.rays, {})[row.size] = row.mrays
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(7.5, 4.8))
        for kind, curve in ours.items():
            colour, marker = KINDS[kind]
            axes.plot(list(curve), list(curve.values()), color=colour, marker=marker, label=f"raybox, {kind}")
            theirs = {
                r.size: curve[r.size] / r.ratio for r in rows if _is_embree(r, kind) and r.size in curve
            }
            axes.plot(
                list(theirs),
                list(theirs.values()),
                *("--",),
                color=colour,
                marker=marker,
                mfc="white",
                label=f"embreex, {kind}",
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_yticks(ticks := [0.2, 0.5, 1, 2, 5, 10, 20, 50, 100], [f"{t:g}" for t in ticks])
        axes.minorticks_off()
        axes.set_xlabel("boxes")
        axes.set_ylabel("million rays a second (nearest, one thread)")
        axes.grid(color="#eeeeee")
        figure.legend(frameon=False, ncols=3, loc="upper center")
        _save(figure, path, caption)


def _is_embree(row: Row, kind: str) -> bool:
    return (row.name, row.query, row.rays, row.threads) == ("embreex", "nearest", kind, 1)


def _save(figure: Any, path: Path, caption: str) -> None:
    figure.text(0.01, -0.01, caption, fontsize=7, color="#555555", va="top")
    figure.tight_layout(rect=(0, 0, 1, 0.9))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None}, facecolor="white", bbox_inches="tight")
    plt.close(figure)
