#!/usr/bin/env python3
"""Replaces the norms of a PyTorch model by nrg's, compares results and gradients, and measures the speedup.

    torch_model.py           dim 1024, 512 tokens, 2 layers, one thread; about 20 seconds
    torch_model.py --small   a few seconds, for tests: its times mean nothing
"""
import copy
import sys
import time

import torch
import torch.nn.functional as F

import nrg.torch

SMALL = "--small" in sys.argv[1:]
DIM, HEADS, TOKENS, LAYERS, SECONDS = (64, 2, 32, 2, 0.05) if SMALL else (1024, 16, 512, 2, 0.7)


class Block(torch.nn.Module):
    """A decoder layer as in Llama."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.RMSNorm(DIM, eps=1e-6), torch.nn.RMSNorm(DIM, eps=1e-6)
        self.qkv, self.out = torch.nn.Linear(DIM, 3 * DIM, bias=False), torch.nn.Linear(DIM, DIM, bias=False)
        self.gate_up, self.down = torch.nn.Linear(DIM, 4 * DIM, bias=False), torch.nn.Linear(2 * DIM, DIM, bias=False)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


def step(model, x):
    """Forward and backward."""
    model.zero_grad()
    result = model(x)
    result.square().mean().backward()
    return result


def compare(calls):
    """The least CPU time of each call, in milliseconds. The calls alternate, so that other programs disturb all of them alike."""
    for call in calls * 2:
        call()
    best, until, runs = [float("inf")] * len(calls), time.monotonic() + SECONDS * len(calls), 0
    while time.monotonic() < until or runs < 5:
        for i, call in enumerate(calls):
            start = time.thread_time()
            call()
            best[i] = min(best[i], (time.thread_time() - start) * 1e3)
        runs += 1
    return best


def report(name, theirs, ours):
    print(f"{name:34} PyTorch {theirs:9.3f} ms   nrg {ours:9.3f} ms   speedup {theirs / ours:.2f}x", flush=True)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)  # so that the CPU time of this thread is the time of a call
    before = torch.nn.Sequential(*(Block() for _ in range(LAYERS)))
    after = nrg.torch.replace_norms(copy.deepcopy(before))
    x = torch.randn(1, TOKENS, DIM)
    results = step(before, x).detach(), step(after, x).detach()
    print(f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} threads; nrg {nrg.version()}, {nrg.isa()}")
    print(f"{LAYERS} layers, dim {DIM}, {TOKENS} tokens, float32")
    error = (results[0] - results[1]).abs().max().item()
    gradient = max((a.grad - b.grad).abs().max().item() / a.grad.abs().max().item() for a, b in zip(before.parameters(), after.parameters()))
    print(f"largest difference: results {error:.1e}, gradients {gradient:.1e} of the largest")
    assert error < 1e-4 and gradient < 1e-4

    with torch.no_grad():
        report("RMSNorm", *compare([lambda m=m: m[0].norm1(x) for m in (before, after)]))
        report("the model", *compare([lambda m=m: m(x) for m in (before, after)]))
    given = x.clone().requires_grad_()
    d = torch.randn_like(x)
    report("RMSNorm, forward and backward", *compare([lambda m=m: m[0].norm1(given).backward(d) for m in (before, after)]))
    report("the model, forward and backward", *compare([lambda m=m: step(m, x) for m in (before, after)]))
    gate_up, target = torch.randn(TOKENS, 4 * DIM), torch.randint(0, 4 * DIM, (TOKENS,))
    with torch.no_grad():
        report("SwiGLU", *compare([lambda: F.silu(gate_up[:, :2 * DIM]) * gate_up[:, 2 * DIM:], lambda: nrg.torch.swiglu(gate_up)]))
        report("softmax", *compare([lambda: F.softmax(gate_up, -1), lambda: nrg.torch.softmax(gate_up)]))
        report("cross-entropy", *compare([lambda: F.cross_entropy(gate_up, target), lambda: nrg.torch.cross_entropy(gate_up, target)]))
        report("LayerNorm", *compare([lambda: F.layer_norm(x, (DIM,)), lambda: nrg.torch.layer_norm(x, DIM)]))


if __name__ == "__main__":
    main()
