# SPDX-License-Identifier: BSD-3-Clause
"""The commands of the build, as make -Bn prints them: how to compile an object, and how to link a program.

Used by the script mutants.
"""
import collections
import os
import shlex
import shutil
import subprocess
import tempfile

COMPILERS = ("gcc", "clang", "cc")  # of this machine; objects of other compilers are left out
OTHER_MACHINES = ("/riscv", ".bpf.")  # in the path of an object that no unit test runs


class Build:
    def __init__(self, path, folder):
        self.folder = folder
        self.compile = {}  # object -> words of its command
        self.objects = collections.defaultdict(list)  # source -> objects
        self.members = {}  # archive -> objects
        self.link = {}  # program or shared library -> words of its command
        self.closures = {}
        with open(path) as f:
            for line in f.read().replace("\\\n", " ").splitlines():
                try:
                    self.add(shlex.split(line))
                except ValueError:
                    continue
        self.includers = collections.defaultdict(list)  # header, or source that another includes -> objects
        for object in self.compile:
            for header in self.headers(object):
                self.includers[header].append(object)

    def add(self, word):
        if word[:2] == ["ar", "rcs"]:
            self.members[word[2]] = word[3:]
        if "-o" not in word or "=" in word[0]:
            return
        target = word[word.index("-o") + 1]
        if "-c" not in word:
            self.link[target] = word
        elif not any(m in target for m in OTHER_MACHINES) and os.path.basename(word[0]).startswith(COMPILERS):
            self.compile[target] = word
            self.objects[self.source(target)].append(target)

    def source(self, object):
        word = self.compile[object]
        return word[word.index("-c") + 1]

    def headers(self, object):
        """Those of this tree, from the file that the compiler has written."""
        try:
            with open(object[:-2] + ".d") as f:
                rule = f.read().replace("\\\n", " ").splitlines()[0]
        except OSError:
            return []
        return {os.path.normpath(w) for w in rule.split()[2:] if w.endswith((".h", ".c")) and w[0] != "/"}

    def flags(self, object):
        """Returns the compiler's command and the flags, without the flags that concern the object file."""
        word = self.compile[object]
        first = next(i for i, w in enumerate(word) if w.startswith("-"))
        drop = ("-flto", "-ffat-lto", "-MMD", "-MP", "-g", "-c", "-o")
        last = word.index("-c")
        return word[:first], [w for w in word[first:last] if not w.startswith(drop)]

    def closure(self, program):
        """Returns the objects of a program, with those of its archives."""
        if program not in self.closures:
            found = set()
            for word in self.link.get(program, ()):
                found.update([word] if word.endswith(".o") else self.members.get(word, ()))
            self.closures[program] = found
        return self.closures[program]

    def make(self, object, text, out, overlay, traps):
        """Compiles text as if it were the source of the object. False: it does not compile."""
        compiler, flags = self.flags(object)
        first = ["-iquote", overlay, "-I", overlay] if overlay else []
        folder = os.path.dirname(self.source(object))
        command = [*compiler, *first, *flags, *traps, "-g0", "-Werror=return-type", "-iquote", folder]
        done = subprocess.run([*command, "-x", "c", "-c", "-", "-o", out], input=text, stderr=subprocess.DEVNULL)
        return done.returncode == 0

    def program(self, name, changed, out):
        """Links a program or a library with some objects in the place of others: {object: path of the other}, which has
        the same file name."""
        word = list(self.link[name])
        made = tempfile.mkdtemp(dir=os.path.dirname(out))
        for archive, members in self.members.items():
            new = [path for object, path in sorted(changed.items()) if object in members]
            if archive in word and new:
                copy = os.path.join(made, os.path.basename(archive))
                shutil.copy(archive, copy)
                subprocess.run(["ar", "rs", copy, *new], check=True, stderr=subprocess.DEVNULL)
                word = [copy if w == archive else w for w in word]
        word = [changed.get(w, w) for w in word]
        word[word.index("-o") + 1] = out
        first = next(i for i, w in enumerate(word) if w.endswith((".o", ".a")))
        subprocess.run(word[:first] + ["-fno-lto"] + word[first:], check=True, stderr=subprocess.DEVNULL)
        shutil.rmtree(made)
