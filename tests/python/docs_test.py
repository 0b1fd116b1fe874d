"""The examples of docs/reference/python.md and of every docstring, run as they are; and the contents of help(nrg)."""
import doctest
import inspect
import pathlib
import pydoc
import re
import typing

import numpy as np

import nrg
from support import Case, of_examples, random

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/reference/python.md"


class Docs(Case):
    def test_examples(self):
        before, _, after = PAGE.read_text(encoding="utf-8").partition("\n## PyTorch\n")  # which tests/torch runs
        text = (before + after[after.index("\n## "):]).replace("```", "")
        test = doctest.DocTestParser().get_doctest(text, {}, "python.md", str(PAGE), 0)
        self.assertGreater(len(test.examples), 20)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        report = []
        runner.run(test, out=report.append)
        self.assertEqual(runner.failures, 0, "".join(report))

    def test_every_function_has_a_docstring(self):
        functions = {name: value for name, value in vars(nrg).items() if inspect.isfunction(value) and not name.startswith("_")}
        self.assertGreater(len(functions), 80)
        self.assertLessEqual(functions.keys(), set(nrg.__all__))
        for name, function in functions.items():
            text = inspect.getdoc(function) or ""
            self.assertTrue(text, name)
            if "x" in inspect.signature(function).parameters or name.endswith("_backward"):
                self.assertIn("[", text, f"{name}: no shapes")

    def test_every_docstring_has_an_example_that_runs(self):
        objects = {"nrg": nrg, **{name: getattr(nrg, name) for name in nrg.__all__ if name != "STATISTICS"}}
        objects.update({f"{name}.{method}": value for name, kind in list(objects.items()) if inspect.isclass(kind)
                        for method, value in vars(kind).items() if inspect.isfunction(value) and not method.startswith("_")})
        runner, report, examples = doctest.DocTestRunner(), [], 0
        for name, value in objects.items():
            test = doctest.DocTestParser().get_doctest(value.__doc__, {"np": np, "nrg": nrg}, name, None, 0)
            self.assertTrue(test.examples, f"{name}: no example")
            examples += runner.run(test, out=report.append).attempted
        self.assertEqual(runner.failures, 0, "".join(report))
        self.assertGreater(examples, 190)

    def test_examples_with_out_and_threads(self):
        for name, given in of_examples().items():
            function = getattr(nrg, name)
            out = given.pop("out", None)
            if "threads" in inspect.signature(function).parameters:
                self.for_threads(lambda threads: function(**given, threads=threads))  # pylint: disable=cell-var-from-loop
            if out is not None:
                expected = function(**given)
                self.assertIs(function(**given, out=out), out)
                self.bits(out, expected)

    def test_help_has_an_index(self):
        text = pydoc.render_doc(nrg, renderer=pydoc.plaintext)
        index = nrg.__doc__.split("Functions by task.")[1]
        for name in nrg.__all__:
            self.assertIn(name, text)
            forward = name[:-len("_backward")] if name.endswith("_backward") and hasattr(nrg, name[:-len("_backward")]) else name
            if inspect.isfunction(getattr(nrg, forward)) and not hasattr(nrg.activations, name):
                self.assertRegex(index, rf"\b{forward}\b")

    def test_every_parameter_has_a_type(self):
        for name in nrg.__all__:
            function = getattr(nrg, name)
            function = function.__init__ if inspect.isclass(function) and "__init__" in vars(function) else function
            if inspect.isfunction(function):
                hints = typing.get_type_hints(getattr(function, "__wrapped__", function))
                self.assertEqual(hints.keys() - {"return"}, inspect.signature(function).parameters.keys() - {"self"}, name)
                self.assertIn("return", hints, name)

    def test_every_parameter_is_described(self):
        """In its own docstring, or in that of the function which the docstring names for the others. out, dtype and threads are in nrg's."""
        for name in nrg.__all__:
            function = getattr(nrg, name)
            if not inspect.isfunction(function):
                continue
            text = function.__doc__
            for parameter in inspect.signature(function).parameters:
                listed = re.search(rf"^ *- ([\w, ]*, )?{parameter}\b", text, re.M)
                self.assertTrue(listed or parameter in ("out", "dtype", "threads") or "options: as in" in text or "the others: as in" in text,
                                f"{name}: {parameter}")

    def test_signatures_are_true(self):
        """Every option that a signature shows is taken, and its default is what stands there."""
        x, w = random(4, 32), random(32)
        for function, arguments in ((nrg.rms_norm, (x, w)), (nrg.layer_norm, (x, w)), (nrg.l2_normalize, (x,)), (nrg.geglu, (x, x)),
                                    (nrg.swiglu_oai, (x,))):
            parameters = inspect.signature(function).parameters.values()
            self.assertGreater(len(parameters), 10)
            given = {p.name: p.default for p in parameters if p.kind == p.KEYWORD_ONLY}
            self.assertEqual(function(*arguments, **given).tobytes(), function(*arguments).tobytes(), function.__name__)

    def test_the_index_lists_functions(self):
        lines = re.findall(r"^    \w.*?  +(.*)$", nrg.__doc__.split("Functions by task.")[1], re.M)
        self.assertGreater(len(lines), 15)
        for name in re.findall(r"(?:^|  )(\w+)(?=$|  | \()", "\n".join(lines), re.M):
            self.assertTrue(hasattr(nrg, name), name)
