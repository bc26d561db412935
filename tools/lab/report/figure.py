# SPDX-License-Identifier: BSD-3-Clause
"""figure.py - the figures of a report: rows of a result as SVG, with colours of the page's style sheet."""
import html
import math
import re

from experiments import POINTS

_BAD = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML may not contain
_DASHES = ("", "8 5", "2 4", "10 4 2 4")
_SHADES = (1, 0.6, 0.4, 0.25)
_MARKS = "×+◇△"
LEFT, TOP, RIGHT = 70, 24, 12


def esc(value):
    return html.escape(_BAD.sub("\ufffd", str(value)))


def number(value):
    """A finite number, also from a text; None: it is none."""
    try:
        value = None if value is None or isinstance(value, bool) else float(value)
        return value if value is not None and abs(value) < 1e300 else None
    except (ValueError, OverflowError):
        return None


def text_of(value, digits=2):
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return {None: "", True: "yes", False: "no"}[value] if value is None or isinstance(value, bool) else str(value)


class Axis:
    """Values of an axis to pixels from `start` to `end`; ticks at round values."""

    def __init__(self, values, start, end, base=0, zero=False):
        low, high = min(values), max(values)
        if base:
            low, high = low / 1.1, high * 1.1
        else:
            low, high = (min(low, 0), max(high, 0)) if zero else (low, high)
            pad = (high - low) * 0.04 or abs(low) / 2 or 1
            low, high = low - pad * (low != 0 or not zero), high + pad
        self.base, self.start, self.end = base, start, end
        self.low, self.high = self.of(low), self.of(high)
        self.ticks = [v for v in self.round(low, high) if low <= v <= high]

    def of(self, value):
        return math.log10(value) if self.base else value

    def __call__(self, value):
        return self.start + (self.of(value) - self.low) / (self.high - self.low) * (self.end - self.start)

    def round(self, low, high):
        if self.base:
            per = math.log10(self.base)
            powers = range(math.floor(self.low / per), math.ceil(self.high / per) + 1)
            fine = (1, 2, 5) if self.base == 10 and len(powers) < 4 else (1,)
            return [m * float(self.base) ** k for k in powers[::len(powers) // 8 + 1] for m in fine]
        step = 10.0 ** math.floor(math.log10((high - low) / 5))
        step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= 7)
        return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


class Places:
    """Words of an axis, each at the middle of its place."""

    def __init__(self, words, start, end):
        self.index = {word: i for i, word in enumerate(dict.fromkeys(words))}
        self.ticks, self.start = list(self.index), start
        self.step = (end - start) / len(self.index)

    def __call__(self, word):
        return self.start + (self.index[word] + 0.5) * self.step


def label(result, name):
    unit = next((c.get("unit") for c in result.about["columns"] if c["name"] == name), "")
    return name.replace("_", " ") + (f", {unit}" if unit else "")


def rows_of(result, panel):
    """The rows of a figure that have all its values; none if the result lacks one of its columns."""
    need = [panel[k] for k in ("x", "y", "value") if panel.get(k)]
    only = panel["only"] or (None, "")
    return [row for row in result if all(row.get(name) is not None for name in need)
            and text_of(row.get(only[0])) == only[1]]


class Figure:
    """One panel, as wide as `width` pixels. svg is empty if there is nothing to draw."""

    def __init__(self, experiment, result, panel, measured, width):
        self.panel, self.result, self.width = panel, result, width
        self.height, self.svg, self.key = 360, "", []
        rows = rows_of(result, panel)
        parts = getattr(self, "_" + panel["kind"])(experiment, rows, measured) if rows else ""
        if parts:
            self.svg = (f'<svg viewBox="0 0 {width} {self.height}" role="img" aria-label="{esc(panel["title"])}">'
                        f"{''.join(parts)}</svg>")

    def _series(self, rows):
        """Rows by line: {(colour, dash): rows}; the first series gives the colour, the second the dashes."""
        names, seen, found = self.panel["series"], ({}, {}), {}
        counts = {c["name"] for c in self.result.about["columns"] if c.get("type") == "count"}
        for row in rows:
            words = [text_of(row.get(name)) for name in names]
            at = tuple(s.setdefault(word, len(s)) for s, word in zip(seen, words + [""] * 2))
            found.setdefault(at, []).append(row)
            if len(found[at]) == 1:
                self.key.append((at, ", ".join(f"{w} {n}" if n in counts else w for n, w in zip(names, words) if w)))
        return found

    def _axes(self, x, y, numeric=True):
        """Frame, ticks and names of the axes."""
        right, bottom = self.width - RIGHT, self.height - self.foot
        out = [f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>',
               f'<text x="4" y="{TOP - 9}">{esc(label(self.result, self.panel["y"]))}</text>',
               f'<text x="{(LEFT + right) / 2:g}" y="{self.height - 6}" text-anchor="middle">'
               f'{esc(label(self.result, self.panel["x"]))}</text>']
        crowded = sum(len(f"{v}") + 2 for v in x.ticks) * 8 > right - LEFT
        for v in x.ticks:
            turn = f' transform="rotate(-30 {x(v):.1f} {bottom + 16})" text-anchor="end"' if crowded and not numeric \
                else ' text-anchor="middle"'
            word = f"{v:g}" if isinstance(v, float) else v[:48]
            out += [f'<path class="grid" d="M{x(v):.1f} {TOP}V{bottom}"/>' if numeric else "",
                    f'<text x="{x(v):.1f}" y="{bottom + 16}"{turn}>{esc(word)}</text>']
        for v in y.ticks:
            word = f"{v:g}" if isinstance(v, float) else v[:10]
            out += [f'<path class="grid" d="M{LEFT} {y(v):.1f}H{right}"/>' if isinstance(v, float) else "",
                    f'<text x="{LEFT - 6}" y="{y(v) + 4:.1f}" text-anchor="end">{esc(word)}</text>']
        return out

    foot = 44  # height of the ticks and the name of the x axis

    def _lines(self, experiment, rows, measured):
        log, panel = self.panel["log"], self.panel

        def good(v, axis):
            return v is not None and (axis not in log or v > 1e-300)

        series = {at: [(x, y, *((number(r.get("low")), number(r.get("high"))) if measured == panel["y"] else (None, None)))
                       for r in of for x, y in [(number(r[panel["x"]]), number(r[panel["y"]]))]
                       if good(x, "x") and good(y, "y")] for at, of in self._series(rows).items()}
        self.key = [k for k in self.key if series[k[0]]]
        marks = [(mark, points) for name, x, y, mark, points in POINTS
                 if (name, x, y) == (experiment, panel["x"], panel["y"])]
        points = [p for of in series.values() for p in of]
        if not points:
            return []
        ends = [v for p in points for v in p[1:] if good(v, "y")]
        x = Axis([p[0] for p in points] + [p[0] for _, of in marks for p in of], LEFT, self.width - RIGHT,
                 2 if "x" in log else 0)
        y = Axis(ends + [p[1] for _, of in marks for p in of], self.height - self.foot, TOP,
                 10 if "y" in log else 0, zero=True)
        out = self._axes(x, y)
        for (colour, dash), of in series.items():
            paint = f'style="stroke:var(--c{colour % 8 + 1})"'
            path = "L".join(f"{x(p[0]):.1f} {y(p[1]):.1f}" for p in of)
            bars_ = "".join(f"M{x(a):.1f} {y(low):.1f}V{y(high):.1f}" for a, _, low, high in of
                            if good(low, "y") and good(high, "y"))
            out.append(f'<path class="line" {paint} stroke-dasharray="{_DASHES[dash % 4] or "none"}" d="M{path}"/>')
            out.append(f'<path class="interval" {paint} d="{bars_}"/>' if bars_ else "")
            out += [f'<circle class="p{dash % 2}" cx="{x(p[0]):.1f}" cy="{y(p[1]):.1f}" r="2.5" '
                    f'style="--c:var(--c{colour % 8 + 1})"/>' for p in of]
        for i, (mark, of) in enumerate(marks):
            self.key.append((i, f"{mark} *"))
            out += [f'<text x="{x(a):.1f}" y="{y(b) + 5:.1f}" text-anchor="middle">{_MARKS[i % 4]}</text>' for a, b in of]
        return out

    def _bars(self, _, rows, measured):
        self.foot = 110 if sum(len(text_of(r[self.panel["x"]])) + 2 for r in rows) > self.width / 12 else 44
        rows = [r for r in rows if number(r[self.panel["y"]]) is not None]
        if not rows:
            return []
        series, right = self._series(rows), self.width - RIGHT
        x = Places([text_of(r[self.panel["x"]]) for r in rows], LEFT, right)
        ends = ("low", "high") if measured == self.panel["y"] else ()
        y = Axis([v for r in rows for name in (self.panel["y"], *ends) if (v := number(r.get(name))) is not None],
                 self.height - self.foot, TOP, zero=True)
        out, each = self._axes(x, y, numeric=False), 0.8 * x.step / len(series)
        for i, ((colour, dash), of) in enumerate(series.items()):
            for r in of:
                at, top, low = x(text_of(r[self.panel["x"]])) - 0.4 * x.step + i * each, y(number(r[self.panel["y"]])), y(0)
                out.append(f'<rect x="{at:.1f}" y="{min(top, low):.1f}" width="{each * 0.94:.1f}" height="{abs(low - top):.1f}" '
                           f'style="fill:var(--c{colour % 8 + 1});opacity:{_SHADES[dash % 4]}"/>')
                low, high = [number(r.get(name)) for name in ends] or (None, None)
                if low is not None and high is not None:
                    out.append(f'<path class="interval" d="M{at + each * 0.47:.1f} {y(low):.1f}V{y(high):.1f}"/>')
        return out

    def _heat(self, _, rows, measured):
        fields = [(text_of(r[self.panel["x"]]), text_of(r[self.panel["y"]]), v) for r in rows
                  if (v := number(r[self.panel["value"]])) is not None]
        if not fields:
            return []
        x = Places([f[0] for f in fields], LEFT, self.width - RIGHT)
        y = Places([f[1] for f in fields], self.height - self.foot, TOP)
        least, most = min(f[2] for f in fields), max(f[2] for f in fields)
        out = self._axes(x, y, numeric=False)
        for a, b, v in fields:
            share = 0.06 + 0.54 * ((v - least) / (most - least) if most > least else 0.5)
            out.append(f'<rect x="{x(a) - x.step / 2:.1f}" y="{y(b) + y.step / 2:.1f}" width="{x.step:.1f}" '
                       f'height="{-y.step:.1f}" style="fill:var(--c1);opacity:{share:.3f}"/>'
                       f'<text x="{x(a):.1f}" y="{y(b) + 4:.1f}" text-anchor="middle">{v:.3g}</text>')
        return out

    def legend(self):
        """The key, as HTML: it has room on every screen."""
        def swatch(at):
            if isinstance(at, int):
                return _MARKS[at % 4]
            colour, dash = f"var(--c{at[0] % 8 + 1})", at[1]
            if self.panel["kind"] == "bars":
                return f'<svg width="30" height="12"><rect width="30" height="12" style="fill:{colour};opacity:' \
                       f'{_SHADES[dash % 4]}"/></svg>'
            return f'<svg width="30" height="12"><path class="line" style="stroke:{colour}" stroke-dasharray="' \
                   f'{_DASHES[dash % 4] or "none"}" d="M0 6H30"/><circle class="p{dash % 2}" cx="15" cy="6" r="2.5" ' \
                   f'style="--c:{colour}"/></svg>'
        items = "".join(f"<li>{swatch(at)} {esc(text)}</li>" for at, text in self.key if text)
        return f'<ul class="key">{items}</ul>' if items else ""
