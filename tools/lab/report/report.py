# SPDX-License-Identifier: BSD-3-Clause
"""report.py - `nbar-lab report`: runs experiments in a folder, each as a process of its own, and makes a page.

The command nbar-lab starts it: report.py PATH-OF-NBAR-LAB ARGUMENT... It needs the standard library and nbar.py.
"""
import argparse
import ctypes
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

ABOVE = Path(__file__).resolve().parents  # [3]: the source tree; [2]: the prefix of the installation
sys.path[:0] = [str(ABOVE[0]), str(ABOVE[3] / "hostlib/python")]
sys.path += map(str, ABOVE[2].glob("lib/python3*/dist-packages"))  # behind the standard library
try:
    import nbar
except ImportError as reason:
    sys.exit(f"nbar-lab report: Python has no module nbar ({reason}): install the package python3-nbar, or set PYTHONPATH "
             "to the folder of nbar.py")
from experiments import EXPERIMENTS
from page import make_page

HELP = """usage: nbar-lab report [OPTION]... DIR
Runs experiments, each by its own command, and writes DIR/index.html: one page
with tables, figures, and published values.

  --quick         short runs: under three minutes in all
  --thorough      long runs: more sizes and repetitions, over an hour in all
  --only LIST     run only these experiments (all)
  --render-only   measure nothing; draw the page again from the results in DIR
  --mpirun WORDS  start MPI programs with these words (Open MPI's mpirun, with
                  one rank per processor)
  --list          list the experiments and their commands

DIR gets NAME.json, NAME.csv and NAME.txt for each experiment. An experiment
that has its results there is not run again: the same command continues an
interrupted report. Exit status: 0 done, 1 failed or interrupted, 2 wrong usage.
"""
LENGTHS = ("default", "--quick", "--thorough")
BYTES_MAX = 64 << 20  # of a file of results
RANKS_MAX = 8  # of an MPI program on one machine
FAILED = 1


class Failure(Exception):
    """Ends the report, with a message and status 1."""


def warn(text):
    # A text from a file of results must not steer the terminal.
    text = "".join(c if c.isprintable() or c == "\n" else "?" for c in str(text))
    print(f"nbar-lab report: {text}", file=sys.stderr)


def say(text):
    try:
        print(text, flush=True)
    except OSError as error:
        warn(f"cannot write to stdout: {error.strerror}; make room there, and run this command again")
        os._exit(FAILED)  # a further flush would fail, too


class Parser(argparse.ArgumentParser):
    def error(self, message):
        warn(f"{message}\ntry `nbar-lab report --help`")
        sys.exit(2)


def parse(words):
    parser = Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("dir", nargs="?", type=Path)
    for name in ("--quick", "--thorough", "--render-only", "--list", "--help", "-h"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--mpirun", type=str.split)
    given = parser.parse_args(words)
    if given.help or given.h or given.list:
        return given
    for name in given.only or ():
        if name not in EXPERIMENTS:
            parser.error(f"--only: there is no experiment '{name}'; --list lists them")
    if given.quick and given.thorough:
        parser.error("give only one of --quick and --thorough")
    if given.mpirun == []:
        parser.error("--mpirun: no words")
    if given.render_only and (given.quick or given.thorough or given.only or given.mpirun):
        parser.error("--render-only measures nothing: no --quick, --thorough, --only or --mpirun")
    if not given.dir:
        parser.error("name the folder for the report")
    given.length = 1 if given.quick else 2 if given.thorough else 0
    return given


def command_of(name, length):
    """A command, and the estimated seconds."""
    commands = EXPERIMENTS[name]["commands"]
    return commands[length if length < len(commands) else 0]


def list_all():
    for name, experiment in EXPERIMENTS.items():
        say(f"{name}: {experiment['title']}")
        for i, length in enumerate(LENGTHS):
            command, seconds = command_of(name, i)
            say(f"    {length}: {command} (about {seconds} s)")
        if experiment.get("mpi"):
            say("    started by mpirun")


def read(path):
    """The results in a file; None: there are none yet. Failure: it cannot be used."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Failure(f"cannot read {path}: it is not a regular file")
            if status.st_size > BYTES_MAX:
                raise Failure(f"cannot read {path}: it is longer than {BYTES_MAX >> 20} MiB")
            text = file.read()
        return nbar.Results(text, str(path)) if text else None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise Failure(str(error)) from None


def cpu_here():
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown")
    except OSError:
        return "unknown"


def check_old(given, name, result, path):
    """Results are of this machine, and of the same command."""
    machine, here = result.about.get("machine"), {"cpu": cpu_here()}
    machine = machine if isinstance(machine, dict) else {}
    if not EXPERIMENTS[name].get("mpi"):  # rank 0 of an MPI program may run on another machine
        here["host"] = os.uname().nodename
    if any(machine.get(key, value) != value for key, value in here.items()):
        raise Failure(f"{path} was measured on another machine ({machine.get('host', '?')}), and this is "
                      f"{os.uname().nodename}: a report cannot have results of two machines; name another folder")
    command = str(result.about.get("command"))
    if command.startswith("nbar") and not f"{command} ".startswith(f"{command_of(name, given.length)[0]} "):
        raise Failure(f"{path} was measured by another command ({command}): run the report with the --quick or "
                      "--thorough that it had, or without both if it had none; or name another folder")


def beside(program, *names):
    """The first of these files, relative to the folder of the program; None: there is none."""
    return next((path for name in names if (path := Path(program).parent / name).exists()), None)


def mpirun():
    return shutil.which("mpirun.openmpi") or shutil.which("mpirun")


def mpi_missing(program):
    if not mpirun():
        return "there is no mpirun here"
    if not beside(program, "nbar-mpi-bench-openmpi", "../libexec/nbar/nbar-mpi-bench-openmpi"):
        return "nbar was built without Open MPI"
    return None


def mpi_words(given, program, environment):
    """The words in front of nbar. Does not change the caller's settings of Open MPI."""
    if given.mpirun:
        return given.mpirun
    component = beside(program, "components/mca_coll_nbar.so", "../lib/openmpi/mca_coll_nbar.so")
    settings = {"OMPI_MCA_coll_nbar_enable": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    if component:  # if it is neither here nor there it is in Open MPI's own folder
        settings["OMPI_MCA_mca_base_component_path"] = f"{component.parent}:SYS_DEFAULT"
    for key, value in settings.items():
        environment.setdefault(key, value)
    # One rank per processor, but at least two: a single rank would wait for no other rank.
    return [mpirun(), "-np", str(min(max(len(os.sched_getaffinity(0)), 2), RANKS_MAX))]


class Stop:
    """SIGINT, SIGTERM and SIGHUP end the running experiment, and then the report."""

    def __init__(self):
        self.seen, self.child = False, None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores it
                signal.signal(number, self)

    def __call__(self, *_):
        self.seen = True
        if self.child:
            self.child.terminate()

    def wait(self, child):
        self.child = child
        if self.seen:
            child.terminate()
        return child.wait()


LIBC = ctypes.CDLL(None)


def die_with_parent():
    LIBC.prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def run_one(given, program, name, stop):
    """Runs an experiment, which writes its files; its table goes to NAME.txt. True: it has not failed."""
    experiment, environment = EXPERIMENTS[name], dict(os.environ)
    file = {suffix: str(given.dir / f"{name}.{suffix}") for suffix in ("json", "csv", "txt")}
    command, *words = command_of(name, given.length)[0].split()
    words = [*(mpi_words(given, program, environment) if experiment.get("mpi") else ()),
             str(Path(program).with_name(command)), *words]
    if "file" in experiment:
        words += [*experiment["file"][:-1], str(given.dir / experiment["file"][-1])]
    words += ["--json", file["json"], "--csv", file["csv"]]
    try:
        with open(file["txt"], "wb") as table:
            status = stop.wait(subprocess.Popen(words, stdout=table, env=environment, preexec_fn=die_with_parent))
    except OSError as error:
        warn(f"cannot run {name}: {error.filename}: {error.strerror}; the other experiments run")
        return False
    if status and not stop.seen:
        how = f"was killed by signal {-status}" if status < 0 else "failed (see above)"
        warn(f"{name} {how}; the other experiments run")
    return status == 0 or stop.seen


def duration(seconds):
    seconds = round(seconds)
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} m {seconds % 60} s" if seconds < 3600 else \
        f"{seconds // 3600} h {seconds // 60 % 60} m"


def to_run(given, program):
    """The wanted experiments that have no result yet."""
    todo, there = [], 0
    for name in [name for name in EXPERIMENTS if not given.only or name in given.only]:
        path = given.dir / f"{name}.json"
        try:
            result = read(path)
        except Failure as failure:
            raise Failure(f"{failure}; nbar did not change it: move it away, or name another folder") from None
        missing = EXPERIMENTS[name].get("mpi") and not given.mpirun and mpi_missing(program)
        if result is not None:
            check_old(given, name, result, path)
            there += 1
        elif missing:
            warn(f"{name} is left out: {missing}; --mpirun says how to start it")
        else:
            todo.append(name)
    if there:
        warn(f"{given.dir} has the results of {there} of these experiments: they are not run again; to do so, remove "
             "their files NAME.json")
    return todo


def run(given, program, stop):
    """Runs the experiments. The measured times of completed ones correct the estimates of the others."""
    todo, good, took, done = to_run(given, program), True, 0.0, 0.0
    for i, name in enumerate(todo):
        left = sum(command_of(other, given.length)[1] for other in todo[i:]) * (took / done if done else 1)
        print(f"{i + 1} of {len(todo)}: {name} (about {duration(left)} left in all)", file=sys.stderr, flush=True)
        begun = time.monotonic()
        good &= run_one(given, program, name, stop)
        if stop.seen:
            return False
        took, done = took + time.monotonic() - begun, done + command_of(name, given.length)[1]
    return good


def open_folder(given):
    """Checks that the folder is writable, before any measurement."""
    what = "made"
    try:
        if not given.render_only and not given.dir.exists():
            given.dir.mkdir()
        what = "looked at"
        is_folder = stat.S_ISDIR(given.dir.stat().st_mode)
    except OSError as error:
        raise Failure(f"the folder {given.dir} cannot be {what}: {error.strerror}; name another: nbar-lab report DIR") from None
    if not is_folder or not os.access(given.dir, os.W_OK | os.X_OK):
        raise Failure(f"the folder {given.dir} cannot be written in: {'Permission denied' if is_folder else 'Not a directory'}; "
                      "name another: nbar-lab report DIR")


def render(given, program, may_be_none):
    """Writes the page from the results in the folder: to another file first, which then replaces the old page."""
    results, good = {}, True
    for name in EXPERIMENTS:
        try:
            results[name] = read(given.dir / f"{name}.json")
        except Failure as failure:
            warn(f"{failure}; it is not on the page: measure it again in another folder")
            good = False
    results = {name: result for name, result in results.items() if result is not None}
    if not results:
        if not may_be_none:
            warn(f"there is no result of an experiment in {given.dir}: run nbar-lab report {given.dir}")
        return may_be_none
    path, new = given.dir / "index.html", given.dir / "index.html.new"
    version = subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    try:
        page = make_page(results, version)
        new.unlink(missing_ok=True)
        with open(new, "x", encoding="utf-8") as file:  # follows no link
            file.write(page)
        new.rename(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise Failure(f"cannot write {path}: {error.strerror}; make room there, then nbar-lab report --render-only "
                      f"{given.dir}") from None
    say(path)
    return good


def main(program, *words):
    given = parse(words)
    if given.help or given.h:
        say(HELP.rstrip("\n"))
        return 0
    if given.list:
        list_all()
        return 0
    try:
        open_folder(given)
        stop = None if given.render_only else Stop()
        good = not stop or run(given, program, stop)
        if stop and stop.seen:
            warn(f"interrupted; {given.dir} keeps the results of completed experiments: to continue, run this command again")
        return 0 if render(given, program, bool(stop and stop.seen)) and good else FAILED
    except Failure as failure:
        warn(failure)
        return FAILED


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.stdout is None:
        sys.exit("nbar-lab report: stdout is closed; redirect it, for example to /dev/null")
    sys.stdout.reconfigure(errors="surrogateescape")
    sys.exit(main(*sys.argv[1:]))
