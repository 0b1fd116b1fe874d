"""The model of examples/transformer in double precision, written from its description: forward, backward, AdamW, and what is drawn.
No line of it is shared with the program. SPDX-License-Identifier: MIT"""
import numpy as np

EPS = 1e-6
U64 = np.uint64


def drawn(seed, n):
    """SplitMix64 of a seed and a counter, arrays of the latter."""
    with np.errstate(over="ignore"):
        z = U64(seed) * U64(0xD1342543DE82EF95) + (np.asarray(n, U64) + U64(1)) * U64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> U64(30))) * U64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> U64(27))) * U64(0x94D049BB133111EB)
        return z ^ (z >> U64(31))


class Shape:
    def __init__(self, layers, dim, heads, kv_heads, head, ff, context):
        self.layers, self.dim, self.heads, self.kv_heads = layers, dim, heads, kv_heads
        self.head, self.ff, self.context = head, ff, context
        self.q, self.kv = heads * head, kv_heads * head

    def tensors(self):
        """Names and shapes, in the order in which a checkpoint has them."""
        yield "embedding", (256, self.dim)
        yield "norm", (self.dim,)
        for i in range(self.layers):
            yield f"{i}.norm1", (self.dim,)
            yield f"{i}.qkv", (self.dim, self.q + 2 * self.kv)
            yield f"{i}.q_norm", (self.head,)
            yield f"{i}.k_norm", (self.head,)
            yield f"{i}.out", (self.q, self.dim)
            yield f"{i}.norm2", (self.dim,)
            yield f"{i}.up", (self.dim, 2 * self.ff)
            yield f"{i}.down", (self.ff, self.dim)

    def split(self, flat):
        found, at = {}, 0
        for name, shape in self.tensors():
            size = int(np.prod(shape))
            found[name] = flat[at:at + size].reshape(shape)
            at += size
        assert at == flat.size, (at, flat.size)
        return found

    def first_weights(self, seed):
        f = np.float32
        less = np.sqrt(f(1) / f(2 * self.layers))

        def scattered(shape, inputs, number, factor=f(1)):
            width = f(1.7320508) * factor * np.sqrt(f(1) / f(inputs))
            bits = drawn(drawn(seed, number), np.arange(np.prod(shape), dtype=U64)) >> U64(40)
            return ((bits.astype(np.int64) - 2**23).astype(f) * f(2.0**-23) * width).reshape(shape).astype("f8")

        w = {name: np.ones(shape) for name, shape in self.tensors()}
        w["embedding"] = scattered((256, self.dim), self.dim, 0)
        for i in range(self.layers):
            w[f"{i}.qkv"] = scattered(w[f"{i}.qkv"].shape, self.dim, 4 * i + 1)
            w[f"{i}.out"] = scattered(w[f"{i}.out"].shape, self.q, 4 * i + 2, less)
            w[f"{i}.up"] = scattered(w[f"{i}.up"].shape, self.dim, 4 * i + 3)
            w[f"{i}.down"] = scattered(w[f"{i}.down"].shape, self.ff, 4 * i + 4, less)
        return w


def windows(text, seed, step, sequences, context):
    start = drawn(drawn(seed, step), np.arange(sequences, dtype=U64)) % U64(len(text) - context)
    at = start.astype(int)[:, None] + np.arange(context + 1)
    found = np.frombuffer(text, "u1")[at].astype(int)
    return found[:, :-1], found[:, 1:]


def norm(x, w):
    rstd = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + EPS)
    return x * rstd * w, (x, rstd, w)


def norm_backward(d, kept):
    x, rstd, w = kept
    h, dh = x * rstd, d * w
    dw = (d * h).reshape(-1, x.shape[-1]).sum(0)
    return (dh - h * (dh * h).mean(-1, keepdims=True)) * rstd, dw


def rotation(shape):
    angle = np.arange(shape.context)[:, None] * 10000.0**(-2 * np.arange(shape.head // 2) / shape.head)
    return np.cos(angle), np.sin(angle)


def rotate(x, cos, sin):
    """x [batch, heads, tokens, head]; halves make pairs."""
    a, b = np.split(x, 2, -1)
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def heads_of(x, heads, head):
    return x.reshape(*x.shape[:2], heads, head).transpose(0, 2, 1, 3)


def rows_of(x):
    b, heads, tokens, head = x.shape
    return x.transpose(0, 2, 1, 3).reshape(b, tokens, heads * head)


def product_backward(x, w, d):
    return d @ w.T, np.tensordot(x, d, ((0, 1), (0, 1)))


def run(s, w, given, wanted, gradients=True):
    """Mean loss in nats, and the gradients of all tensors."""
    cos, sin = rotation(s)
    x = w["embedding"][given] * np.sqrt(s.dim)
    kept, group = [], s.heads // s.kv_heads
    seen = np.tril(np.ones((s.context, s.context), bool))
    for i in range(s.layers):
        k = {}
        normed, k["norm1"] = norm(x, w[f"{i}.norm1"])
        qkv = normed @ w[f"{i}.qkv"]
        q, kk, v = np.split(qkv, [s.q, s.q + s.kv], -1)
        q, k["q_norm"] = norm(heads_of(q, s.heads, s.head), w[f"{i}.q_norm"])
        kk, k["k_norm"] = norm(heads_of(kk, s.kv_heads, s.head), w[f"{i}.k_norm"])
        q, kk = rotate(q, cos, sin), np.repeat(rotate(kk, cos, sin), group, 1)
        v = np.repeat(heads_of(v, s.kv_heads, s.head), group, 1)
        scores = np.where(seen, q @ kk.swapaxes(-1, -2) / np.sqrt(s.head), -np.inf)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        heads = rows_of(p @ v)
        x = x + heads @ w[f"{i}.out"]
        normed2, k["norm2"] = norm(x, w[f"{i}.norm2"])
        a, b = np.split(normed2 @ w[f"{i}.up"], 2, -1)
        sigmoid = 1 / (1 + np.exp(-a))
        gated = a * sigmoid * b
        x = x + gated @ w[f"{i}.down"]
        k.update(normed=normed, q=q, k=kk, v=v, p=p, heads=heads, normed2=normed2, a=a, b=b, sigmoid=sigmoid, gated=gated)
        kept.append(k)
    normed, of_norm = norm(x, w["norm"])
    logits = normed @ w["embedding"].T
    logits -= logits.max(-1, keepdims=True)
    chances = np.exp(logits)
    total = chances.sum(-1, keepdims=True)
    picked = np.take_along_axis(logits, wanted[..., None], -1)
    loss = (np.log(total) - picked).mean()
    if not gradients:
        return loss, None

    d = {}
    d_logits = chances / total
    np.put_along_axis(d_logits, wanted[..., None], np.take_along_axis(d_logits, wanted[..., None], -1) - 1, -1)
    d_logits /= wanted.size
    d_normed, d_transposed = product_backward(normed, w["embedding"].T, d_logits)
    d["embedding"] = d_transposed.T.copy()
    dx, d["norm"] = norm_backward(d_normed, of_norm)
    for i in reversed(range(s.layers)):
        k = kept[i]
        d_gated, d[f"{i}.down"] = product_backward(k["gated"], w[f"{i}.down"], dx)
        da = d_gated * k["b"] * k["sigmoid"] * (1 + k["a"] * (1 - k["sigmoid"]))
        db = d_gated * k["a"] * k["sigmoid"]
        d_normed, d[f"{i}.up"] = product_backward(k["normed2"], w[f"{i}.up"], np.concatenate([da, db], -1))
        step, d[f"{i}.norm2"] = norm_backward(d_normed, k["norm2"])
        dx = dx + step
        d_heads, d[f"{i}.out"] = product_backward(k["heads"], w[f"{i}.out"], dx)
        d_heads = heads_of(d_heads, s.heads, s.head)
        dp = d_heads @ k["v"].swapaxes(-1, -2)
        ds = k["p"] * (dp - (dp * k["p"]).sum(-1, keepdims=True)) / np.sqrt(s.head)
        dq, dk, dv = ds @ k["k"], ds.swapaxes(-1, -2) @ k["q"], k["p"].swapaxes(-1, -2) @ d_heads
        grouped = lambda t: t.reshape(t.shape[0], s.kv_heads, group, *t.shape[2:]).sum(2)
        dq, d[f"{i}.q_norm"] = norm_backward(rotate(dq, cos, -sin), k["q_norm"])
        dk, d[f"{i}.k_norm"] = norm_backward(rotate(grouped(dk), cos, -sin), k["k_norm"])
        d_qkv = np.concatenate([rows_of(dq), rows_of(dk), rows_of(grouped(dv))], -1)
        d_normed, d[f"{i}.qkv"] = product_backward(k["normed"], w[f"{i}.qkv"], d_qkv)
        step, d[f"{i}.norm1"] = norm_backward(d_normed, k["norm1"])
        dx = dx + step
    np.add.at(d["embedding"], given, dx * np.sqrt(s.dim))
    return loss, d


class AdamW:
    def __init__(self, w, rate, steps, warmup, decay, beta1=0.9, beta2=0.98, eps=1e-8, longest=1.0):
        self.w, self.rate, self.steps, self.warmup, self.decay = w, rate, steps, warmup, decay
        self.beta1, self.beta2, self.eps, self.longest, self.step = beta1, beta2, eps, longest, 0
        self.m = {name: np.zeros_like(t) for name, t in w.items()}
        self.v = {name: np.zeros_like(t) for name, t in w.items()}

    def take(self, d):
        self.step += 1
        n = self.step
        rate = self.rate * (n / self.warmup if n <= self.warmup else
                            1 - 0.95 * (n - self.warmup) / (self.steps - self.warmup))
        scale = min(1.0, self.longest / np.sqrt(sum((t * t).sum() for t in d.values())))
        for name, w in self.w.items():
            g = d[name] * scale
            self.m[name] += (1 - self.beta1) * (g - self.m[name])
            self.v[name] += (1 - self.beta2) * (g * g - self.v[name])
            m, v = self.m[name] / (1 - self.beta1**n), self.v[name] / (1 - self.beta2**n)
            w -= rate * (m / (np.sqrt(v) + self.eps) + (self.decay if w.ndim == 2 else 0) * w)
