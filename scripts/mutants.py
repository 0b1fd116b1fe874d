"""scripts/mutants.sh, once everything is installed: makes small wrong changes, and tells which of them the suites notice.

A mutant is one operator at one place of one file. Operators go in turn, and take the files in an order that a hash makes, those
that had the fewest mutants first; in a file, the place that a hash says, and from there on the next. A place counts if what comes
of it compiles to other code than the original.

SPDX-License-Identifier: MIT"""

import argparse
import collections
import fnmatch
import glob
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys

MUTANTS = 88  # in all; those of an operator are of different files
ROUNDS = 4
TRIES = 6  # places of a file, until one counts
LEAST = 80
SKIPPED = 77  # what a test's program returns that this CPU cannot run
SHARE = 0.95

# What is changed: folders and files, and names that are not there are no matter. Of the paths only AVX2's is, which any machine
# can run that runs this.
FILES = [
    "src/calls", "src/operands", "src/exact", "src/scalar", "src/template", "src/avx2/vec.h",
    "src/dispatch.c", "src/cpu.c",
]

# With --norm, --calls and --templates: files, each built for one path, which is quick to compile, and suites that their mutants
# meet with those of the file's family: so many seconds of the quickest of them.
PARTS = {
    "norm": ({"src/template/norm": "avx2", "src/generic/vec.h": "generic"}, ("vec", "fences")),
    "calls": ({"src/calls": "generic", "src/operands": "generic", "src/job": "generic"}, ("calls",)),
    "templates": ({"src/template/[!n]*": "avx2"}, ("fences",)),
}
PART_MUTANTS = 200
PART_LEAST = 3  # of a file
PART_SECONDS = 20
PART_SAME = 0.1  # that may change no result
LINK_SECONDS = 0.3  # a program of tests, before it runs

# Whose suites a file's mutants meet: the first word that its name has, or its folder's. A file of no family meets all suites.
FAMILIES = [
    ("channel", "channel_norm"), ("activation", "activation"), ("glu", "activation"), ("recurrent", "recurrent"),
    ("floater", "recurrent"), ("relative", "relative"), ("head_bias", "relative"), ("bias", "score_bias"),
    ("alibi", "score_bias"), ("t5", "score_bias"), ("embed", "embed"), ("sinusoidal", "rope"), ("position_table", "rope"),
    ("cross_entropy", "softmax"), ("rope", "rope"), ("qkv", "rope"), ("heads", "relative"), ("softmax", "softmax"),
    ("norm", "norm"), ("quant", "quantize"), ("fp_environment", "dispatch"), ("families", "dispatch"), ("base.c", "dispatch"),
]
EVERYWHERE = ["calls", "dispatch", "vec", "fences", "bits", "hashes"]  # suites that are no family's
NEVER = ["harness", "mpi", "examples"]  # of the tests themselves, and of programs

WORD = r"[A-Za-z_]\w*(?:(?:->|\.)[A-Za-z_]\w*)*"

# The operators: a name, what to look for in a line of code, what to put there. Comments, strings and lines of the preprocessor are
# not looked at. A replacement may be a function of the match.
def swap(a, b):
    return (r"\b(?:%s|%s)\b" % (a, b), lambda m: b if m.group() == a else a)


def next_number(m):
    return str(int(m.group()) + 1)


def other_half(m):
    return {"low": "high", "high": "low", "lo": "hi", "hi": "lo"}[m.group()]


def other_bit(m):
    return "0x%x%s" % (int(m.group(1), 16) ^ 1, m.group(2))


OPERATORS = [
    # comparisons
    ("< as <=", r"(?<= )<(?= )", "<="),
    ("<= as <", r"(?<= )<=(?= )", "<"),
    ("> as >=", r"(?<= )>(?= )", ">="),
    (">= as >", r"(?<= )>=(?= )", ">"),
    ("== as !=", r"(?<= )==(?= )", "!="),
    ("&& as ||", r"(?<= )&&(?= )", "||"),
    ("|| as &&", r"(?<= )\|\|(?= )", "&&"),
    ("not dropped", r"!(?=[A-Za-z_(])", ""),
    ("if always", None, "1"),
    ("if never", None, "0"),
    ("choice swapped", r"\? ([\w.>-]+) : ([\w.>-]+)(?=[;,)])", r"? \2 : \1"),
    # arithmetic
    ("+ as -", r"(?<= )\+(?= )", "-"),
    ("- as +", r"(?<=[\w)\]] )-(?= )", "+"),
    ("+ 1 dropped", r" \+ 1\b(?![.\w])", ""),
    ("- 1 dropped", r" - 1\b(?![.\w])", ""),
    ("% as /", r"(?<= )%(?= )", "/"),
    ("+= as =", r"(?<= )\+=(?= )", "="),
    ("|= as =", r"(?<= )[|&]=(?= )", "="),
    ("shift the other way", r"<<|>>(?!=)", lambda m: ">>" if m.group() == "<<" else "<<"),
    ("number + 1", r"(?<![\w.])(?:[2-9]|[1-9]\d{1,4})(?![\w.])", next_number),
    ("power of two + 1", r"(?<=0x1p)[-+]?\d+", next_number),
    ("mask's last bit", r"\b0x([0-9a-f]{2,16})(u?)\b(?!p)", other_bit),
    ("sign of a product", r"\bfmaf?\((?=\w)", lambda m: m.group() + "- "),
    ("fma as fms", r"\bv_fma\b", "v_fms"),
    ("double as float", r"\(double\)", "(float)"),
    # lanes, tails, strides, shares
    ("a whole vector for a part", r"\blanes_at\([^()]*\)", "VN"),
    ("mask one short", r"\bv_mask\(n\)", "v_mask(n - 1)"),
    ("low as high", r"(?<=\bvd_)(?:low|high)\b|(?<=\bv_twice_)(?:low|high)\b|(?<=_unpack)(?:lo|hi)(?=_)", other_half),
    ("even as odd",) + swap("even", "odd"),
    ("begin as end", r"(?<=[.>])(?:begin|end|row_begin|row_end)\b(?! =)",
     lambda m: m.group().replace("begin", "x").replace("end", "begin").replace("x", "end")),
    ("another stride", None, None),
    ("share of another", r"\bith\b(?=[,) ])", "0"),
    ("smaller as larger", r"\b\w*(?:smaller|larger|_min|_max)\b(?=\()",
     lambda m: re.sub("smaller|larger|_min|_max",
                      lambda n: {"smaller": "larger", "larger": "smaller", "_min": "_max", "_max": "_min"}[n.group()], m.group())),
    # types, NaN, fences
    ("f16 as bf16",) + swap("NRG_F16", "NRG_BF16"),
    ("NaN not seen", r"\b(?:__builtin_)?isnan\([^()]*\)", "0"),
    ("NaN as number", r"\b_CMP_UNORD_Q\b", "_CMP_ORD_Q"),
    ("fence dropped", r"\b(?:v_nt_fence|_mm_sfence)\(\);", ";"),
    # checks
    ("status dropped", r"\breturn NRG_ERR_\w+;", ";"),
    ("another status", r"(?<=return )NRG_ERR_\w+(?=;)", lambda m: "NRG_ERR_DIM" if m.group() != "NRG_ERR_DIM" else "NRG_ERR_NULL"),
    ("NULL not checked", r"!(?:a|s|args|spec|job|\*spec|\*args)(?:->\w+)?\b(?!->|\()", "0"),
    ("step left out", r"\b(?:continue|break);", ";"),
    # descriptions of calls
    ("line left out", r"(?m)^(?:RULE|CHECK|FIELD|MARK)\(.*\)(?=\n)", ""),
    ("MUST as MAY", r"\bMUST\b|\bNRG_NEED\b", lambda m: "MAY" if m.group() == "MUST" else "NRG_MAY"),
    ("place left out", r"\bON\(\w+\) \| |(?<=, )ON\(\w+\)(?=\)\n)", lambda m: "" if "|" in m.group() else "0"),
    ("output as input", r"(?<=, )(?:IN)?OUT(?=, )", "IN"),
]


def digest(*parts):
    return int.from_bytes(hashlib.sha256("|".join(parts).encode()).digest()[:8], "big")


def code_of(text):
    """The text with everything that is not code blanked, character by character, and what only says what is prefetched, which
    changes no result: calls, conditions of only these, and numbers by name that are no flags."""
    def blank(m):
        return re.sub(r"[^\n]", " ", m.group())
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)
    text = re.sub(r"^[ \t]*(?:if \((?:[^;{}=]|==)*\)\s+)?\w*prefetch\w*\([^;{}]*\);(?!\s*else)|\b\w*PREFETCH\w* = \d+\b(?! <<)",
                  blank, text, flags=re.M)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.M)


def closing(code, at):
    """Where the parenthesis that opens at `at` closes."""
    depth = 0
    for i in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[i], 0)
        if depth == 0:
            return i
    return -1


def places_of(operator, code):
    """(begin, end, what to put there) of every occurrence."""
    name, pattern, replacement = operator
    found = []
    if name.startswith("if "):
        for m in re.finditer(r"\bif \(", code):
            end = closing(code, m.end() - 1)
            if end > 0 and "\n" not in code[m.start():end]:
                found.append((m.end(), end, replacement))
        return found
    if name == "another stride":
        # a field of the same struct: the next one of the file
        names = sorted(set(re.findall(r"(?:->|\.)(\w+_stride)\b", code)))
        for m in re.finditer(r"(?<=[.>])(\w+_stride)\b(?! =)", code):
            if len(names) > 1:
                found.append((m.start(), m.end(), names[(names.index(m.group()) + 1) % len(names)]))
        return found
    for m in re.finditer(pattern, code):
        found.append((m.start(), m.end(), replacement(m) if callable(replacement) else m.expand(replacement)))
    return found


class Mutant:
    def __init__(self, operator, file, text, place):
        begin, end, new = place
        self.id = "%s at %d of %s, %x" % (operator, begin, file, digest(text))
        first = text.rfind("\n", 0, begin) + 1
        self.operator, self.file = operator, file
        self.line = text.count("\n", 0, begin) + 1
        self.was = " ".join(text[first:text.find("\n", begin)].split())
        self.text = text[:begin] + new + text[end:]
        self.now = " ".join(self.text[first:self.text.find("\n", begin)].split())
        self.name = "%s | %s | %s" % (file, operator, self.was)


def source_files(root, entries):
    files = []
    for path in [path for entry in entries for path in glob.glob(os.path.join(root, entry))]:
        if os.path.isfile(path):
            files.append(os.path.relpath(path, root))
        for folder, _, names in os.walk(path):
            files += [os.path.relpath(os.path.join(folder, name), root) for name in names if name.endswith((".c", ".h", ".def"))]
    return sorted(files)


def candidates(root, entries=FILES):
    """Operator by operator, files in the order they are asked, and in each the places in the order they are tried."""
    code = {}
    for file in source_files(root, entries):
        with open(os.path.join(root, file), encoding="utf-8") as f:
            text = f.read()
        code[file] = (text, code_of(text))
    for operator in OPERATORS:
        files = []
        for file, (text, blanked) in code.items():
            places = places_of(operator, blanked)
            if places:
                start = digest(operator[0], os.path.basename(file)) % len(places)
                files.append((file, text, places[start:] + places[:start]))
        yield operator[0], files


def family_of(name):
    """Of a file, or of a test that is named after an op or a family."""
    for part in (os.path.basename(name), os.path.dirname(name)):
        for word, family in FAMILIES:
            if word in part:
                return family
    return None


def family_of_test(suite, name):
    return family_of(name) if suite in ("bits", "hashes") else suite


class Build:
    """A copy of the tree, and a build of it in which only what a mutant changes is made again. Paths that this CPU cannot run are
    built of another copy, which nothing changes."""
    keep = False # what an earlier run found is of use, though tests have changed since

    def __init__(self, root, where, isas, options=(), part=None):
        """options: of meson. part: families and suites whose tests are built, and suites that every mutant meets; without it all
        tests are, and those of EVERYWHERE."""
        self.tree, self.dir, self.isas = os.path.join(where, "tree"), os.path.join(where, "build"), isas
        self.copy(root, self.tree, "")
        self.copy(root, os.path.join(where, "unchanged"), "src/")
        self.copy(root, os.path.join(where, "unchanged"), "include/")
        if not os.path.exists(os.path.join(self.dir, "build.ninja")):
            # no optimization that takes long: what is wrong at -O1 is wrong at -O3
            compiler = {"CC": "ccache gcc"} if shutil.which("ccache") else {}
            self.must(["meson", "setup", self.dir, self.tree, "-Doptimization=1", "-Dbench=false", "-Dmpi=false",
                       "-Dexamples=false", "-Ddefault_library=shared", *options], compiler)
        self.must(["ninja", "-C", self.dir, "build.ninja"])
        rules = os.path.join(self.dir, "build.ninja")
        with open(rules, encoding="utf-8") as f:
            text = f.read()
        idle = "|".join({"scalar", "avx2", "avx512", "neon", "generic"} - set(isas))
        with open(rules, "w", encoding="utf-8") as f:
            f.write(re.sub(r"(?<= c_COMPILER \.\./)tree(?=/src/(?:%s)/)" % idle, "unchanged", text))
        if not part:
            self.must(["ninja", "-C", self.dir])
        targets = json.loads(self.must(["meson", "introspect", "--targets", self.dir]))
        self.libraries = [os.path.relpath(t["filename"][0], self.dir) for t in targets
                          if t["type"] == "static library" and t["defined_in"].endswith(os.path.join("src", "meson.build"))]
        self.tests = {}
        for test in json.loads(self.must(["meson", "introspect", "--tests", self.dir])):
            suites = [suite.split(":")[-1] for suite in test["suite"]]
            if not set(suites) & set(NEVER) and (not part or family_of_test(suites[0], test["name"]) in part[0]
                                                 and "hashes_scalar" not in suites):
                self.tests[test["name"]] = (suites[0], test["cmd"], test["env"])
        self.everywhere, self.limit = (part[1], PART_SECONDS) if part else (EVERYWHERE, 3600)
        if part:
            self.must(["ninja", "-C", self.dir, *self.libraries, *(os.path.relpath(cmd[0], self.dir) for _, cmd, _ in self.tests.values())])
        self.objects = self.object_digests()
        self.recall()

    @staticmethod
    def copy(root, to, beginning):
        """The files git knows whose names begin so, where they differ: a second run builds only what has changed."""
        listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                capture_output=True, check=True).stdout.decode().split("\0")
        for file in filter(None, listed):
            source, target = os.path.join(root, file), os.path.join(to, file)
            if not file.startswith(beginning) or not os.path.isfile(source):
                continue
            with open(source, "rb") as f:
                content = f.read()
            if os.path.exists(target):
                with open(target, "rb") as f:
                    if f.read() == content:
                        continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as f:
                f.write(content)
            shutil.copymode(source, target)
        for folder, _, names in os.walk(to):
            for name in names:
                if os.path.relpath(os.path.join(folder, name), to) not in listed:
                    os.remove(os.path.join(folder, name))

    @staticmethod
    def must(command, environment=None):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ, **(environment or {})))
        if done.returncode:
            sys.exit("%s\n%s\nmutants: failed: %s" % (done.stdout[-4000:], done.stderr[-4000:], " ".join(command)))
        return done.stdout

    def object_digests(self):
        found = {}
        for library in self.libraries:
            folder = os.path.join(self.dir, library + ".p")
            for name in sorted(os.listdir(folder)):
                if name.endswith(".o"):
                    with open(os.path.join(folder, name), "rb") as f:
                        found[library, name] = hashlib.sha256(f.read()).hexdigest()
        return found

    def write(self, file, text):
        with open(os.path.join(self.tree, file), "w", encoding="utf-8") as f:
            f.write(text)

    def make(self, targets):
        return subprocess.run(["ninja", "-j2", "-C", self.dir] + targets, capture_output=True, check=False).returncode == 0

    @staticmethod
    def run(command, environment, seconds):
        """Seconds of CPU it took, or what was wrong. The limit is of CPU, too: this has a low priority."""
        def limits():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 5))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limits,
                              start_new_session=True, env=dict(os.environ, NRG_TEST_SCALE="small", **environment)) as process:
            try:
                process.wait(timeout=600)
            except subprocess.TimeoutExpired:
                # a suite forks for every test, and each of them has the limit for itself
                os.killpg(process.pid, signal.SIGKILL)
                return "does not end"
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if process.returncode not in (0, SKIPPED):
            return "fails" if process.returncode > 0 else "dies of signal %d" % -process.returncode
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def steps(self, family):
        """(name, target, command, environment) of the family's tests and everybody's, as many as take the limit together: first
        those that are quick for what they have caught."""
        caught = collections.Counter((by or "").split(":")[0] for by in self.verdicts.values())
        left, chosen = self.limit, []
        for name, (suite, command, environment) in sorted(
                self.tests.items(), key=lambda t: (self.seconds.get(t[0], 0) + LINK_SECONDS) / (1 + caught[t[0]])):
            if family in (None, family_of_test(suite, name)) or suite in self.everywhere:
                left -= self.seconds.get(name, 0)
                if left >= 0:
                    chosen.append((name, os.path.relpath(command[0], self.dir), command, environment))
        return chosen

    def baseline(self):
        """The original has to pass everything; how long that takes is the measure for mutants."""
        for name, _, command, environment in self.steps(None):
            if name in self.seconds:
                continue
            took = self.run(command, environment, 3600)
            if isinstance(took, str):
                sys.exit("mutants: %s: %s, without any change" % (name, took))
            self.seconds[name] = took
            self.remember()

    def verdict(self, mutant):
        """What notices it; "" where nothing does, None where it does not count."""
        if not self.make(self.libraries) or self.object_digests() == self.objects: # it does not compile, or to the same
            return None
        for name, target, command, environment in self.steps(family_of(mutant.file)):
            if not self.make([target]):
                return "%s does not build" % name
            result = self.run(command, environment, 20 + 10 * self.seconds[name])
            if isinstance(result, str):
                return "%s: %s" % (name, result)
        return ""

    def try_mutant(self, mutant, original):
        """The verdict, of this run or of one before it on the same tree."""
        if mutant.id not in self.verdicts:
            self.write(mutant.file, mutant.text)
            try:
                self.verdicts[mutant.id] = self.verdict(mutant)
            finally:
                self.write(mutant.file, original)
            self.remember()
        return self.verdicts[mutant.id]

    def recall(self):
        """Of what an earlier run found, what still holds: nothing that is built has changed. With --keep, all but survivors."""
        sums = hashlib.sha256()
        for folder, folders, names in os.walk(self.tree):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(folder, name)
                if not os.path.relpath(path, self.tree).startswith(("scripts", "docs", "bench", "examples")):
                    with open(path, "rb") as f:
                        sums.update(path.encode() + f.read())
        self.state, self.digest = os.path.join(os.path.dirname(self.tree), "state.json"), sums.hexdigest()
        self.seconds, self.verdicts = {}, {}
        if os.path.exists(self.state):
            with open(self.state, encoding="utf-8") as f:
                state = json.load(f)
            is_same = state["digest"] == self.digest
            self.seconds = state["seconds"] if is_same else {}
            self.verdicts = {key: by for key, by in state["verdicts"].items() if is_same or (Build.keep and by != "")}

    def remember(self):
        with open(self.state + ".new", "w", encoding="utf-8") as f:
            json.dump({"digest": self.digest, "seconds": self.seconds, "verdicts": self.verdicts}, f)
        os.replace(self.state + ".new", self.state)


def explanations(root):
    """Lines of mutants.txt: name = same | missed: why."""
    found = {}
    path = os.path.join(root, "scripts", "mutants.txt")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            for line in f:
                m = re.match(r"(.*\S) +=> +(same|missed): (.*\S)", line)
                if m and not line.startswith("#"):
                    found[" ".join(m.group(1).split())] = (m.group(2), m.group(3))
    return found


def mutants(root, build_of, wanted, entries=FILES, rounds=ROUNDS):
    """The mutants that count, and what notices them: in rounds, one of each operator in a round."""
    used, total = {}, 0
    operators = [(operator, files, set()) for operator, files in candidates(root, entries)]
    for _ in range(rounds):
        for operator, files, done in operators:
            order = sorted(files, key=lambda f: (used.get(f[0], 0), digest(operator, "file", os.path.basename(f[0]))))
            found = None
            for file, text, places in order:
                if found or file in done:
                    continue
                done.add(file)
                for place in places[:TRIES]:
                    mutant = Mutant(operator, file, text, place)
                    by = build_of(file).try_mutant(mutant, text)
                    if by is not None:
                        found = mutant, by
                        used[file] = used.get(file, 0) + 1
                        break
            if found:
                total += 1
                yield found
            if total == wanted:
                return


def named_mutants(root):
    """Those of mutants-named.txt, each with its file's text; None where the file no longer has its line."""
    with open(os.path.join(root, "scripts", "mutants-named.txt"), encoding="utf-8") as f:
        lines = [line.rstrip("\n") for line in f if not line.startswith("#")]
    for name, file, was, now in zip(*[iter(lines)] * 4):
        with open(os.path.join(root, file), encoding="utf-8") as f:
            text = f.read()
        begin = text.find(was[1:])
        if was[0] + now[0] != "-+" or text.count(was[1:]) != 1:
            yield name, None, text
        else:
            yield name, Mutant(name, file, text, (begin, begin + len(was) - 1, now[1:])), text


def try_named(root, build):
    """1 if one of them is not noticed, or no longer there."""
    bad = 0
    for name, mutant, text in named_mutants(root):
        by = build.try_mutant(mutant, text) if mutant else None
        bad |= not by
        print("%s: %s" % (name, "caught by " + by if by else "SURVIVED" if by == "" else "NOT THERE: scripts/mutants-named.txt"),
              flush=True)
    return int(bad)


def part_builds(root, where, part):
    """Of each path that a part needs: a build of that path, with the suites of the part."""
    files, suites = PARTS[part]
    families = {family_of(file) for file in source_files(root, files)}
    # gcc 12 compiles norm.c for AVX2 in 9.3 s at -O2, in 12.5 at -O1
    builds = {path: Build(root, os.path.join(where, path), ["scalar", path],
                          ["-Dpaths=" + path, "-Dcounted_fences=" + (path if path == "avx2" else "[]"), "-Doptimization=2"],
                          (families | set(suites), suites))
              for path in sorted(set(files.values()))}
    if part == "calls": # which statuses there have to be, scripts/baseline says
        for path, build in builds.items():
            Build.must([os.path.join(root, "scripts/verdicts.sh"), build.dir, "--trials", "10"],
                       {"NRG_BUILD_DIR": os.path.join(where, path, "verdicts")})
            with open(os.path.join(root, "scripts/baseline"), encoding="utf-8") as f:
                module = os.path.join(where, path, "verdicts", f.read().strip() + ".so")
            suite, command, environment = build.tests["wild_calls"]
            build.tests["verdicts"] = (suite, [command[0], "--against", module], environment)
    return builds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--paths", required=True, help="what this CPU runs: scalar,avx2")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--named", action="store_true")
    parser.add_argument("--keep", action="store_true")
    for part in PARTS:
        parser.add_argument("--" + part, type=int, nargs="?", const=PART_MUTANTS, metavar="COUNT")
    options = parser.parse_args()
    Build.keep = options.keep
    part = next((part for part in PARTS if getattr(options, part)), None)
    wanted, entries = (getattr(options, part), list(PARTS[part][0])) if part else (MUTANTS, FILES)
    if options.list:
        for operator, files in candidates(options.root, entries):
            print("%-26s %4d places in %2d files" % (operator, sum(len(places) for _, _, places in files), len(files)))
        return 0

    builds = part_builds(options.root, options.build, part) if part else \
        {"": Build(options.root, options.build, options.paths.split(","))}

    def build_of(file):
        files = PARTS[part][0] if part else {"": ""}
        return builds[next(path for entry, path in files.items() if fnmatch.fnmatch(file, entry + "*"))]
    for path, build in builds.items():
        build.baseline()
        print("the original passes: %s%d suites and hashes, %.0f s" % (
            path + ", " if path else "", len(build.seconds), sum(build.seconds.values())), flush=True)
    if options.named:
        return try_named(options.root, build)
    count = {"caught": 0, "same": 0, "missed": 0}
    of_file = {file: 0 for file in source_files(options.root, entries)}
    why, unexplained = explanations(options.root), []
    drawn = mutants(options.root, build_of, wanted, entries, len(of_file) if part else ROUNDS)
    for mutant, by in drawn:
        kind, reason = ("caught", "by " + by) if by else why.get(mutant.name, ("missed", ""))
        count[kind] += 1
        of_file[mutant.file] += 1
        if not by and not reason:
            unexplained.append(mutant.name)
        print("%3d %s:%d: %s: `%s` is now `%s`: %s %s" % (
            sum(count.values()), mutant.file, mutant.line, mutant.operator, mutant.was, mutant.now,
            kind if by else "SURVIVED (%s)" % kind, reason), flush=True)
    total = count["caught"] + count["missed"]
    print("%d mutants; %d of them change no result; of the other %d, %d are caught: %.1f %%" % (
        total + count["same"], count["same"], total, count["caught"], 100 * count["caught"] / max(total, 1)))
    for name in unexplained:
        print("not explained in scripts/mutants.txt: " + name)
    bad = bool(unexplained) or count["caught"] < SHARE * total
    if total + count["same"] < (wanted if part else LEAST):
        print("these are fewer than %d" % (wanted if part else LEAST))
        bad = True
    if part:
        few = sorted(file for file, number in of_file.items() if number < PART_LEAST)
        bad |= bool(few) or count["same"] > PART_SAME * (total + count["same"])
        for file in few:
            print("fewer than %d: %s" % (PART_LEAST, file))
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
