# SPDX-License-Identifier: BSD-3-Clause
"""Finds the mutants of a C source: standard operators, applied to the syntax tree that clang prints.

Called by the script mutants. Reads sources and writes nothing. A mutant is one changed piece of text.
Text that a macro produces is not changed, except for its arguments in the source.
"""
import json
import os
import re
import subprocess
from dataclasses import dataclass

RELATION = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&"}
ORDER = re.compile(r"__ATOMIC_(ACQUIRE|RELEASE|ACQ_REL|SEQ_CST)\b")
NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]*$")
EXPRESSION = {"CallExpr", "CompoundAssignOperator", "BinaryOperator", "UnaryOperator"}
JUMP = {"BreakStmt", "ContinueStmt", "ReturnStmt", "GotoStmt"}

# Some mutants have no effect, wherever they are. The finder leaves them out:
# - The order of the first two arguments has no effect on the result of these functions, or only on the sign of a result
#   that the sources compare with 0.
SYMMETRIC = {"calloc", "strcmp", "strncmp", "memcmp", "__builtin_memcmp", "same", "least", "smaller"}
# - These calls, and the second argument of __builtin_expect, are hints to the processor or to the compiler.
HINTS = {"order_pause"}
# - If a and b are equal, `if (a < b) a = b;`, `a < b ? a : b`, and `a < b ? b - a : 0` do the same as with <=.
BOUND = {"<", "<=", ">", ">="}
EFFECT = re.compile(r"\w\s*\(|\+\+|--")  # a call, ++ or --


@dataclass(frozen=True, order=True)
class Mutant:
    file: str
    begin: int  # of the piece of text, in bytes
    end: int
    text: str  # the new text
    operator: str


class Source:
    """A file of the tree."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()

    def line_of(self, offset):
        return self.data.count(b"\n", 0, offset) + 1

    def text(self, begin, end):
        return self.data[begin:end].decode()

    def after_call(self, offset):
        """The end of the arguments of a macro whose name ends at offset; offset, if it has no arguments."""
        at = offset
        while self.data[at : at + 1].isspace():
            at += 1
        if self.data[at : at + 1] != b"(":
            return offset
        depth = 0
        for at in range(at, len(self.data)):
            depth += {40: 1, 41: -1}.get(self.data[at], 0)
            if depth == 0:
                return at + 1
        return offset


def add_files(node, current=None):
    """Adds the name of the file to all places: clang prints it only where it differs from the place before."""
    if isinstance(node, list):
        for item in node:
            current = add_files(item, current)
    elif isinstance(node, dict):
        if "offset" in node:
            current = node.setdefault("file", current)
        for item in node.values():
            if isinstance(item, (dict, list)):
                current = add_files(item, current)
    return current


class Finder:
    """Collects the mutants of one translation unit."""

    def __init__(self, sources):
        self.sources = sources  # path -> Source
        self.found = set()
        self.bounds = set()  # id() of relations where equal values make no difference
        self.file = None

    def place(self, loc, is_end):
        """Returns (offset, True if the body of a macro made it); None: not in the file of the function."""
        macro = False
        if "expansionLoc" in loc:
            argument = loc["expansionLoc"].get("isMacroArgExpansion")
            in_file = argument and loc["spellingLoc"].get("file") == self.file
            macro = not in_file
            loc = loc["spellingLoc" if in_file else "expansionLoc"]
        if loc.get("file") != self.file or "offset" not in loc:
            return None
        offset = loc["offset"]
        if is_end:
            offset += loc["tokLen"]
            if macro:
                offset = self.sources[self.file].after_call(offset)
        return offset, macro

    def span(self, node):
        """Returns (begin, end, True if the body of a macro made one of them), or None."""
        piece = node.get("range", {})
        begin = self.place(piece.get("begin", {}), False)
        end = self.place(piece.get("end", {}), True)
        if begin is None or end is None or begin[0] >= end[0]:
            return None
        return begin[0], end[0], begin[1] or end[1]

    def add(self, begin, end, text, operator):
        if self.sources[self.file].text(begin, end) != text:
            self.found.add(Mutant(self.file, begin, end, text, operator))

    def negate(self, condition):
        piece = self.span(condition)
        if piece:
            old = self.sources[self.file].text(piece[0], piece[1])
            self.add(piece[0], piece[1], f"!({old})", "condition negated")

    def delete(self, statement):
        kind = statement.get("kind")
        piece = self.span(statement)
        if not piece or kind not in EXPRESSION | JUMP:
            return
        data = self.sources[self.file].data
        end = piece[1]
        while data[end : end + 1].isspace():
            end += 1
        if data[end : end + 1] != b";":
            return
        name = callee(statement)
        if kind == "CallExpr" and name in HINTS:
            return
        lock = kind == "CallExpr" and "lock" in name
        self.add(piece[0], end + 1, ";", "lock removed" if lock else "statement deleted")

    def plain(self, node):
        """Returns the text of an expression without spaces; None: it has no text, or has an effect."""
        piece = self.span(node)
        text = piece and "".join(self.sources[self.file].text(*piece[:2]).split())
        return None if not text or EFFECT.search(text) else text

    def if_equal(self, choice, operands):
        """Returns the value of an expression when the operands are equal: "operand", "0", or None: another value."""
        text = self.plain(choice)
        if text in operands:
            return "operand"
        if text == "0" or (is_binary(choice, "-") and {self.plain(n) for n in choice["inner"]} == operands):
            return "0"
        return None

    def note_bound(self, condition, choices):
        """Notes a relation if it chooses between two expressions, by ?: or by one assignment, that are the same if the
        operands of the relation are equal."""
        if len(choices) == 1 and is_binary(choices[0], "="):
            choices = choices[0]["inner"]
        if len(choices) == 2 and any(is_binary(condition, o) for o in BOUND):
            operands = {self.plain(n) for n in condition["inner"]}
            same = {self.if_equal(c, operands) for c in choices}
            if None not in operands | same and len(same) == 1:
                self.bounds.add(id(condition))

    def relation(self, node, whole):
        left, right = (self.span(n) for n in node["inner"])
        old = node["opcode"]
        # In a whole condition, negate() already changes == and !=.
        if not left or not right or id(node) in self.bounds or (whole and old in ("==", "!=")):
            return
        between = self.sources[self.file].text(left[1], right[0])
        if between.count(old) == 1 and not re.search(r"[^\s()&|<>=!]", between):
            begin = left[1] + between.index(old)
            self.add(begin, begin + len(old), RELATION[old], "relation changed")

    def constant(self, node):
        piece = self.span(node)
        if not piece or piece[2]:
            return
        old = self.sources[self.file].text(piece[0], piece[1])
        if NUMBER.match(old):
            self.add(piece[0], piece[1], f"({old} + 1)", "constant + 1")
            self.add(piece[0], piece[1], f"({old} - 1)", "constant - 1")

    def swap(self, call):
        arguments = call["inner"][1:]
        if callee(call) in SYMMETRIC:
            arguments = arguments[1:]
        for a, b in zip(arguments, arguments[1:]):
            first, second = self.span(a), self.span(b)
            if not first or not second or first[1] > second[0]:
                continue
            if a["type"]["qualType"] != b["type"]["qualType"]:
                continue
            source = self.sources[self.file]
            one, between, two = (
                source.text(*first[:2]),
                source.text(first[1], second[0]),
                source.text(*second[:2]),
            )
            self.add(first[0], second[1], two + between + one, "arguments swapped")

    def walk(self, node, whole=False):
        kind = node.get("kind")
        inner = [n if isinstance(n, dict) else {} for n in node.get("inner", [])]
        condition = None
        bodies = []
        if kind == "CompoundStmt":
            bodies = inner
        elif kind in ("IfStmt", "WhileStmt"):
            condition, bodies = inner[0], inner[1:]
        elif kind == "DoStmt":
            condition, bodies = inner[1], inner[:1]
        elif kind == "ForStmt":
            condition, bodies = inner[2], inner[4:]
        elif kind == "ConditionalOperator":
            condition = inner[0]
        elif kind in ("CaseStmt", "DefaultStmt", "LabelStmt"):
            bodies = inner[-1:]
        elif kind == "BinaryOperator" and node["opcode"] in RELATION:
            self.relation(node, whole)
        elif kind == "IntegerLiteral":
            self.constant(node)
        elif kind == "CallExpr":
            self.swap(node)
            if callee(node) == "__builtin_expect":
                inner = inner[:-1]
        for body in bodies:
            self.delete(body)
        if condition:
            self.negate(condition)
            if kind in ("IfStmt", "ConditionalOperator"):
                self.note_bound(condition, bodies or inner[1:])
        for child in inner:
            self.walk(child, child is condition)

    def function(self, node):
        self.file = node["loc"].get("file") or node["loc"].get("expansionLoc", {}).get("file")
        if self.file not in self.sources or not any(
            n.get("kind") == "CompoundStmt" for n in node.get("inner", [])
        ):
            return
        self.walk(node)
        piece = self.span(node)
        if piece:
            for m in ORDER.finditer(self.sources[self.file].text(piece[0], piece[1])):
                self.add(piece[0] + m.start(), piece[0] + m.end(), "__ATOMIC_RELAXED", "memory order weakened")


def is_binary(node, opcode):
    return node.get("kind") == "BinaryOperator" and node["opcode"] == opcode


def callee(node):
    """Returns the name of the called function, or an empty text."""
    while node.get("inner"):
        node = node["inner"][0]
        if node.get("kind") == "DeclRefExpr":
            return node["referencedDecl"].get("name", "")
    return ""


def mutants(unit, flags, files):
    """Returns the mutants of `files` (paths of the tree) in the translation unit `unit`."""
    command = ["clang", *flags, "-w", "-fsyntax-only", "-Xclang", "-ast-dump=json", unit]
    # A compiler that is ccache would answer with the tree of another file.
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    dump = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment).stdout
    tree = json.loads(dump)
    add_files(tree)
    finder = Finder({path: Source(path) for path in files if os.path.exists(path)})
    for node in tree["inner"]:
        if node.get("kind") == "FunctionDecl":
            finder.function(node)
    return finder.found
