# SPDX-License-Identifier: BSD-3-Clause
"""Lines and branches that each test program executes, counted by gcov.

Used by the scripts measure, in this folder, and ../mutate/mutants. The programs are of a build with --coverage. The
counts of a program are kept in a file beside it, until the program changes.
"""
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

FOLDERS = ("firmware/", "hostlib/", "mpi-glue/", "tools/")


def run_program(command, limit, folder, env=None):
    """Runs a test program in its own session, and ends the processes that it leaves behind. Returns its exit status,
    or None if it took longer than limit seconds."""
    # Tests do less work if SAN is set, as under a sanitizer.
    environment = {**os.environ, "SAN": "gcov", "TMPDIR": folder, **(env or {})}
    null = subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=null, stdout=null, stderr=null, env=environment, start_new_session=True
    ) as process:
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def add_counts(files, text):
    """Adds the output of a run of gcov: files[path][line] = [executed, [branch taken, ...]]."""
    for line in text.splitlines():
        if not line.startswith(b"{"):
            continue
        for file in json.loads(line)["files"]:
            path = os.path.normpath(file["file"])
            if not path.startswith(FOLDERS):
                continue
            lines = files.setdefault(path, {})
            for entry in file["lines"]:
                add_line(lines, entry["line_number"], entry["count"] > 0, [b["count"] > 0 for b in entry["branches"]])


def add_line(lines, number, executed, branches):
    """Merges counts of one line: an inline function is in several objects, and a line runs in several programs."""
    old = lines.get(number)
    if old is None:
        lines[number] = [executed, branches]
        return
    old[0] = old[0] or executed
    if len(old[1]) == len(branches):
        old[1] = [a or b for a, b in zip(old[1], branches)]
    elif len(old[1]) < len(branches):
        old[1] = branches


def collect(folder):
    """Reads the counts of all objects under folder: a build folder, or a folder that GCOV_PREFIX names."""
    files = {}
    data = []
    for at, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".gcda"):
                note = os.path.join(at, name[:-5] + ".gcno")
                if not os.path.lexists(note):
                    os.symlink(note[len(folder) :], note)
                data.append(os.path.join(at, name))
    if data:
        gcov = os.environ.get("GCOV", "gcov")
        out = subprocess.run([gcov, "--json-format", "--branch-probabilities", "--stdout", *data], check=True, stdout=subprocess.PIPE)
        add_counts(files, out.stdout)
    return files


def run_and_count(program, limit):
    folder = tempfile.mkdtemp(prefix="nbar-gcov.")
    try:
        began = time.monotonic()
        status = run_program([program], limit, folder, {"GCOV_PREFIX": folder})
        return {"status": status, "seconds": time.monotonic() - began, "files": collect(folder)}
    finally:
        shutil.rmtree(folder)


def counts_of(program, limit=300):
    """Returns {"seconds", "status", "files"} of one test program: from the file beside it, or by a run. A program that
    fails is run once more; its counts are used even if it fails again, because other sets judge the tests."""
    kept = program + ".coverage.json"
    with open(program, "rb") as f, open(__file__, "rb") as this:
        digest = hashlib.sha256(f.read() + this.read()).hexdigest()
    try:
        with open(kept) as f:
            counts = json.load(f)
        if counts["digest"] == digest:
            return with_numbers(counts)
    except (OSError, ValueError):
        pass
    counts = run_and_count(program, limit)
    if counts["status"] != 0:
        counts = run_and_count(program, limit)
    counts["digest"] = digest
    if counts["status"] == 0:
        with open(kept, "w") as f:
            json.dump(counts, f)
    return with_numbers(counts)


def with_numbers(counts):
    for path, lines in counts["files"].items():
        counts["files"][path] = {int(number): entry for number, entry in lines.items()}
    return counts


def counts_of_all(programs, jobs):
    with ThreadPoolExecutor(jobs) as pool:
        return dict(zip(programs, pool.map(counts_of, programs)))
