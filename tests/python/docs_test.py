"""The examples of docs/reference/python.md, run as they stand there; and that every function says what its shapes are."""
import doctest
import inspect
import pathlib
import re

import nrg
from support import Case, random

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/reference/python.md"


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

    def test_signatures_are_true(self):
        """Every option that a signature shows is taken, and its default is what stands there."""
        x, w = random(4, 32), random(32)
        for function, arguments in ((nrg.rms_norm, (x, w)), (nrg.layer_norm, (x, w)), (nrg.l2_normalize, (x,)), (nrg.geglu, (x, x)),
                                    (nrg.swiglu_oai, (x,))):
            parameters = inspect.signature(function).parameters.values()
            self.assertGreater(len(parameters), 10)
            given = {p.name: p.default for p in parameters if p.kind == p.KEYWORD_ONLY}
            self.assertEqual(function(*arguments, **given).tobytes(), function(*arguments).tobytes(), function.__name__)

    def test_the_page_names_what_there_is(self):
        page = PAGE.read_text(encoding="utf-8")
        for name in re.findall(r"`(\w+?)(?:\([^`]*\))?`", page.split("## What there is")[1].split("FLOATER")[0]):
            self.assertTrue(hasattr(nrg, name), name)
