#!/usr/bin/env python3
"""Makes one file of the library: OUT-DIR/nrg.c, and OUT-DIR/nrg.h for its users. OUT-DIR/nrg/nrg.h includes the latter, so that with
-I OUT-DIR a program may include <nrg/nrg.h>, as it does with an installed library.

    amalgamate.py OUT-DIR        (scripts/amalgamate.sh is what people call)

What is compiled, with which flags and for which family comes from src/sources.txt; the order of public headers from
include/nrg/nrg.h. Headers of src/ come once, before the first file that includes them, and a path has its own copy of the
templates. Every piece stands in the #if of those that need it, so that the NRG_NO_... definitions leave out what they leave out of
the many files.

Files of src/ have static names that others use, too. Here

- all names of a path begin with avx2_, avx512_, neon_ or generic_;
- of the others, a name that means something else elsewhere begins with its folder and file: calls_norm_make_job;
- macros are forgotten where the file or the path ends.

Prefixes, since what begins with a name is pasted from it: fast_rms and fast_rms_f32 become avx2_fast_rms and avx2_fast_rms_f32. Names
are found by their tokens; members of structs keep theirs, also where a macro pastes them. What this overlooks does not
compile, and scripts/test.sh amalgamation compiles all of it.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC, PUBLIC = ROOT / "src", ROOT / "include/nrg"
# What scalar code, vectors and calls all see, and see once: rooms and files of src/; and what templates include of these others.
CONTRACT, ALSO = {"internal.h", "kernels.h", "paths.h", "job"}, {"exact"}
# The intrinsics of a path, which its vec.h includes.
INTRINSICS = {"x86_64": "immintrin.h", "aarch64": "arm_neon.h"}
# System headers that are included under a condition: before what hides all names that are declared after it.
SOMEWHERE = {"sys/auxv.h": "defined(__aarch64__) && defined(__linux__)"}
ARCHITECTURES = {"x86_64": "defined(__x86_64__)", "aarch64": "defined(__aarch64__)"}

TOKEN = re.compile(r"""\x01(?P<raw>[^\x01]*)\x01|(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<splice>\\\n)|(?P<newline>\n)|(?P<space>[ \t]+)|(?P<string>"(?:\\.|[^"\\\n])*")
|(?P<character>'(?:\\.|[^'\\\n])*')|(?P<name>[A-Za-z_]\w*)|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)|(?P<sign>->|\#\#|\.\.\.|.)""",
                   re.S | re.X)
BLANK = {"comment", "splice", "newline", "space"}
KEYWORDS = set("""auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while _Alignas _Atomic _Bool
_Static_assert __attribute__ __asm__ _Pragma defined offsetof""".split())


class Token:
    __slots__ = ("kind", "text", "directive")

    def __init__(self, kind, text):
        self.kind, self.text, self.directive = kind, text, None


class Macro:
    """What a #define does with its parameters. raw: what is given is a part of a name that is none of the file's: a member's, or
    nrg_<path>_<it>. stems: what names begin with that are made of it, by the rest of these names."""

    def __init__(self, name, parameters, body):
        self.name, self.parameters, self.body = name, parameters, body
        self.raw, self.stems = set(), {}


def without_comment(file):
    return re.sub(r"\A/\*.*?\*/\n", "", file.read_text(), flags=re.S)


def lines_of(call, names):
    """The lines of a description of a call: its own and those of what it includes, without the macros that these two agree on."""
    for line in without_comment(call).splitlines():
        words = line.split()
        if line.startswith("#include"):
            yield from lines_of(call.parent / words[1].strip('"'), names)
        elif line.startswith("#define"):
            names[words[1]] = " ".join(words[2:])
        elif not line.startswith("#undef"):
            yield re.sub(r"\bNRG_[A-Z_]+\b", lambda m: names.get(m[0], m[0]), line)


def described(path):
    """A file's text. A description of a call, which is included for each of its uses (src/operands/describe.h), is a macro that its
    header defines; its words are macros of describe.h. Lists of calls stand where they are included."""
    text, raw = path.read_text(), "\x01{}\x01".format
    if path.name == "describe.h":
        words = without_comment(path.parent / "words.h")
        return text.removesuffix("#endif\n") + raw(words[words.index("#define"):words.index("#else")]) + "\n#endif\n"

    def replace(match):
        name, wrapper = match[2], SRC / "operands" / match[3]
        uses = re.sub(r'^#include "words.h"\n\n?', "", without_comment(wrapper), flags=re.M)
        uses = re.split(r"^#(?:ifndef NRG_MAKE_TABLES|else|endif)\n", uses, flags=re.M)[1 if path.parent == wrapper.parent else 2]
        uses = uses.replace("#include NRG_DEF", raw(f"NRG_DEF_{name}"))
        if path.parent == wrapper.parent:
            lines = " \\\n    ".join(line for line in lines_of(wrapper.parent / f"{name}.def", {}) if line)
            uses = raw(f"#define NRG_DEF_{name} \\\n    {lines}\n") + uses
        return match[1] + uses + "#undef NRG_PASS\n#undef NRG_CALL\n"

    text = re.sub(r'^#include "(?:../operands/)?(\w+_calls.def)"\n', lambda match: without_comment(SRC / "operands" / match[1]), text, flags=re.M)
    return re.sub(r'^(#define NRG_CALL \w+, (\w+)\n)#include "(?:../operands/)?(description\.h)"\n', replace, text, flags=re.M)


class File:
    def __init__(self, path):
        self.path, self.name = path, str(path.relative_to(SRC))
        self.tokens = [Token(m.lastgroup, m[m.lastgroup]) for m in TOKEN.finditer(described(path))]
        self.mark_directives()
        self.cut_guard()
        self.includes = self.find_includes()
        # what a header may be moved across that is included after it
        self.harmless = {d[0] for d in self.directives if self.words(d)[0] in ("include", "if", "ifdef", "ifndef", "endif")}
        self.macros = self.find_macros()
        self.members, self.defined = set(), set()
        self.identifiers = {t.text for t in self.tokens if t.kind == "name"}

    def significant(self, begin=0, end=None):
        return [i for i in range(begin, len(self.tokens) if end is None else end) if self.tokens[i].kind not in BLANK]

    def mark_directives(self):
        """Tokens of a directive know the index of its #; self.directives: (first, past the last), without the end of the line."""
        self.directives, i, fresh = [], 0, True
        while i < len(self.tokens):
            token = self.tokens[i]
            if token.text == "#" and fresh:
                end = i
                while end < len(self.tokens) and self.tokens[end].kind != "newline":
                    self.tokens[end].directive = i
                    end += 1
                self.directives.append((i, end))
                i = end
            else:
                fresh = token.kind == "newline" or (fresh and token.kind in BLANK)
                i += 1

    def words(self, directive):
        return [self.tokens[i].text for i in self.significant(*directive)][1:]

    def cut_guard(self):
        first = [self.words(d) for d in self.directives[:2]]
        self.guarded = (len(first) == 2 and first[0][0] == "ifndef" and first[1][0] == "define" and first[0][1] == first[1][1] and
                        first[0][1].endswith("_H"))
        if self.guarded:
            for begin, end in (self.directives[0], self.directives[1], self.directives[-1]):
                for token in self.tokens[begin:end + 1]: # with the end of the line
                    token.kind, token.text, token.directive = "space", "", None
            del self.directives[:2], self.directives[-1]

    def find_includes(self):
        """{index of #: (what, the #if around it as (directive's words, ...))}"""
        found, around = {}, []
        for directive in self.directives:
            words = self.words(directive)
            if words[0] in ("if", "ifdef", "ifndef"):
                around.append((words,))
            elif words[0] in ("elif", "else"):
                around[-1] += (words,)
            elif words[0] == "endif":
                around.pop()
            elif words[0] == "include":
                found[directive[0]] = ("".join(words[1:]), tuple(around))
        return found

    def find_macros(self):
        macros = []
        for begin, end in self.directives:
            at = self.significant(begin, end)
            if len(at) < 3 or self.tokens[at[1]].text != "define":
                continue
            name, parameters, body = self.tokens[at[2]].text, None, at[3:]
            if body and body[0] == at[2] + 1 and self.tokens[body[0]].text == "(": # no blank between
                close = next(i for i, k in enumerate(body) if self.tokens[k].text == ")")
                parameters = [self.tokens[k].text for k in body[1:close] if self.tokens[k].text != ","]
                body = body[close + 1:]
            macros.append(Macro(name, parameters, [self.tokens[k].text for k in body]))
        return macros

    # ---- what it declares ----

    def find_members(self):
        """Indices of the names that members of structs and unions have in their declarations."""
        streams = [self.significant(*d) for d in self.directives]
        streams.append([i for i in self.significant() if self.tokens[i].directive is None])
        for at in streams:
            text = [self.tokens[i].text for i in at]
            nest = [] # of braces: whether it is a struct's
            inner = 0 # parentheses and brackets within
            for k, token in enumerate(text):
                if token == "{":
                    head = text[max(0, k - 2):k]
                    nest.append(("struct" in head or "union" in head, inner))
                    inner = 0
                elif token == "}" and nest:
                    inner = nest.pop()[1]
                elif token in "([":
                    inner += 1
                elif token in ")]":
                    inner -= 1
                elif nest and nest[-1][0] and self.tokens[at[k]].kind == "name" and k + 1 < len(text):
                    pointer = text[k - 2:k] == ["(", "*"] and text[k + 1] == ")"
                    if pointer or (inner == 0 and text[k + 1] in (";", ",", "[", ":")):
                        self.members.add(at[k])

    def find_defined(self, macros):
        """Names of file scope: functions, objects, types, tags, enumerators; and what a macro defines outside of functions."""
        at = [i for i in self.significant() if self.tokens[i].directive is None]
        text, kind = [self.tokens[i].text for i in at], [self.tokens[i].kind for i in at]
        k, start = 0, 0 # start of the declaration
        while k < len(text):
            token = text[k]
            if token in ("__attribute__", "_Static_assert", "__asm__", "_Pragma"):
                k = self.skip(text, k + 1)
                continue
            if token == "enum":
                body = k + 1
                if kind[body] == "name":
                    if text[body + 1] == "{":
                        self.defined.add(text[body])
                    body += 1
                if body < len(text) and text[body] == "{":
                    k = self.enumerators(text, body)
                    continue
            elif token in ("struct", "union") and kind[k + 1] == "name":
                if text[k + 2] == "{":
                    self.defined.add(text[k + 1])
                k += 1
            elif token == "{":
                function = text[k - 1] == ")" # and no initializer, and no struct's body
                k = self.skip(text, k)
                if function:
                    start = k
                continue
            elif token == "=": # an initializer
                while text[k] not in (",", ";"):
                    k = self.skip(text, k) if text[k] in "([{" else k + 1
                continue
            elif token == ";":
                start = k + 1
            elif kind[k] == "name" and token not in KEYWORDS and k + 1 < len(text):
                if token in macros and macros[token][0].parameters is not None and text[k + 1] == "(":
                    end = self.skip(text, k + 1)
                    for argument, parameter in self.arguments(text, k + 1, macros[token][0]):
                        uses = macros[token][0].body
                        if len(argument) == 1 and parameter not in macros[token][0].raw and re.match(r"[A-Za-z_]", argument[0]) and any(
                                u == parameter and uses[n + 1:n + 2] in (["("], ["##"]) for n, u in enumerate(uses)):
                            self.defined.add(argument[0])
                    k = start = end # such an invocation is a declaration of its own
                    continue
                if token not in macros and text[k + 1] in ("(", "[", ";", ",", "=") or (
                        text[k + 1:k + 2] == ["__attribute__"] and "typedef" in text[start:k]):
                    if k > start:
                        self.defined.add(token)
                    if text[k + 1] in "([":
                        k = self.skip(text, k + 1)
                        continue
            elif token in "([":
                k = self.skip(text, k)
                continue
            k += 1

    def enumerators(self, text, k):
        end = self.skip(text, k)
        depth = 0
        for n in range(k + 1, end - 1):
            depth += (text[n] in "([{") - (text[n] in ")]}")
            if depth == 0 and text[n - 1] in ("{", ",") and re.match(r"[A-Za-z_]", text[n]):
                self.defined.add(text[n])
        return end

    @staticmethod
    def skip(text, k):
        """Past what the bracket at k is closed by."""
        depth = 0
        while k < len(text):
            depth += (text[k] in ("(", "[", "{")) - (text[k] in (")", "]", "}"))
            k += 1
            if depth == 0:
                break
        return k

    @staticmethod
    def arguments(text, k, macro):
        """(tokens, parameter) of the invocation whose parenthesis is at k."""
        found, current, depth = [], [], 0
        for token in text[k + 1:File.skip(text, k) - 1]:
            depth += (token in ("(", "[", "{")) - (token in (")", "]", "}"))
            if token == "," and depth == 0 and len(found) + 1 < len(macro.parameters):
                found.append(current)
                current = []
            else:
                current.append(token)
        found.append(current)
        return list(zip(found, macro.parameters))


def study_macros(macros):
    """Which parameters are parts of other names: over and over, since macros hand theirs on."""
    everything = [macro for several in macros.values() for macro in several if macro.parameters]
    while True:
        before = sum(len(m.raw) + sum(map(len, m.stems.values())) for m in everything)
        for macro in everything:
            text, given = macro.body, raw_positions(macro.body, macros)
            for k, token in enumerate(text):
                if token not in macro.parameters:
                    continue
                begin = k
                while begin >= 2 and text[begin - 1] == "##":
                    begin -= 2
                if begin != k or k in given or (k and text[k - 1] in (".", "->", "#")):
                    macro.raw.add(token)
                elif text[k + 1:k + 2] == ["##"]:
                    rest, n = "", k
                    while text[n + 1:n + 2] == ["##"]:
                        n += 2
                        rest += r"\w*" if text[n] in macro.parameters else text[n]
                    macro.stems.setdefault(token, set()).add(rest)
            for k, token in enumerate(text): # handed on
                for other in macros.get(token, ()):
                    if other.parameters and text[k + 1:k + 2] == ["("]:
                        for argument, parameter in File.arguments(text, k + 1, other):
                            if len(argument) == 1 and argument[0] in macro.parameters and parameter in other.stems:
                                macro.stems.setdefault(argument[0], set()).update(other.stems[parameter])
        for macro in everything:
            for parameter in macro.raw & macro.stems.keys():
                del macro.stems[parameter]
        if before == sum(len(m.raw) + sum(map(len, m.stems.values())) for m in everything):
            return


def raw_positions(text, macros):
    """Indices of what is given to raw parameters, or names a member."""
    found = set()
    for k, token in enumerate(text):
        if text[k + 1:k + 2] != ["("]:
            continue
        wanted = [Macro("offsetof", ["type", "member"], [])] if token == "offsetof" else macros.get(token, ())
        for macro in wanted:
            if not macro.parameters:
                continue
            raw = {"member"} if token == "offsetof" else macro.raw
            n = k + 2
            for argument, parameter in File.arguments(text, k + 1, macro):
                if parameter in raw:
                    found.update(range(n, n + len(argument)))
                n += len(argument) + 1
    return found


# ---- conditions: sets of sets of words, one of which has to be there as a whole; a word is a family, or `backward` ----

ALWAYS = frozenset([frozenset()])


def either(a, b):
    both = a | b
    return frozenset(words for words in both if not any(other < words for other in both))


def both(a, b):
    return either(frozenset(x | y for x in a for y in b), frozenset())


def as_text(condition):
    if condition == ALWAYS:
        return None
    common = frozenset.intersection(*condition)
    has = lambda words: " && ".join(f"!defined(NRG_NO_{w.upper()})" for w in sorted(words))
    rest = sorted(has(words - common) for words in condition)
    parts = [has(common)] if common else []
    if rest != [""]:
        text = " || ".join(f"({r})" if " && " in r and len(rest) > 1 else r for r in rest)
        parts.append(f"({text})" if parts and len(rest) > 1 else text)
    return " && ".join(parts)


class Group:
    """What is compiled with one set of options: its .c files, and the headers they include."""

    def __init__(self, units, shared, prefix=None):
        """units: {name: condition}; shared: groups whose headers are not this one's; prefix: of all names."""
        self.units, self.shared, self.prefix = units, shared, prefix
        self.files, self.reach, self.conditions = {}, {}, {}
        for unit in units:
            self.load(unit)
        for unit, condition in units.items():
            self.need(unit, condition)
        # what a file may know: of a path all, since its files are compiled as one; else what it includes
        self.macros = {}
        everything = self.macros_of(self.files) if prefix else None
        for name, file in self.files.items():
            self.macros[name] = everything or self.macros_of(self.closure(name))
            file.find_members()
            file.find_defined(self.macros[name])
        self.renamed = self.find_renamed()

    def macros_of(self, names):
        macros = {}
        for file in [f for group in self.shared for f in group.files.values()] + [self.files[n] for n in self.files if n in names]:
            for macro in file.macros:
                macros.setdefault(macro.name, []).append(macro)
        study_macros(macros)
        return macros

    def owner(self, name):
        return next((group for group in [self, *self.shared] if name in group.files), None)

    def target(self, file, what):
        """The name of an included file of src/, or None."""
        if not what.startswith('"'):
            return None
        path = (file.path.parent / what.strip('"')).resolve()
        return str(path.relative_to(SRC)) if path.is_relative_to(SRC) else None

    def load(self, name):
        if self.owner(name):
            return
        file = File(SRC / name)
        self.files[name] = file
        for what, _ in file.includes.values():
            target = self.target(file, what)
            if target:
                self.load(target)

    def closure(self, name):
        if name not in self.reach:
            self.reach[name] = {name}
            for what, _ in self.files[name].includes.values():
                target = self.target(self.files[name], what)
                if target in self.files:
                    self.reach[name] |= self.closure(target)
        return self.reach[name]

    def need(self, name, condition):
        """This file, and what it includes, where the condition holds."""
        now = either(self.conditions.get(name, frozenset()), condition)
        if now == self.conditions.get(name):
            return
        self.conditions[name] = now
        for what, around in self.files[name].includes.values():
            target = self.target(self.files[name], what)
            if target in self.files:
                where = now
                if not self.files[target].guarded: # it stays where it is
                    around = ()
                for branches in around:
                    words = branches[0]
                    if len(branches) > 1 or words[0] != "ifndef" or not words[1].startswith("NRG_NO_"):
                        sys.exit(f"{name}: {what} is included under a condition that is not a family's")
                    where = both(where, frozenset([frozenset([words[1].removeprefix("NRG_NO_").lower()])]))
                self.need(target, where)

    # ---- names ----

    def find_renamed(self):
        """{file: {name: its name here}}. What a unit sees under a name is one thing; two units may have two."""
        defined = {name: file.defined - KEYWORDS - self.macros[name].keys() for name, file in self.files.items()}
        seen_by = {name: {u for u in self.units if name in self.closure(u)} for name in self.files}
        meanings = {} # name: [files that define one thing]
        for unit in self.units:
            here = {}
            for file in self.closure(unit):
                for name in defined[file]:
                    here.setdefault(name, set()).add(file)
            for name, files in here.items():
                together = [m for m in meanings.get(name, ()) if m & files]
                meanings[name] = [m for m in meanings.get(name, ()) if not m & files] + [files.union(*together)]
        if self.prefix: # what macros paste, wherever it is
            stems = self.find_stems()
            for name in set().union(*(f.identifiers for f in self.files.values())) - meanings.keys():
                if name not in self.macros[next(iter(self.files))] and stems.fullmatch(name):
                    meanings[name] = [set(self.files)]
        renamed = {name: {} for name in self.files}
        for file in self.files:
            for name in self.files[file].identifiers & meanings.keys():
                several = meanings[name]
                # its own, or of what it includes; else of what is included before it
                means = [m for m in several if m & self.closure(file)]
                means = means or [m for m in several if any(m & self.closure(u) for u in seen_by[file])]
                if len(means) > 1 and file in means[0] | means[1]:
                    sys.exit(f"{file}: {name} has two meanings")
                if len(means) == 1:
                    new = self.new_name(name, means[0], len(several) == 1)
                    if new != name:
                        renamed[file][name] = new
        return renamed

    def new_name(self, name, files, alone):
        if self.prefix and alone:
            return f"{self.prefix}_{name}"
        if alone or name.startswith("nrg_") and not self.prefix:
            return name
        first = pathlib.PurePath(min(files, key=lambda f: (len(self.closure(f)), f)))
        return "_".join([self.prefix, first.stem, name] if self.prefix else [*first.parts[:-1], first.stem, name])

    def find_stems(self):
        """A pattern for names that macros paste, and for what they paste them from."""
        stems = {}
        for name, file in self.files.items():
            text = [file.tokens[i].text for i in file.significant()]
            parameters = {p for m in file.macros for p in m.parameters or ()}
            for k, token in enumerate(text):
                for macro in self.macros[name].get(token, ()):
                    if macro.parameters and text[k + 1:k + 2] == ["("]:
                        for argument, parameter in File.arguments(text, k + 1, macro):
                            if parameter in macro.stems and len(argument) == 1 and argument[0] not in parameters:
                                stems.setdefault(argument[0], set()).update(macro.stems[parameter])
                # bias_sum_rows_##name
                if text[k + 1:k + 2] == ["##"] and re.fullmatch(r"[a-z]\w*_", token) and not token.startswith("nrg_") and (
                        text[k - 1] not in (".", "->", "##")):
                    stems.setdefault(token, set()).add(r"\w*")
        return re.compile("|".join(f"{re.escape(stem)}(?:{'|'.join(sorted(rests))})?" for stem, rests in sorted(stems.items())) or "(?!)")

    def text_of(self, name, begin, end):
        """The tokens from begin to end, under the names they have here."""
        file, names = self.files[name], self.renamed[name]
        if not hasattr(file, "kept"):
            at = file.significant()
            text = [file.tokens[i].text for i in at]
            file.kept = {at[k] for k in raw_positions(text, self.macros[name])} | file.members
            file.kept |= {i for k, i in enumerate(at) if k and text[k - 1] in (".", "->")}
        out = []
        for i in range(begin, end):
            token = file.tokens[i]
            out.append(names[token.text] if token.kind == "name" and token.text in names and i not in file.kept else token.text)
        return "".join(out)

    def check_macros(self):
        """A macro of one file must not be an identifier of another that does not know it, unless the file ends its life."""
        ended = {n: {f.words(d)[1] for d in f.directives if f.words(d)[0] == "undef"} for n, f in self.files.items()}
        for name, file in self.files.items():
            known = set().union(*(self.closure(u) for u in self.units if name in self.closure(u)))
            for other, macros in ((o, f.macros) for o, f in self.files.items() if o not in known and o not in self.units):
                clash = file.identifiers & ({m.name for m in macros} - ended[other])
                if clash:
                    sys.exit(f"{name}: {sorted(clash)} are macros of {other}")


class Writer:
    """Pieces, each under its condition."""

    def __init__(self):
        self.pieces, self.done = [], set()

    def add(self, condition, text):
        if not text.strip():
            return
        if self.pieces and self.pieces[-1][0] == condition:
            self.pieces[-1][1] += text
        else:
            self.pieces.append([condition, text])

    def text(self):
        out = []
        for condition, text in self.pieces:
            where = as_text(condition)
            text = text.strip("\n") + "\n"
            out.append(text if not where else f"#if {where}\n{text}#endif\n")
        self.pieces = []
        return "\n".join(out)

    def file(self, group, name):
        """A file, after the headers that it includes and that are not there yet."""
        if name in self.done:
            return
        self.done.add(name)
        file, condition = group.files[name], group.conditions[name]
        text, begin, open_ifs, has_code = f"\n/* ---- src/{name} ---- */\n\n", 0, 0, False
        for first, end in file.directives:
            word = file.words((first, end))[0]
            open_ifs += (word in ("if", "ifdef", "ifndef")) - (word == "endif")
            if word != "include":
                continue
            what, around = file.includes[first]
            target = group.target(file, what)
            if what.startswith("<") and around and not group.prefix:
                continue # <cpuid.h>: stays where it is
            has_code = has_code or any(t.kind not in BLANK and t.directive not in file.harmless for t in file.tokens[begin:first])
            text += group.text_of(name, begin, first)
            begin = end + 1
            owner = target and group.owner(target)
            if not target or owner.files[target].guarded and (owner is not group or target in self.done):
                continue
            if not owner.files[target].guarded:
                text += self.expanded(owner, target)
            elif not has_code:
                self.file(group, target)
            elif open_ifs:
                sys.exit(f"{name}: {what} is included under a condition, and after something else")
            else: # which this header is to see
                self.add(condition, text)
                self.file(group, target)
                text, has_code = f"\n/* ---- src/{name}, continued ---- */\n\n", False
        text += group.text_of(name, begin, len(file.tokens))
        self.add(condition, text)
        if name.endswith(".c") and not group.prefix:
            self.add(condition, undefine([file]))

    @staticmethod
    def expanded(group, name):
        """A file that is included for each of something, and includes nothing that is not there."""
        file, begin, text = group.files[name], 0, ""
        for first, end in file.directives:
            if first in file.includes:
                text += group.text_of(name, begin, first)
                begin = end + 1
        return text + group.text_of(name, begin, len(file.tokens))


def undefine(files):
    names = []
    for file in files:
        for macro in file.macros:
            if macro.name not in names:
                names.append(macro.name)
    return "".join(f"#undef {name}\n" for name in names)


# ---- the two files ----

def read_list():
    parts, paths = [], {}
    for line in (SRC / "sources.txt").read_text().splitlines():
        words = line.split()
        if not words or words[0] == "#" or line.startswith("#"):
            continue
        if words[0] == "path":
            paths[words[1]] = (words[2], words[3:])
        else:
            condition = ALWAYS if words[0] == "always" else frozenset([frozenset(words[0].split("+"))])
            parts.append((words[1], condition, words[2:]))
    return parts, paths


def path_condition(path):
    """As src/paths.h has it."""
    text = (SRC / "paths.h").read_text()
    return re.search(rf"^#if (.*)\n#define NRG_WITH_{path.upper()}\(\.\.\.\) __VA_ARGS__", text, re.M)[1]


def version():
    text = (PUBLIC / "base.h").read_text()
    return ".".join(re.search(rf"^#define NRG_VERSION_{part} (\d+)", text, re.M)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def heading(name, what):
    licence = (ROOT / "LICENSE").read_text().rstrip()
    lines = [f"{name}: nrg {version()}, {what}", "Made by scripts/amalgamate.sh of nrg's source tree, where changes belong.", "",
             "SPDX-License-Identifier: MIT", "", *licence.splitlines()]
    return "/*" + "".join(f" {line}".rstrip() + "\n *" for line in lines).rstrip("\n *") + " */\n"


def public_header():
    done, out = set(), []

    def add(name):
        if name in done:
            return
        done.add(name)
        text = (PUBLIC / name).read_text()
        for other in re.findall(r'^#include "(.*)"', text, re.M):
            add(other)
        out.append(re.sub(r'^#include ".*"\n', "", text, flags=re.M))

    add("nrg.h")
    if done != {p.name for p in PUBLIC.iterdir()}:
        sys.exit("include/nrg/nrg.h does not include all of include/nrg")
    return heading("nrg.h", "its public headers in one.") + "\n" + "\n".join(out)


def aligned(text):
    """The ends of lines that a macro goes on after, in one column again, as far as there is room."""
    return re.sub(r"^(.*?) *\\$", lambda m: f"{m[1]:<128} \\", text, flags=re.M)


def squeezed(text):
    return re.sub(r"\n{3,}", "\n\n", text)


BEGIN = """
/* Every function here, and those of the intrinsics: a*b + c is two roundings, whatever the command line says. gcc heeds no standard
 * pragma and fuses by default; clang fuses by default within an expression, and with -ffp-contract=fast whatever is here. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off", "no-math-errno")
#endif
"""


def contract_headers():
    names = {str(p.relative_to(SRC)) for p in SRC.rglob("*.h") if p.relative_to(SRC).parts[0] in CONTRACT}
    for template in (SRC / "template").rglob("*.h"):
        names |= {f"{room}/{file}" for room, file in re.findall(r'^#include "(?:\.\./)+(\w+)/(\w+\.h)"', template.read_text(), re.M)
                  if room in ALSO}
    return sorted(names)


def target_options(flags):
    return ",".join(flag.removeprefix("-m") for flag in flags)


def source():
    parts, paths = read_list()
    core, units = {}, {}
    for kind, condition, files in parts:
        for file in files:
            if kind == "core":
                core[file] = condition
            if kind == "paths":
                core[f"scalar/{file}"] = condition
            if kind != "core":
                units[file] = condition
    core = {"cpu.c": ALWAYS, **core}
    contract = Group({name: ALWAYS for name in contract_headers()}, [])
    groups = {path: Group({f"{path}/{file}": condition for file, condition in units.items()}, [contract], path) for path in paths}
    base = Group(core, [contract])

    system = {}
    for group in [contract, base, *groups.values()]:
        for file in group.files.values():
            for what, around in file.includes.values():
                header = what.strip("<>")
                if what.startswith("<") and header not in INTRINSICS.values() and (not around or group.prefix):
                    system[header] = None
        group.check_macros()
    out = [heading("nrg.c", "its library in one file.").rstrip(), BEGIN]
    out.append("".join(f"#include <{header}>\n" for header in sorted(system)))
    for architecture, header in INTRINSICS.items():
        out.append(f"#if {ARCHITECTURES[architecture]}\n#include <{header}>\n#endif\n")
    for header, condition in SOMEWHERE.items():
        out.append(f"#if {condition}\n#include <{header}>\n#endif\n")
    out.append('#include "nrg.h"\n')
    out.append("/* What is not the public API is nobody's outside of a shared library. */\n"
               "#if defined(__GNUC__) && !defined(_WIN32)\n#pragma GCC visibility push(hidden)\n#endif\n")
    writer = Writer()
    for name in contract.files:
        if contract.files[name].guarded:
            writer.file(contract, name)
    out.append(writer.text())
    for path, group in groups.items():
        flags = paths[path][1]
        out.append(f"/* ==== the path {path} ==== */\n\n#if {path_condition(path)}\n")
        if flags:
            options = target_options(flags)
            plain = target_options(f for f in flags if "=" not in f)
            out.append(f'#if defined(__clang__)\n#pragma clang attribute push(__attribute__((target("{plain}"))), apply_to = function)\n'
                       f'#else\n#pragma GCC push_options\n#pragma GCC target("{options}")\n#endif\n')
        writer = Writer()
        for name in group.units:
            writer.file(group, name)
        out.append(writer.text())
        out.append(undefine(group.files.values()))
        if flags:
            out.append("#if defined(__clang__)\n#pragma clang attribute pop\n#else\n#pragma GCC pop_options\n#endif\n")
        out.append("#endif\n")
    out.append("/* ==== the path scalar, and what chooses and calls a path ==== */\n")
    writer = Writer()
    for name in base.units:
        writer.file(base, name)
    out.append(writer.text())
    out.append("#if defined(__GNUC__) && !defined(_WIN32)\n#pragma GCC visibility pop\n#endif\n")
    return aligned(squeezed("\n".join(out)))


FORWARD = """/* nrg/nrg.h: lets programs of the one-file library include <nrg/nrg.h>.
 *
 * SPDX-License-Identifier: MIT */
#include "../nrg.h"
"""


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: amalgamate.py OUT-DIR")
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name, text in (("nrg.c", source()), ("nrg.h", public_header()), ("nrg/nrg.h", FORWARD)):
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text(text)
    lines = {name: (out / name).read_text().count("\n") for name in ("nrg.c", "nrg.h")}
    print(f"{out}: nrg.c, {lines['nrg.c']} lines, and nrg.h, {lines['nrg.h']} lines")


main()
