#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# openmetrics.py [DASHBOARD]: reads metrics from stdin, and accepts only text that OpenMetrics 1.0
# permits. DASHBOARD: the file of a Grafana dashboard; each metric that it shows must be in the text. If
# the text is refused, prints the fault and ends with status 1. Used by metrics.sh.
import json
import re
import sys

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)?\}})? ([0-9.e+]+)")
# The permitted suffixes of samples, by type of their family.
SUFFIX = {"counter": ["_total"], "gauge": [""], "info": ["_info"], "histogram": ["_bucket", "_count", "_sum"]}


def fault(line, why):
    sys.exit(f"{why}: {line!r}")


def check_bucket(line, name, labels, value, last):
    """The buckets of a histogram rise, and end with +Inf; its value is that of the count."""
    le = [text[4:-1] for text in labels if text.startswith('le="')]
    own = tuple(text for text in labels if not text.startswith('le="'))
    if name.endswith("_bucket"):
        if len(le) != 1:
            fault(line, "a bucket without le")
        bound = float(le[0])
        before = last.get(own, (-1.0, 0.0))
        if bound <= before[0] or value < before[1]:
            fault(line, "buckets must rise")
        last[own] = (bound, value)
    elif name.endswith("_count") and last.get(own) != (float("inf"), value):
        fault(line, "the count is not the bucket of +Inf")


def check(text):
    family = kind = None
    helped = True
    families, samples, last = {}, set(), {}
    if not text.endswith("\n"):
        fault(text[-20:], "no end of line")
    lines = text[:-1].split("\n")
    if lines.pop() != "# EOF":
        fault("", "no # EOF at the end")
    for line in lines:
        words = line.split(" ", 3)
        if words[:2] == ["#", "TYPE"] and len(words) == 4:
            family, kind = words[2:]
            if not re.fullmatch("nbar_" + NAME, family) or family in families or not helped:
                fault(line, "a wrong or second name, or no help for the one before")
            if kind not in SUFFIX:
                fault(line, "a type that the format does not have")
            if family.endswith("_total"):
                fault(line, "the name of a counter")
            families[family], helped, last = kind, False, {}
        elif words[:2] == ["#", "HELP"] and len(words) == 4:
            if words[2] != family or helped or not words[3].strip() or "\\" in words[3]:
                fault(line, "help for another family, or none")
            helped = True
        else:
            found = SAMPLE.fullmatch(line)
            if not found or not helped:
                fault(line, "no sample, or before its help")
            name, labels = found[1], re.findall(LABEL, found[2] or "")
            if name not in [family + s for s in SUFFIX[kind]]:
                fault(line, f"a sample of another family than {family}")
            keys = [text.split("=")[0] for text in labels]
            if len(keys) != len(set(keys)) or (name, found[2]) in samples:
                fault(line, "a second time")
            samples.add((name, found[2]))
            if kind == "histogram":
                check_bucket(line, name, labels, float(found[3]), last)
    return {name for name, _ in samples}


def expressions(node):
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("expr", "query") and isinstance(value, str):
                yield value
            yield from expressions(value)
    elif isinstance(node, list):
        for value in node:
            yield from expressions(value)


def main():
    names = check(sys.stdin.read())
    shown = set()
    if len(sys.argv) > 1:
        with open(sys.argv[1], encoding="utf-8") as file:
            for text in expressions(json.load(file)):
                shown |= set(re.findall(r"\bnbar_\w+", text))
        if not shown or shown - names:
            fault(" ".join(sorted(shown - names)), "the dashboard shows a metric that is not in the text")
    print(f"{len(names)} names, {len(shown)} of them in the dashboard")


main()
