"""The examples of docs/python.md, run as they stand there; and that every function says what its shapes are."""
import doctest
import inspect
import pathlib
import re

import nrg
from support import Case

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/python.md"


class Docs(Case):
    def test_examples(self):
        text = PAGE.read_text(encoding="utf-8").replace("```", "")
        test = doctest.DocTestParser().get_doctest(text, {}, "python.md", str(PAGE), 0)
        self.assertGreater(len(test.examples), 20)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        report = []
        runner.run(test, out=report.append)
        self.assertEqual(runner.failures, 0, "".join(report))

    def test_every_function_has_a_docstring(self):
        functions = {name: value for name, value in vars(nrg).items() if inspect.isfunction(value) and not name.startswith("_")}
        self.assertGreater(len(functions), 80)
        for name, function in functions.items():
            text = inspect.getdoc(function) or ""
            self.assertTrue(text, name)
            if "x" in inspect.signature(function).parameters or name.endswith("_backward"):
                self.assertIn("[", text, f"{name} does not say its shapes")

    def test_the_page_names_what_there_is(self):
        page = PAGE.read_text(encoding="utf-8")
        for name in re.findall(r"`(\w+?)(?:\([^`]*\))?`", page.split("## What there is")[1].split("FLOATER")[0]):
            self.assertTrue(hasattr(nrg, name), name)
