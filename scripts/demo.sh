#!/usr/bin/env bash
# From a bare Debian or Ubuntu to the library at work: installs what is missing, builds a release in build/, then
#   1. nrg info      which path this machine runs
#   2. nrg check     whether every path of it gives the scalar path's bits
#   3. nrg norm      of arrays that NumPy made, held against NumPy in double precision: add + RMSNorm, the gated norm of Mamba-2,
#                    and the backward pass of add + RMSNorm
#   4. nrg channel-norm   likewise: GroupNorm + SiLU, and batch norm + add + ReLU: a step of training, forward and backward
#   5. transformer   a small language model: one hash on every path; learning, half a minute with AVX-512 and minutes without, and what it then writes
#   6. ggml         a layer in its graph with nrg in custom ops, where scripts/ggml.sh has set up a Debian that has it
#   7. nrg-bench     how fast, beside the limit of this machine's memory and beside plain loops
# A second run installs nothing and builds only what has changed.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

title() { printf '\n=== %s ===\n' "$*"; }

"$root/scripts/setup.sh" demo

build=$root/build
title "build/: a release"
if [[ ! -f $build/build.ninja ]]; then
    quietly "$build/demo.setup.log" meson setup "$build" "$root" --buildtype release -Dtests=false -Dbench=true -Dexamples=true -Dmpi=false
else
    quietly "$build/demo.setup.log" meson configure "$build" -Dbench=true -Dexamples=true -Dtools=true # one that was there may lack them
fi
quietly "$build/demo.compile.log" meson compile -C "$build"
say "build/libnrg.so, build/libnrg.a, build/tools/nrg, build/bench/nrg-bench, build/examples/"

title "nrg info"
"$build/tools/nrg" info

title "nrg check"
"$build/tools/nrg" check

title "nrg norm: r = x + y, o = rms_norm(r) * w, 512 rows of 4096"
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

title "nrg norm: the gated norm of Mamba-2, rms_norm(x * silu(z)) * w in 8 groups"
(
    cd "$work"
    set -x
    "$build/tools/nrg" norm --rms --x x.npy --z z.npy --w w.npy --gate pre --act silu --groups 8 --o g.npy --eps 1e-5
)
"$python" "$root/scripts/demo_norm.py" gate "$work" 1e-5 8

title "nrg norm: backward of o = rms_norm(x + y) * w"
(
    cd "$work"
    set -x
    "$build/tools/nrg" norm --backward --rms --x x.npy --y y.npy --w w.npy --do do.npy --dx dx.npy --dy dy.npy --dw dw.npy --eps 1e-6
)
"$python" "$root/scripts/demo_norm.py" backward "$work" 1e-6

title "nrg channel-norm: SiLU of group norm, 4 samples of 320 channels in 32 groups, 32 x 32 positions"
(
    cd "$work"
    set -x
    "$build/tools/nrg" channel-norm --over group --groups 32 --x images.npy --w cw.npy --b cb.npy --act silu --o co.npy --eps 1e-5
)
"$python" "$root/scripts/demo_norm.py" group "$work" 1e-5 32

title "nrg channel-norm: a step of training of relu(batch_norm(x) + y)"
(
    cd "$work"
    set -x
    "$build/tools/nrg" channel-norm --x images.npy --y residual.npy --w cw.npy --b cb.npy --act relu --o co.npy --eps 1e-5 \
        --train --running-mean-out running_mean.npy --running-var-out running_var.npy
    "$build/tools/nrg" channel-norm --backward --x images.npy --y residual.npy --w cw.npy --b cb.npy --act relu --do cdo.npy --eps 1e-5 \
        --dx cdx.npy --dy cdy.npy --dw cdw.npy --db cdb.npy
)
"$python" "$root/scripts/demo_norm.py" batch "$work" 1e-5

title "transformer: weights and logits of a small model that learns, one hash on every path"
transformer=$build/examples/transformer/transformer
"$transformer" check

if [[ -f /usr/share/common-licenses/MPL-2.0 && -f /usr/share/common-licenses/CC0-1.0 ]]; then
    title "transformer: 150 steps on Debian's licences (its default is 500), and what it then writes"
    (
        cd "$work"
        set -x
        "$transformer" train --steps 150 --every 150
        "$transformer" generate transformer.ckpt "You may copy" --bytes 300
    )
fi

title "ggml: a layer of a Llama and of a Qwen3 in its graph, with its own ops and with nrg in custom ops"
if [[ -f ${NRG_SID_DIR:-/var/tmp/nrg-sid}/sid/nrg-done && $(id -u) == 0 ]]; then
    "$root/scripts/ggml.sh" 0.02
else
    say "scripts/ggml.sh, as root, sets up a folder with Debian sid outside of this tree, 500 MB, and runs it there; once that is done it runs here too."
    say "What it printed is in docs/howto/engine.md."
fi

title "nrg-bench: time of a call, its share of what a bare loop over the same bytes reaches, and how long plain loops take"
pin=()
if command -v taskset >/dev/null; then
    # the last CPU we may use: the first one has most of the interrupts
    cpus=$(taskset -pc $$ | sed 's/.*[ ,-]//')
    pin=(taskset -c "$cpus")
fi
"${pin[@]}" "$build/bench/nrg-bench" --table --quick
