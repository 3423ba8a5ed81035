"""The output of `compare.py`: a line a case, then differences, slower cases, and the worst ratios."""

from statistics import median, quantiles
from typing import NamedTuple

from compare_cases import Case


class Outcome(NamedTuple):
    """The outcome of a case: differing fields, an error, and seconds of each round."""

    case: Case
    differing: tuple[str, ...] = ()
    error: str = ""
    old: tuple[float, ...] = ()
    new: tuple[float, ...] = ()
    null: tuple[float, ...] = ()
    reruns: int = 0

    @property
    def ratio(self) -> float:
        """Return the median over rounds of new / old; 1 where nothing was timed."""
        return median(ratios(self.new, self.old))

    @property
    def null_ratio(self) -> float:
        return median(ratios(self.null, self.old))

    @property
    def wrong(self) -> bool:
        return bool(self.differing or self.error)


def ratios(above: tuple[float, ...], below: tuple[float, ...]) -> list[float]:
    """Return the quotients of times, round by round."""
    return [a / b for a, b in zip(above, below, strict=True)] or [1.0]


HEADER = f"{'case':<58} {'old ms':>9} {'new/old':>8} {'quartiles':>13} {'null':>6} {'quartiles':>13} bits"


def line(outcome: Outcome) -> str:
    """Return a case's row of the table."""
    bits = "ERROR" if outcome.error else "DIFFER" if outcome.differing else "same"
    text = f"{outcome.case.name:<58}"
    if outcome.old:
        text += f" {1e3 * median(outcome.old):9.3f}"
        text += f" {outcome.ratio:8.3f} {_quartiles(outcome.new, outcome.old)}"
        text += f" {outcome.null_ratio:6.3f} {_quartiles(outcome.null, outcome.old)}"
    again = f" (run again, {len(outcome.old)} rounds)" if outcome.reruns else ""
    return f"{text} {bits}{again}"


def _quartiles(above: tuple[float, ...], below: tuple[float, ...]) -> str:
    all_of = ratios(above, below)
    low, _, high = quantiles(all_of, n=4, method="inclusive") if len(all_of) > 1 else all_of * 3
    return f"{low:6.3f}-{high:.3f}".rjust(13)


def summary(outcomes: list[Outcome], bar: float) -> list[str]:
    """Return the closing lines."""
    timed = sorted((o for o in outcomes if o.old), key=lambda o: -o.ratio)
    slow = [o for o in timed if o.ratio > bar]
    wrong = [o for o in outcomes if o.wrong]
    lines = [f"{len(outcomes)} cases, {len(wrong)} with different bits or errors"]
    lines += [f"  {o.case.name}: {o.error or 'differs in ' + ', '.join(o.differing)}" for o in wrong]
    if timed:
        again = sum(o.reruns > 0 for o in timed)
        lines.append(f"{len(timed)} timed, {again} run again, {len(slow)} over the bar of {bar:g}")
        lines += [f"  {o.case.name}: {o.ratio:.3f}" for o in slow]
        lines.append(f"median ratio {median(o.ratio for o in timed):.3f} (new/old), null run ")
        lines[-1] += f"{median(o.null_ratio for o in timed):.3f} (old/old)"
        lines.append("worst: " + "; ".join(f"{o.ratio:.3f} {o.case.name}" for o in timed[:3]))
        nulls = sorted(timed, key=lambda o: -o.null_ratio)[:3]
        lines.append(
            "worst of the null run: " + "; ".join(f"{o.null_ratio:.3f} {o.case.name}" for o in nulls)
        )
    return lines
