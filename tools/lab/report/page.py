# SPDX-License-Identifier: BSD-3-Clause
"""page.py - the page of a report: one HTML file that needs no other file, no script and no network.

It is well-formed XML, too, so a test can check that all tags are closed. Every text of a result goes through
esc(), because a folder of results may come from anywhere.
"""
import time
from pathlib import Path

from experiments import EXPERIMENTS, POINTS
from figure import Figure, esc, number, rows_of, text_of

LONG_TABLE = 40  # a table with more rows than this scrolls on a screen
WIDE = 0.5  # an interval is wide if it is longer than this part of its value


def field(about, name, kind):
    """A part of a result: of this kind, or empty."""
    return about.get(name) if isinstance(about.get(name), kind) else kind()


def compare(result, measured, what):
    """The headline: value, low and high, each None if not known, and the row; None if there is nothing to compare."""
    rows = [row for row in result if all(row.get(name) == value for name, value in what["where"].items())]
    for name in what["at"]:
        most = max((v for row in rows if (v := number(row.get(name))) is not None), default=None)
        rows = [row for row in rows if number(row.get(name)) == most]
    new, base = (next((row for row in rows if row.get(what["column"]) == what[side]), None) for side in ("new", "base"))
    if not new or not base:
        return None
    less = what["less"]

    def apart(base_value, new_value):
        if base_value is None or new_value is None or not less and (new_value <= 0 or base_value < 0):
            return None
        return base_value - new_value if less else base_value / new_value

    (value, low, high), (new_value, new_low, new_high) = ([number(row.get(name)) for name in (measured, "low", "high")]
                                                          for row in (base, new))
    return apart(value, new_value), apart(low, new_high), apart(high, new_low), new


def headline(result, experiment):
    """The line of the contents: medians over the repetitions and their interval, never the best of many values."""
    what = experiment.get("headline")
    found = what and compare(result, experiment["measured"], what)
    if not found:
        return esc(next((note for note in field(result.about, "notes", list) if isinstance(note, str)), ""))
    value, low, high, row = found
    if value is None:
        return "There is no value to compare: repeat the run on an idle machine, or with --thorough."
    names = [name for name in dict.fromkeys((*what["at"], *what["where"], "alg")) if name in row]
    where = ", ".join(f"{name.replace('_', ' ')} {text_of(row[name])}" for name in names)
    same = 0 if what["less"] else 1
    if low is None or high is None:
        interval, verdict = "no interval", "One repetition cannot tell how noisy this is."
    else:
        interval, verdict = f"{low:.2f} to {high:.2f}", ""
        if low <= same <= high:
            verdict = f"The interval contains {same}: this run does not show which one is faster."
        elif high - low > WIDE * abs(value):
            verdict = "The interval is wide: repeat the run on an idle machine, or with --thorough."
    return (f"<strong>{value:.2f}</strong> ({interval}) {esc(what['text'])}"
            + (f' <span class="where">({esc(where)})</span>' if where else "") + (f" <em>{verdict}</em>" if verdict else ""))


def noise(result, panel, measured):
    """Says in words if intervals behind a figure are wide; empty if they are not."""
    rows = [(value, number(row.get("low")), number(row.get("high"))) for row in rows_of(result, {**panel, "x": "", "y": ""})
            if (value := number(row.get(measured)))]
    rows = [(value, high - low) for value, low, high in rows if low is not None and high is not None]
    wide = sum(length > WIDE * abs(value) for value, length in rows)
    return (f'<p class="warning">{wide} of the {len(rows)} medians behind this figure have a wide interval, longer than '
            "half of the median: repeat the run on an idle machine, or with --thorough.</p>") if wide else ""


def figures(name, result, experiment):
    """Each figure twice, for wide and for narrow screens: its text must not shrink with it."""
    measured = experiment.get("measured", "")
    for panel in experiment["panels"]:
        wide, narrow = (Figure(name, result, panel, measured, width) for width in (820, 400))
        if not wide.svg:
            continue
        there = any(point[:3] == (name, panel["x"], panel["y"]) for point in POINTS) and panel["kind"] == "lines"
        yield (f'<figure class="{panel["kind"]}"><figcaption>{esc(panel["title"])}'
               f'{" <small>* published, other hardware</small>" if there else ""}</figcaption>\n'
               f'<div class="wide">{wide.svg}</div>\n<div class="narrow">{narrow.svg}</div>\n{wide.legend()}'
               f"{noise(result, panel, measured)}</figure>\n")


def digits(values):
    """Digits after the point that distinguish the values of a column."""
    least = min((abs(v) for v in values if isinstance(v, float) and v), default=1e9)
    return 3 if least < 1 else 2 if least < 100 else 1 if least < 1000 else 0


def table(result):
    head, columns = "", []
    for column in result.about["columns"]:
        values = [row[column["name"]] for row in result]
        side = "" if any(isinstance(v, str) for v in values) else ' class="n"'
        unit = f" <small>{esc(column['unit'])}</small>" if column.get("unit") else ""
        head += f'<th{side} scope="col">{esc(column["name"].replace("_", " "))}{unit}</th>'
        columns.append([f"<td{side}>{esc(text_of(v, digits(values)))}</td>" for v in values])
    rows = "\n".join(f"<tr>{''.join(cells)}</tr>" for cells in zip(*columns))
    return (f'<div class="table{" long" if len(result) > LONG_TABLE else ""}" tabindex="0"><table>\n'
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>\n")


def published(result):
    names = ("what", "setting", "value", "hardware", "source")
    rows = ["".join(f"<td>{esc(one.get(name, ''))}</td>" for name in names)
            for one in field(result.about, "published", list) if isinstance(one, dict)]
    return ('<h3>Published, on other hardware</h3>\n<div class="table published" tabindex="0"><table>\n'
            f"<thead><tr>{''.join(f'<th>{name}</th>' for name in names)}</tr></thead>\n<tbody>\n"
            + "\n".join(f"<tr>{row}</tr>" for row in rows) + "\n</tbody></table></div>\n") if rows else ""


def pairs(values):
    def text(value):
        if isinstance(value, list):
            return ", ".join(map(text_of, value))
        return f"{value:g}" if isinstance(value, float) else text_of(value) or "-"
    return "<dl>\n" + "".join(f"<div><dt>{esc(key.replace('_', ' '))}</dt><dd>{esc(text(value))}</dd></div>\n"
                              for key, value in values.items()) + "</dl>\n"


def section(name, result):
    experiment, about = EXPERIMENTS[name], result.about
    first, *others = [*figures(name, result, experiment), ""]
    cut = '<p class="warning">This run was cut short: what is here is good, and some of it is missing.</p>\n'
    notes = "".join(f'<p class="note">{esc(note)}</p>\n' for note in field(about, "notes", list))
    origin = {key: about[key] for key in ("started", "version", "commit") if about.get(key)}
    return (f'<section id="{name}">\n<div class="top">\n<h2>{esc(experiment["title"])}</h2>\n<p>{esc(experiment["text"])}</p>\n'
            f"{first}</div>\n{''.join(others)}{cut if about.get('complete') is False else ''}{notes}{table(result)}"
            f"{published(result)}<h3>How it was measured</h3>\n"
            f'<pre class="command"><code>{esc(about.get("command", ""))}</code></pre>\n'
            f"{pairs({**origin, **field(about, 'settings', dict)})}</section>\n")


def make_page(results, version):
    machine = field(next(iter(results.values())).about, "machine", dict)
    contents = "".join(f'<li><a href="#{name}">{esc(EXPERIMENTS[name]["title"])}</a>'
                       f"<span>{headline(result, EXPERIMENTS[name])}</span></li>\n" for name, result in results.items())
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<title>nbar: barriers, measured</title>
<style>
{Path(__file__).with_name("page.css").read_text(encoding="utf-8")}
</style>
</head>
<body>
<header>
<h1>Barriers, measured</h1>
<p>{esc(version)}, page of {time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())}</p>
</header>
<main>
<nav><ul>
{contents}</ul>
<p>Each value is a median over the repetitions; in brackets, the interval that covers it.</p></nav>
<section id="machine">
<h2>Machine</h2>
{pairs(machine)}</section>
{"".join(section(name, result) for name, result in results.items())}</main>
<footer><p>Published values are those of the sources named, measured on the hardware named: compare speedups and shapes, not microseconds.</p></footer>
</body>
</html>
"""
