#!/usr/bin/env bash
# Shows the library on this machine. Installs missing packages (Debian, Ubuntu), builds a release in build/, then runs:
#   1. nrg info           the CPU features and the active path
#   2. nrg check          compares every path with the scalar path, bit by bit
#   3. nrg norm           norms of NumPy arrays, compared with NumPy in double precision: add + RMSNorm, the gated norm of Mamba-2,
#                         and the backward pass of add + RMSNorm
#   4. nrg channel-norm   the same for GroupNorm + SiLU and for a training step of batch norm + add + ReLU
#   5. transformer        trains a small language model, with one hash on every path, and generates text: half a minute with AVX-512,
#                         minutes without
#   6. ggml               a layer of a model with nrg in custom ops, if scripts/ggml.sh has set up a Debian for it
#   7. nrg-bench          the speed of each path but scalar, compared with the memory roofline and plain C; the best path first
# A second run installs nothing and builds only what has changed.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

title() { printf '\n=== %s ===\n' "$*"; }

"$root/scripts/setup.sh" demo

build=$root/build
title "Release build in build/"
if [[ ! -f $build/build.ninja ]]; then
    quietly "$build/demo.setup.log" meson setup "$build" "$root" --buildtype release -Dtests=false -Dbench=true -Dexamples=true -Dmpi=false
else
    quietly "$build/demo.setup.log" meson configure "$build" -Dbench=true -Dexamples=true -Dtools=true # an older build may lack these
fi
quietly "$build/demo.compile.log" meson compile -C "$build"
say "Built: build/libnrg.so, build/libnrg.a, build/tools/nrg, build/bench/nrg-bench, build/examples/"

title "nrg info: this CPU, and the path that nrg selects"
"$build/tools/nrg" info

title "nrg check: does every path give the bits of the scalar path?"
"$build/tools/nrg" check

title "nrg norm: add + RMSNorm of 512 rows of 4096 elements: r = x + y, o = rms_norm(r) * w"
python=$(numpy_python)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" "$root/scripts/demo_norm.py" make "$work"
(
    cd "$work"
    set -x
    "$build/tools/nrg" norm --rms --x x.npy --y y.npy --w w.npy --r r.npy --o o.npy --eps 1e-6
)
"$python" "$root/scripts/demo_norm.py" compare "$work" 1e-6

title "nrg norm: the gated norm of Mamba-2 in 8 groups: rms_norm(x * silu(z)) * w"
(
    cd "$work"
    set -x
    "$build/tools/nrg" norm --rms --x x.npy --z z.npy --w w.npy --gate pre --act silu --groups 8 --o g.npy --eps 1e-5
)
"$python" "$root/scripts/demo_norm.py" gate "$work" 1e-5 8

title "nrg norm: the gradients of o = rms_norm(x + y) * w"
(
    cd "$work"
    set -x
    "$build/tools/nrg" norm --backward --rms --x x.npy --y y.npy --w w.npy --do do.npy --dx dx.npy --dy dy.npy --dw dw.npy --eps 1e-6
)
"$python" "$root/scripts/demo_norm.py" backward "$work" 1e-6

title "nrg channel-norm: GroupNorm in 32 groups, then SiLU; 4 images of 32 x 32 pixels with 320 channels"
(
    cd "$work"
    set -x
    "$build/tools/nrg" channel-norm --over group --groups 32 --x images.npy --w cw.npy --b cb.npy --act silu --o co.npy --eps 1e-5
)
"$python" "$root/scripts/demo_norm.py" group "$work" 1e-5 32

title "nrg channel-norm: a training step of relu(batch_norm(x) + y), forward and backward"
(
    cd "$work"
    set -x
    "$build/tools/nrg" channel-norm --x images.npy --y residual.npy --w cw.npy --b cb.npy --act relu --o co.npy --eps 1e-5 \
        --train --running-mean-out running_mean.npy --running-var-out running_var.npy
    "$build/tools/nrg" channel-norm --backward --x images.npy --y residual.npy --w cw.npy --b cb.npy --act relu --do cdo.npy --eps 1e-5 \
        --dx cdx.npy --dy cdy.npy --dw cdw.npy --db cdb.npy
)
"$python" "$root/scripts/demo_norm.py" batch "$work" 1e-5

title "transformer: a small model trains to the same weights and logits on every path"
transformer=$build/examples/transformer/transformer
"$transformer" check

if [[ -f /usr/share/common-licenses/MPL-2.0 && -f /usr/share/common-licenses/CC0-1.0 ]]; then
    title "transformer: trains 150 steps (default: 500) on Debian's licences, then generates text"
    (
        cd "$work"
        set -x
        "$transformer" train --steps 150 --every 150
        "$transformer" generate transformer.ckpt "You may copy" --bytes 300
    )
fi

title "ggml: layers of Llama and Qwen3, with the ops of ggml and with nrg in custom ops"
if [[ -f ${NRG_SID_DIR:-/var/tmp/nrg-sid}/sid/nrg-done && $(id -u) == 0 ]]; then
    "$root/scripts/ggml.sh" 0.02
else
    say "Skipped. Run scripts/ggml.sh as root once: it needs a folder with Debian sid (500 MB) outside of this tree."
    say "docs/howto/engine.md has results."
fi

pin=()
if command -v taskset >/dev/null; then
    # the last CPU that this process may use: the first one has most of the interrupts
    cpus=$(taskset -pc $$ | sed 's/.*[ ,-]//')
    pin=(taskset -c "$cpus")
fi
for path in $(cpu_paths | tr ',' '\n' | grep -vx scalar | tac); do
    title "nrg-bench: speed of the path $path"
    "${pin[@]}" "$build/bench/nrg-bench" --table --quick --path "$path"
done

title "What next"
say "Learn:  docs/tutorial.md builds a first program in C, then in Python, in 15 minutes."
say "Check:  build/tools/nrg check --full runs all cases on this machine in a few minutes."
say "Read:   docs/index.md lists the guides, the reference and the measurements."
