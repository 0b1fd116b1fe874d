"""nrg.torch against PyTorch in double precision: results, gradients, torch.compile's checks, modules, and the docstrings.
scripts/sid-python.sh runs it where Debian has PyTorch."""
import doctest
import inspect
import pathlib
import sys
import unittest

import torch
import torch.nn.functional as F

import nrg.torch

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/reference/python.md"
BOUND = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


def tensor(*shape, dtype=torch.float32, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape))).to(dtype)


def rotated(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    angles = positions.double()[..., None] * base ** (-torch.arange(half, dtype=torch.float64) / half)
    cos, sin = angles.cos()[..., None, :], angles.sin()[..., None, :]
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Case(unittest.TestCase):
    def compare(self, function, reference, tensors, dtype=torch.float32, scale=1.0):
        """Results and gradients of function(*tensors) and of reference(*tensors in double)."""
        given = [t.detach().to(dtype).requires_grad_() for t in tensors]
        wide = [t.detach().double().requires_grad_() for t in given]
        results, expected = function(*given), reference(*wide)
        results, expected = (v if isinstance(v, tuple) else (v,) for v in (results, expected))
        d = [tensor(*v.shape, seed=9 + i) if v.dim() else torch.ones(()) for i, v in enumerate(expected)]
        for result, of in zip(results, expected):
            self.assertEqual((result.shape, result.dtype), (of.shape, torch.float32 if of.dim() == 0 else dtype))
            self.near(result, of, BOUND[dtype] * scale)
        sum((v * g.to(v.dtype)).sum() for v, g in zip(results, d)).backward()
        sum((v * g.to(r.dtype).double()).sum() for v, g, r in zip(expected, d, results)).backward()
        for t, of in zip(given, wide):
            self.assertEqual((t.grad.shape, t.grad.dtype), (t.shape, t.dtype))
            self.near(t.grad, of.grad, BOUND[dtype] * 4 * scale * max(1.0, float(of.grad.abs().max())))

    def near(self, a, b, bound):
        error = (a.detach().double() - b.detach()).abs()
        self.assertLessEqual(float((error / (1 + b.detach().abs())).max()) if error.numel() else 0.0, bound)


class Gradients(Case):
    def test_norms(self):
        for dtype in BOUND:
            x, w, b, y = tensor(3, 5, 96), tensor(96), tensor(96, seed=1), tensor(3, 5, 96, seed=2)
            self.compare(lambda x, w: nrg.torch.rms_norm(x, (96,), w, 1e-6), lambda x, w: F.rms_norm(x, (96,), w, 1e-6), (x, w), dtype)
            self.compare(lambda x: nrg.torch.rms_norm(x, 96, eps=1e-6), lambda x: F.rms_norm(x, (96,), None, 1e-6), (x,), dtype)
            self.compare(lambda x, w, b: nrg.torch.layer_norm(x, (96,), w, b), lambda x, w, b: F.layer_norm(x, (96,), w, b), (x, w, b), dtype, 2)
            self.compare(lambda x, w: nrg.torch.layer_norm(x, (96,), w), lambda x, w: F.layer_norm(x, (96,), w), (x, w), dtype, 2)
            self.compare(lambda x, b: nrg.torch.layer_norm(x, (5, 96), bias=b), lambda x, b: F.layer_norm(x, (5, 96), None, b),
                         (x, tensor(5, 96)), dtype, 2)
            if dtype == torch.float32:  # in 16 bits r is rounded, and the reference has no r
                self.compare(lambda x, y, w: nrg.torch.rms_norm(x, (96,), w, 1e-6, residual=y),
                             lambda x, y, w: (F.rms_norm(x + y, (96,), w, 1e-6), x + y), (x, y, w), dtype)
                self.compare(lambda x, y, w, b: nrg.torch.layer_norm(x, (96,), w, b, residual=y)[0],
                             lambda x, y, w, b: F.layer_norm(x + y, (96,), w, b), (x, y, w, b), dtype, 2)
                self.compare(lambda x, y: nrg.torch.rms_norm(x, 96, eps=1e-6, residual=y)[0],
                             lambda x, y: F.rms_norm(x + y, (96,), None, 1e-6), (x, tensor(1, 96)), dtype)

    def test_the_residual_stream_in_f32(self):
        """x of 16 bits and a residual of float32: r is float32."""
        x, y, w = tensor(4, 64, dtype=torch.bfloat16), tensor(4, 64, seed=1), tensor(64, seed=2)
        given = [v.clone().requires_grad_() for v in (x, y, w)]
        wide = [v.double().requires_grad_() for v in (x, y, w)]
        o, r = nrg.torch.rms_norm(given[0], (64,), given[2], 1e-6, residual=given[1])
        self.assertEqual((o.dtype, r.dtype), (torch.bfloat16, torch.float32))
        s = wide[0] + wide[1]
        (o.sum() + (r * r).sum()).backward()
        (F.rms_norm(s, (64,), wide[2], 1e-6).sum() + (s * s).sum()).backward()
        for v, of in zip(given, wide):
            self.near(v.grad, of.grad, 2e-2 if v.dtype == torch.bfloat16 else 2e-6 if v is given[1] else 4e-6)
        only_r = y.clone().requires_grad_()
        nrg.torch.rms_norm(x, (64,), w, residual=only_r)[1].sum().backward()
        self.assertTrue(torch.equal(only_r.grad, torch.ones_like(y)))

    def test_gates(self):
        for dtype in BOUND:
            a, b, x = tensor(3, 5, 32), tensor(3, 5, 32, seed=1), tensor(3, 5, 64)
            for activation, gate in (("silu", F.silu), ("gelu", F.gelu), ("sigmoid", torch.sigmoid), ("relu", F.relu)):
                self.compare(lambda a, b: nrg.torch.glu(a, b, activation=activation), lambda a, b: gate(a) * b, (a, b), dtype, 2)
            self.compare(nrg.torch.glu, F.glu, (x,), dtype, 2)
            self.compare(nrg.torch.swiglu, lambda x: F.silu(x[..., :32]) * x[..., 32:], (x,), dtype, 2)
            self.compare(nrg.torch.swiglu, lambda a, b: F.silu(a) * b, (a, b), dtype, 2)
            self.compare(lambda a, b: nrg.torch.geglu(a, b, approximate="tanh"), lambda a, b: F.gelu(a, approximate="tanh") * b, (a, b), dtype, 2)

    def test_rope(self):
        for dtype in BOUND:
            x, of_batch = tensor(2, 6, 3, 16), torch.tensor([[3, 3, 0, 1, 5, 2], [9, 8, 7, 6, 5, 4]])
            self.compare(nrg.torch.rope, lambda x: rotated(x, torch.arange(6)), (x,), dtype, 2)
            self.compare(lambda x: nrg.torch.rope(x, of_batch, base=500.0), lambda x: rotated(x, of_batch, 500.0), (x,), dtype, 2)
            heads_first = tensor(2, 3, 6, 16)
            self.compare(lambda x: nrg.torch.rope(x.transpose(1, 2), of_batch[0]).transpose(1, 2),
                         lambda x: rotated(x.transpose(1, 2), of_batch[0]).transpose(1, 2), (heads_first,), dtype, 2)

    def test_softmax(self):
        for dtype in BOUND:
            x, mask = tensor(2, 3, 4, 9), tensor(4, 9, seed=3, dtype=dtype)
            never = torch.ones(4, 9, dtype=bool).triu(6)
            self.compare(nrg.torch.softmax, lambda x: F.softmax(x, -1), (x,), dtype)
            self.compare(lambda x: nrg.torch.softmax(x, 1), lambda x: F.softmax(x, 1), (x,), dtype)
            self.compare(lambda x: nrg.torch.log_softmax(x, scale=0.5), lambda x: F.log_softmax(x * 0.5, -1), (x,), dtype, 4)
            self.compare(lambda x: nrg.torch.softmax(x, mask=mask, scale=0.5, causal=True),
                         lambda x: F.softmax((x * 0.5 + mask.double()).masked_fill(never, -torch.inf), -1), (x,), dtype)
            self.compare(lambda x: nrg.torch.softmax(x, mask=mask[:, :1]), lambda x: F.softmax(x, -1), (x,), dtype, 4)

    def test_cross_entropy(self):
        x, target = tensor(8, 11), torch.tensor([3, -100, 0, 10, 5, 1, 1, -100])
        for dtype in BOUND:
            for reduction in ("mean", "sum"):
                self.compare(lambda x: nrg.torch.cross_entropy(x, target, reduction=reduction), lambda x: F.cross_entropy(x, target, reduction=reduction),
                             (x,), dtype, 2)
        self.compare(lambda x: nrg.torch.cross_entropy(x, target, reduction="none"), lambda x: F.cross_entropy(x, target, reduction="none"), (x,), scale=2)
        self.compare(lambda x: nrg.torch.cross_entropy(x.reshape(2, 4, 11), target.abs().clamp(max=10).reshape(2, 4), ignore_index=1),
                     lambda x: F.cross_entropy(x, target.abs().clamp(max=10), ignore_index=1), (x,), scale=2)
        view = tensor(11, 8).t()
        self.near(nrg.torch.cross_entropy(view, target), F.cross_entropy(view.double(), target), 4e-6)

    def test_expanded_and_strided(self):
        """Tensors that nrg cannot read in place: a gradient of sum(), elements in steps, five dimensions in another order."""
        for x in (tensor(4, 64)[:, ::2], tensor(2, 3, 4, 5, 32).permute(3, 1, 0, 2, 4), tensor(1, 32).expand(4, 32)):
            self.compare(lambda x: nrg.torch.rms_norm(x * 1, 32, eps=1e-6), lambda x: F.rms_norm(x, (32,), None, 1e-6), (x,))
            self.near(nrg.torch.softmax(x), F.softmax(x.double(), -1), 2e-6)
        w = tensor(64)[::2]
        self.compare(lambda x: nrg.torch.layer_norm(x, 32, w), lambda x: F.layer_norm(x, (32,), w.double()), (tensor(4, 32),), scale=2)
        x = tensor(4, 32).requires_grad_()
        nrg.torch.swiglu(x).sum().backward()
        self.assertGreater(float(x.grad.abs().max()), 0)


class Operators(Case):
    def test_registration(self):
        """PyTorch's own checks of a registered operator: schema, shapes for torch.compile, and the gradient's."""
        x, w, y = tensor(3, 32).requires_grad_(), tensor(32, seed=1).requires_grad_(), tensor(3, 32, seed=2).requires_grad_()
        target = torch.tensor([1, 2, 3])
        for op, arguments in ((torch.ops.nrg.norm, (x, w, None, 1e-6, False)), (torch.ops.nrg.norm, (x, w, w.detach(), 1e-6, True)),
                              (torch.ops.nrg.add_norm, (x, y, w, None, 1e-6, False)), (torch.ops.nrg.glu, (x, y, "silu", False)),
                              (torch.ops.nrg.glu, (x, None, "silu", False)), (torch.ops.nrg.rope, (x, None, 10000.0, 0, "neox", 0)),
                              (torch.ops.nrg.softmax, (x, None, 1.0, True, False)), (torch.ops.nrg.cross_entropy, (x, target, -100, "mean")),
                              (torch.ops.nrg.cross_entropy, (x, target, -100, "none"))):
            checks = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_static")
            self.assertEqual(set(torch.library.opcheck(op.default, arguments, test_utils=checks).values()), {"SUCCESS"})

    def test_compile(self):
        """torch.compile traces a block, forward and backward, without a break. aot_eager needs no compiler."""
        def block(x, residual, w, target):
            o, r = nrg.torch.rms_norm(x, (32,), w, residual=residual)
            return nrg.torch.cross_entropy(nrg.torch.softmax(nrg.torch.rope(nrg.torch.swiglu(torch.cat([o, o], -1)))) + r, target)

        x, y, w, target = tensor(6, 32), tensor(6, 32, seed=1), tensor(32), torch.arange(6)
        results = []
        for function in (block, torch.compile(block, backend="aot_eager", fullgraph=True)):
            given = [v.clone().requires_grad_() for v in (x, y, w)]
            loss = function(*given, target)
            loss.backward()
            results.append([loss.detach(), *(v.grad for v in given)])
        for a, b in zip(*results):
            self.assertTrue(torch.equal(a, b))

    def test_threads(self):
        x, w = tensor(512, 256), tensor(256, seed=1)
        before, results = torch.get_num_threads(), []
        for threads in (1, 2, 7):
            torch.set_num_threads(threads)
            given = [v.clone().requires_grad_() for v in (x, w)]
            o = nrg.torch.layer_norm(given[0], 256, given[1])
            o.square().sum().backward()
            results.append([v.numpy().tobytes() for v in (o.detach(), *(g.grad for g in given))])
        torch.set_num_threads(before)
        self.assertEqual(results[0], results[1])
        self.assertEqual(results[0], results[2])

    def test_errors(self):
        x = tensor(4, 32)
        for pattern, call in ((r"^x: expected \[..., 31\], as normalized_shape specifies, got \[4, 32\]", lambda: nrg.torch.rms_norm(x, 31)),
                              (r"^weight: expected \[32\], got float32 \[31\]", lambda: nrg.torch.rms_norm(x, 32, x[0, :31])),
                              ("^x: expected float32, .* got float64", lambda: nrg.torch.softmax(x.double())),
                              ("^mask: expected a tensor without requires_grad", lambda: nrg.torch.softmax(x, mask=x.clone().requires_grad_())),
                              ("^reduction: expected 'mean', 'sum' or 'none', got 'avg'",
                               lambda: nrg.torch.cross_entropy(x, torch.zeros(4, dtype=int), reduction="avg")),
                              ("^approximate: expected", lambda: nrg.torch.geglu(x, approximate="erf"))):
            with self.assertRaisesRegex(ValueError, pattern):
                call()

    def test_meta_device(self):
        self.assertEqual(nrg.torch.rms_norm(torch.empty(4, 8, device="meta"), 8).shape, (4, 8))


def functions_of_python(function):
    """The result of a call, and the names of the Python functions that run in it."""
    names = []
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        return function(), names
    finally:
        sys.setprofile(None)


class Direct(Case):
    """Calls that no gradient, compiler or mode needs to see pass PyTorch's dispatcher by."""

    def calls(self, seed, dtype):
        x, y, w, b = tensor(2, 6, 32, seed=seed), tensor(2, 6, 32, seed=seed + 1), tensor(32, seed=seed), tensor(32, seed=seed + 1)
        x, y, w, b = (v.to(dtype) for v in (x, y, w, b))
        weight = torch.nn.Parameter(w)
        return [lambda: nrg.torch.rms_norm(x, 32, w), lambda: nrg.torch.layer_norm(x, (6, 32)), lambda: nrg.torch.rms_norm(x, 32, weight.detach()),
                lambda: nrg.torch.layer_norm(x[:, 1:3], 32, w, b), lambda: nrg.torch.rms_norm(x, 32, w, residual=y),
                lambda: nrg.torch.swiglu(x), lambda: nrg.torch.geglu(x, y), lambda: nrg.torch.rope(x), lambda: nrg.torch.softmax(x, causal=True),
                lambda: nrg.torch.log_softmax(x, scale=0.5)]

    def test_results(self):
        for dtype in BOUND:
            made = [[call() for call in self.calls(seed, dtype)] for seed in (1, 5, 9)]  # the first dispatched, the second recorded
            for seed, results in zip((1, 5, 9), made):
                for call, expected in zip(self.calls(seed, dtype), results):
                    got, names = functions_of_python(call)
                    self.assertFalse({"share", "_array", "__call__"} & set(names), (inspect.getsource(call), names))
                    for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, expected))):
                        self.assertTrue(torch.equal(a, b) and a.dtype == b.dtype)

    def test_results_are_new(self):
        x = tensor(3, 32)
        made = [nrg.torch.swiglu(x) for _ in range(6)]
        self.assertEqual(len({each.data_ptr() for each in made}), 6)
        before = sys.getrefcount(x)
        for _ in range(100):
            nrg.torch.swiglu(x)
        self.assertEqual(sys.getrefcount(x), before)

    def test_gradients_between(self):
        """The same tensors with and without a gradient, in turn."""
        x, w = tensor(4, 32).requires_grad_(), torch.nn.Parameter(tensor(32))
        for _ in range(4):
            with torch.no_grad():
                self.assertFalse(nrg.torch.rms_norm(x, 32, w).requires_grad)
            with torch.inference_mode():
                self.assertTrue(nrg.torch.rms_norm(x, 32, w).is_inference())
            x.grad = None
            nrg.torch.rms_norm(x, 32, w).sum().backward()
            self.assertIsNotNone(x.grad)
            self.assertFalse(nrg.torch.rms_norm(x.detach(), 32, w.detach()).requires_grad)

    def test_layouts(self):
        """Equal addresses with other shapes, strides and dtypes; and tensors whose bytes are not their elements."""
        x = tensor(6, 64, dtype=torch.float16).view(torch.float32)  # finite as either
        for _ in range(4):
            for rows in range(1, 7):
                for view in (x[:rows], x[:rows, :16], x[:rows].view(torch.float16), x[:rows, ::2], x[:rows].t().contiguous().t()):
                    self.near(nrg.torch.softmax(view), F.softmax(view.double(), -1), BOUND[view.dtype])
            negative = torch.view_as_complex(x.view(6, 16, 2)).conj().imag
            self.assertTrue(negative.is_neg())
            self.near(nrg.torch.softmax(negative), F.softmax(negative.double(), -1), 2e-6)

    def test_threads(self):
        """A call that was recorded with one thread uses more of them later."""
        x, before = tensor(512, 256), torch.get_num_threads()
        torch.set_num_threads(1)
        expected = [nrg.torch.swiglu(x) for _ in range(3)][0]
        torch.set_num_threads(2)
        got, names = functions_of_python(lambda: nrg.torch.swiglu(x))
        torch.set_num_threads(before)
        self.assertIn("share", names)
        self.assertTrue(torch.equal(got, expected))

    def test_watchers(self):
        """What follows or traces operators sees them."""
        class Watch(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                seen.append(str(function))
                return function(*args, **(kwargs or {}))

        x = tensor(4, 32)
        for _ in range(4):
            seen = []
            nrg.torch.swiglu(x)
            with Watch():
                nrg.torch.swiglu(x)
            self.assertEqual([name for name in seen if "glu" in name], ["nrg.glu.default"])
        class Functions(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                seen.append(str(function))
                return function(*args, **(kwargs or {}))

        seen = []
        with Functions():
            nrg.torch.swiglu(x)
        self.assertEqual([name for name in seen if "glu" in name], ["nrg.glu.default"])
        traced = torch.jit.trace(lambda x: nrg.torch.swiglu(x), (x,))
        other = tensor(4, 32, seed=7)
        self.assertTrue(torch.equal(traced(other), nrg.torch.swiglu(other)))
        mapped = torch.func.vmap(lambda x: x * 2)(nrg.torch.swiglu(x))
        self.assertTrue(torch.equal(mapped, nrg.torch.swiglu(x) * 2))


class Modules(Case):
    def test_they_replace_torch_s(self):
        for kind, own, given in ((torch.nn.RMSNorm, nrg.torch.RMSNorm, {}), (torch.nn.LayerNorm, nrg.torch.LayerNorm, {}),
                                 (torch.nn.LayerNorm, nrg.torch.LayerNorm, {"bias": False}),
                                 (torch.nn.LayerNorm, nrg.torch.LayerNorm, {"elementwise_affine": False}), (torch.nn.RMSNorm, nrg.torch.RMSNorm, {"eps": 1e-3})):
            for shape in (32, (4, 32)):
                theirs, ours = kind(shape, **given), own(shape, **given)
                for parameter in theirs.parameters():
                    torch.nn.init.normal_(parameter, 1.0, 0.2)
                ours.load_state_dict(theirs.state_dict())
                self.assertEqual(repr(ours), repr(theirs))
                self.assertIsInstance(ours, kind)
                x = tensor(3, 4, 32)
                self.near(ours(x), theirs.double()(x.double()), 4e-6)

    def test_replace_norms(self):
        layer = torch.nn.TransformerEncoderLayer(32, 2, 64, batch_first=True, norm_first=True, dropout=0.0)
        model = torch.nn.TransformerEncoder(layer, 2, norm=torch.nn.LayerNorm(32), enable_nested_tensor=False)
        x = tensor(2, 5, 32)
        expected, parameters = model(x), dict(model.named_parameters())
        expected.square().sum().backward()
        gradients = {name: p.grad.clone() for name, p in parameters.items()}
        model.zero_grad()
        self.assertIs(nrg.torch.replace_norms(model), model)
        self.assertEqual(sum(isinstance(m, nrg.torch.LayerNorm) for m in model.modules()), 5)
        self.assertTrue(all(p is parameters[name] for name, p in model.named_parameters()))
        result = model(x)
        self.near(result, expected.double(), 1e-5)
        result.square().sum().backward()
        for name, p in model.named_parameters():
            self.near(p.grad, gradients[name].double(), 1e-4)

    def test_training_lowers_the_loss(self):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Embedding(16, 32), nrg.torch.RMSNorm(32), torch.nn.Linear(32, 16))
        optimizer, ids = torch.optim.SGD(model.parameters(), 0.5), torch.arange(16)
        losses = []
        for _ in range(30):
            loss = nrg.torch.cross_entropy(model(ids), ids.flip(0))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0] / 4)


class Docs(Case):
    def test_docstrings(self):
        objects = {"nrg.torch": nrg.torch, **{name: getattr(nrg.torch, name) for name in nrg.torch.__all__},
                   "RMSNorm.forward": nrg.torch.RMSNorm.forward, "LayerNorm.forward": nrg.torch.LayerNorm.forward}
        runner, report = doctest.DocTestRunner(), []
        for name, value in objects.items():
            test = doctest.DocTestParser().get_doctest(inspect.getdoc(value), {"torch": torch, "nrg": nrg}, name, None, 0)
            self.assertTrue(test.examples, name)
            runner.run(test, out=report.append)
        self.assertEqual(runner.failures, 0, "".join(report))

    def test_page(self):
        text = PAGE.read_text(encoding="utf-8").split("\n## PyTorch\n")[1].split("\n## ")[0].replace("```", "")
        test = doctest.DocTestParser().get_doctest(text, {}, "python.md", str(PAGE), 0)
        self.assertGreater(len(test.examples), 5)
        report, runner = [], doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        runner.run(test, out=report.append)
        self.assertEqual(runner.failures, 0, "".join(report))


if __name__ == "__main__":
    unittest.main()
