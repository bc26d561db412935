# SPDX-License-Identifier: BSD-3-Clause
"""Checks pages that `nbar-lab report --render-only` makes of prepared results. report.sh runs it, once for each
function below: report_page.py NBAR-LAB FOLDER FUNCTION."""
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as tree
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(SOURCES / "lab/report"))
sys.path.insert(0, str(Path(__file__).parents[2] / "hostlib/python"))
from experiments import EXPERIMENTS, POINTS  # noqa: E402
from figure import Axis, number  # noqa: E402

LAB, FOLDER = sys.argv[1], Path(sys.argv[2])
BENCH = ["nodes", "where", "alg", "mean", "low", "high", "speedup"]
ROWS = [[2, "nic", "pairwise", 2.0, 1.9, 2.1, 99.0], [2, "host", "pairwise", 198.0, 1.0, 400.0, None],
        [8, "nic", "pairwise", 4.0, 3.8, 4.0, 2.5], [8, "host", "pairwise", 10.0, 9.6, 10.26, None],
        [8, "nic", "linear", 1.0, 1.0, 1.0, 70.0], [8, "host", "linear", 70.0, 70.0, 70.0, None]]


def result(names, rows, **more):
    columns = [{"name": name, "unit": "us" if name == "mean" else "",
                "type": "text" if any(isinstance(row[i], str) for row in rows) else "count" if i == 0 else "real"}
               for i, name in enumerate(names)]
    return {"columns": columns, "rows": rows, **more}


def page(status=0, **results):
    """The page of these results, by name of the experiment."""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.iterdir():
        path.unlink()
    for name, value in results.items():
        text = value if isinstance(value, (bytes, str)) else json.dumps(value)
        (FOLDER / f"{name.replace('_', '-')}.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    done = subprocess.run([LAB, "report", "--render-only", FOLDER], stderr=subprocess.PIPE, text=True, check=False)
    print(done.stderr)
    assert done.returncode == status, done
    if not (FOLDER / "index.html").exists():
        return None, done.stderr
    return tree.parse(FOLDER / "index.html").getroot(), done.stderr


def text(root, path):
    return ["".join(found.itertext()) for found in root.iterfind(path)]


def contents(root):
    return text(root, ".//nav/ul/li")[0]


def headline():
    """The headline is a ratio of medians of given rows, and its interval."""
    line = contents(page(bench=result(BENCH, ROWS))[0])
    assert "2.50 (2.40 to 2.70) times as long" in line and "(nodes 8, alg pairwise)" in line, line
    assert not re.search("99.00|70.00|wide|contains", line), line
    arrival = result(["nodes", "where", "alg", "compute", "total_variation", "loop", "low", "high"],
                     [[8, "nic", "pairwise", 64.0, 0.0, 70.0, 69.0, 72.0], [8, "host", "pairwise", 64.0, 0.0, 78.5, 77.0, 79.0],
                      [8, "nic", "pairwise", 64.0, 9.0, 70.0, 69.0, 72.0], [8, "host", "pairwise", 64.0, 9.0, 500.0, 77.0, 999.0]])
    assert "8.50 (5.00 to 10.00) us less" in contents(page(arrival=arrival)[0])


def noise():
    """Wide intervals, and those that decide nothing, are named in words: in the headline and at the figure."""
    quiet = page(bench=result(BENCH, ROWS[2:]))[0]
    assert not text(quiet, ".//figure/p"), text(quiet, ".//figure/p")
    noisy = text(page(bench=result(BENCH, ROWS))[0], ".//figure/p")
    assert len(noisy) == 2 and noisy[0].startswith("1 of the 6 medians"), noisy

    def line(host):
        return contents(page(bench=result(BENCH, [ROWS[2], [8, "host", "pairwise", 10.0, *host, None]]))[0])
    assert "(2.00 to 7.89)" in line([8.0, 30.0]) and "The interval is wide" in line([8.0, 30.0])
    assert "The interval contains 1: this run does not show" in line([3.0, 12.0])
    assert "2.50 (no interval)" in line([None, None]) and "One repetition" in line([None, None])
    empty = page(bench=result(BENCH, [ROWS[2], [8, "host", "pairwise", None, None, None, None]]))[0]
    assert "no value to compare" in contents(empty)


def figures():
    """Marks are where the values say, in both widths; a figure without its columns or values is left out."""
    root = page(bench=result(BENCH, ROWS), simulate=result(["alg", "mean"], [["a", 10.0], ["b", 5.0], ["c", 2.5]]),
                profile=result(["from", "to", "O", "L"], [["a", "b", 1.0, 3.0], ["b", "a", 2.0, None]]))[0]
    for width in "wide", "narrow":
        drawn = root.findall(f".//section[@id='simulate']//div[@class='{width}']/svg")
        heights = [float(rect.get("height")) for rect in drawn[0].iter("rect")]
        assert len(heights) == 3 and all(abs(heights[0] - h * k) < 0.5 for h, k in zip(heights, (1, 2, 4))), heights
        bench = root.findall(f".//section[@id='bench']//div[@class='{width}']/svg")
        points = [(float(c.get("cx")), float(c.get("cy"))) for c in bench[0].iter("circle")]
        assert len(bench) == 2 and len(points) == 6 and len(list(bench[1].iter("circle"))) == 3, points
        x, y = zip(*points)  # lines: nic, host of pairwise; nic, host of linear. The axes are logarithmic.
        assert x[0] == x[2] and x[1] == x[3] == x[4] == x[5] > x[0] and y[4] > y[0] > y[1] > y[3] > y[5] > y[2], points
        assert len([p for p in bench[0].iter("path") if p.get("class") == "interval"]) == 4
        heat = root.findall(f".//section[@id='profile']//div[@class='{width}']/svg")
        assert [len(list(svg.iter("rect"))) for svg in heat] == [2, 1], heat
    assert "host / NIC *" in "".join(text(root, ".//section[@id='bench']//ul[@class='key']/li"))
    for names, rows in (["nodes", "alg"], [[2, "a"]]), (["nodes", "mean"], [[2, 0], [3, -1], [4, None], [5, "x"]]):
        assert page(bench=result(names, rows))[0].find(".//figure") is None


def numbers():
    """Extreme values break no figure."""
    for values in [5e-324, 1e-310], [0.0, 5e-324], [-1e299, 1e299], [1e16, 1e16 + 2], [3.0, 3.0], [0.0, 0.0], [-2.0, -1.0]:
        for base in 0, 2, 10:
            usable = [v for v in values if not base or v > 1e-300]
            if usable:
                axis = Axis(usable, 0, 100, base)
                assert len(axis.ticks) < 40 and all(-1 <= axis(v) <= 101 for v in usable), (values, base, axis.ticks)
    assert [number(v) for v in (1, "2.5", None, True, "x", 1e300, float("inf"), float("nan"), 10 ** 400)] == \
        [1, 2.5, None, None, None, None, None, None, None]
    page(bench=b'{"columns": [{"name": "nodes"}, {"name": "mean"}, {"name": "alg"}], "rows": '
               b'[[1e999, 1, "a"], [2, 1e308, "a"], [4, -1e999, "a"], [8, NaN, "b"], [1, 5e-324, 7]]}')


def hostile():
    """No text of a result is taken for HTML or XML, wherever it stands."""
    bad = "<script>alert('x')</script>\"&\x01\x1b\ud800"
    root = page(bench=result([bad, "nodes", "where", "alg", "mean"], [[bad, bad, bad, bad, bad], [1, 2, bad, bad, 3.0]],
                             notes=[bad, 7, None, {}], command=bad, machine={bad: bad, "a": [bad, [1]]}, settings={bad: {}},
                             published=[{"what": bad}, 5], started=bad, complete=False))[0]
    assert not list(root.iter("script")) and "cut short" in "".join(root.itertext())
    assert "<script>alert('x')</script>\"&\ufffd\ufffd" in "".join(root.itertext())
    page(bench=result(["nodes"], [[1]], notes=5, machine=7, settings="x", published={}, command=None))


def refused():
    """What is no result is named with its file, and is not on the page."""
    good = json.dumps(result(BENCH, ROWS))
    for bad in ("{\"columns\": [", good[:len(good) // 2], "\n\nno JSON", "[]", "{}", "7", "[" * 100000, b"\xff\xfe",
                '{"columns": [], "rows": []}', '{"columns": {}, "rows": []}', '{"columns": [{"name": "a"}]}',
                '{"columns": [{"name": 1}], "rows": []}', '{"columns": ["a"], "rows": []}',
                '{"columns": [{"name": "a"}], "rows": [[1, 2]]}', '{"columns": [{"name": "a"}], "rows": [1]}',
                '{"columns": [{"name": "a"}], "rows": [[{}]]}', '{"columns": [{"name": "a"}], "rows": {"a": 1}}'):
        root, said = page(status=1, app=bad)
        assert root is None and "app.json has no results" in said and "not on the page" in said, (bad, said)
        root, said = page(status=1, app=bad, bench=good)
        assert text(root, ".//nav/ul/li/a") == ["Latency over size"], said
    assert "no result of an experiment" in page(status=1, app="")[1]
    assert "line 3" in page(status=1, app="\n\nno JSON")[1]


def tables():
    """Published values are of experiments that exist, and its points of figures that exist."""
    names = re.findall(r'^\t\{ "([a-z -]+)",', (SOURCES / "main/published.c").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(names) > 20 and all(name in EXPERIMENTS for line in names for name in line.split()), names
    for name, x, y, *_ in POINTS:
        assert any((p["kind"], p["x"], p["y"]) == ("lines", x, y) for p in EXPERIMENTS[name]["panels"]), (name, x, y)


{f.__name__: f for f in (headline, noise, figures, numbers, hostile, refused, tables)}[sys.argv[3]]()
