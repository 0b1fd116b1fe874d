#!/usr/bin/env python3
"""The deepest stack of any call into the library, from what gcc -fcallgraph-info=su wrote beside the objects.

    stack_use.py LIMIT FOLDER ...

Prints the way through the library that needs most, and fails if it is above LIMIT bytes, if a frame has no bound, or if functions
call each other in a circle.
A call through a pointer counts as a call of whichever kernel needs most, but for the functions in REACHES. Kernels of channel norms,
which need most of all, are called by the functions of channel norms alone.
Frames of the C library do not count.
"""
import pathlib
import re
import sys

NODE = re.compile(r'node: \{ title: "([^"]*)" label: "[^"]*?\\n[^"]*?\\n(\d+) bytes \(([^)]*)\)')
EDGE = re.compile(r'edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"')
INDIRECT = "__indirect_call"
DTYPE = "(f32|f16|bf16)"
KERNEL = re.compile(rf"nrg_(scalar|avx2|avx512|neon|generic)_\w+_{DTYPE}")
# Functions that call through a pointer while they hold much themselves, or that call no kernel: all that they can reach. <1>
# is what the first group of the caller's name matches.
REACHES = {"nrg_norm_forward": rf"nrg_[a-z0-9]+_norm_forward_{DTYPE}",
           "calls/norm.c:run_half": rf"nrg_[a-z0-9]+_norm_gated_{DTYPE}",
           "calls/norm.c:forward": rf"nrg_[a-z0-9]+_norm_(forward|gated|quantized|rms)_{DTYPE}",
           r"(generic|avx2|avx512|neon)/norm.c:begin_gated_tile": r".*/<1>/norm.c:sum_(gated_rows|tile_(layer|rms))\b.*",
           r"(generic|avx2|avx512|neon)/norm.c:instance_tiles_\w+": r".*/<1>/norm.c:sum_(exact_)?tile_(layer|rms)\b.*",
           r"(generic|avx2|avx512|neon)/norm.c:\w+": r".*/<1>/norm.c:exact_(layer|rms)\b.*",
           r"scalar/norm.c:\w+": r".*/scalar/norm.c:(activate|put_quantized)",
           "calls/norm_backward.c:run": rf"nrg_[a-z0-9]+_norm_backward_{DTYPE}",
           "nrg_norm_sandwich_forward": rf"nrg_[a-z0-9]+_norm_sandwich_(quantized_)?{DTYPE}",
           "calls/norm_sandwich.c:run_planes": rf"nrg_[a-z0-9]+_norm_sandwich_(quantized_)?{DTYPE}",
           r"(generic|avx2|avx512|neon)/activation.c:act_apart": r".*/<1>/activation.c:act_\w+_(values|slopes)\b.*",
           r"(generic|avx2|avx512|neon)/activation.c:\w+": r".*/<1>/activation.c:act_\w+_(values(_bf16)?|slopes|both)\b.*",
           r"nrg_(generic|avx2|avx512|neon)_activat\w+": r".*/<1>/activation.c:act_\w+_(values(_bf16)?|slopes|both)\b.*",
           "(scalar|generic|avx2|avx512|neon)/norm_sandwich.c:norm_sandwich": rf"nrg_<1>_norm_(forward|gated|quantized)_{DTYPE}",
           "calls/qkv.c:run": rf"nrg_[a-z0-9]+_(qkv|position_table)_{DTYPE}",
           "nrg_qkv_forward": rf"nrg_[a-z0-9]+_(qkv|position_table)_{DTYPE}",
           "nrg_qkv_backward": rf"nrg_[a-z0-9]+_(qkv|position_table)_{DTYPE}",
           "nrg_norm_rope_forward": rf"nrg_[a-z0-9]+_norm_rope_{DTYPE}",
           "nrg_norm_rope_backward": rf"nrg_[a-z0-9]+_rope_{DTYPE}",
           "scalar/norm_rope.c:norm_rope": rf"nrg_scalar_(norm_forward|norm_gated|rope)_{DTYPE}",
           r"(?:calls/glu.c:|nrg_glu_)[\w.]+": rf"nrg_[a-z0-9]+_glu\w*_{DTYPE}",
           r"(?:calls/channel_norm_backward.c:|nrg_channel_norm_backward)[\w.]*": rf"nrg_[a-z0-9]+_channel_norm_backward_{DTYPE}",
           r"(?:calls/channel_norm.c:|nrg_channel_norm_)[\w.]+": rf"nrg_[a-z0-9]+_channel_norm_forward_{DTYPE}",
           "nrg_check_options": r".*(operands|calls)/\w+\.c:\w+_call_measure"}



def main():
    limit = int(sys.argv[1])
    frames, calls = {}, {}
    for folder in sys.argv[2:]:
        for file in pathlib.Path(folder).rglob("*.ci"):
            text = file.read_text()
            for name, size, kind in NODE.findall(text):
                if kind not in ("static", "dynamic,bounded"):
                    sys.exit(f"{name}: a frame of no known size ({kind})")
                frames[name] = int(size)
            for caller, callee in EDGE.findall(text):
                calls.setdefault(caller, set()).add(callee)
    kernels = {name for name in frames if KERNEL.fullmatch(name)}
    if not kernels:
        sys.exit("no kernel found: was this built by gcc with -fcallgraph-info=su?")
    calls[INDIRECT] = {name for name in kernels if "_channel_norm_" not in name}
    for name, pattern in REACHES.items():
        for caller in (c for c in calls if INDIRECT in calls[c]):
            found = re.fullmatch(rf"(?:.*/)?{name}", caller)
            if not found:
                continue
            own = pattern
            for i, group in enumerate(found.groups(), 1):
                own = own.replace(f"<{i}>", group)
            reached = {kernel for kernel in frames if re.fullmatch(own, kernel)}
            if not reached:
                sys.exit(f"{caller}: nothing is named as what it calls")
            calls[caller].remove(INDIRECT)
            calls[caller].update(reached)

    deepest = {}

    def depth(name, above):
        """Bytes and the names on the way, name's own frame included."""
        if name in above:
            sys.exit("a circle of calls: " + ", ".join(above))
        if name not in deepest:
            below = max((depth(callee, above + [name]) for callee in calls.get(name, ())), default=(0, []))
            own = frames.get(name, 0)
            deepest[name] = (own + below[0], ([f"{name.split(':')[-1]} {own}"] if own else []) + below[1])
        return deepest[name]

    most, way = max(depth(name, []) for name in frames)
    print(f"stack of a call: at most {most} bytes of {limit} (" + ", ".join(way) + ")")
    sys.exit(most > limit)


main()
