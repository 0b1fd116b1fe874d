#!/usr/bin/env bash
# Makes nrg.c and nrg.h and compiles them as docs/howto/one-file.md says and as users do who forget its flags; what comes of it has the
# bits of tests/hashes.txt.
#
# shellcheck disable=SC2317 # functions that are called by a name in a variable
#
#   scripts/amalgamation-check.sh [--full] WORK-DIR
#
# Without --full some families are compiled, for the paths of this CPU and less optimized, and the rest is parsed. None of the
# commands has -ffp-contract=off: gcc and clang fuse by default, AArch64 has the instruction everywhere and clang gets -mfma here, so
# that the bits show what nrg.c itself keeps them from. --full: all families, with the flags and warnings of the document as well;
# and that the bits are others without what keeps gcc from fusing, since otherwise none of this would say anything.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

full=0
if [[ ${1-} == --full ]]; then
    full=1
    shift
fi
(($# == 1)) || die "usage: amalgamation-check.sh [--full] WORK-DIR"
work=$(realpath -m "$1")
fresh "$work"
expected=$work/hashes.txt
kept_hashes --quick >"$expected"
machine=$(uname -m)

"$root/scripts/amalgamate.sh" "$work"
"$root/scripts/amalgamate.sh" "$work/again"
cmp "$work/nrg.c" "$work/again/nrg.c"
cmp "$work/nrg.h" "$work/again/nrg.h"
cd "$work"
gcc -x c -std=c99 -Wall -Wextra -Wpedantic -Werror -fsyntax-only nrg.h
g++ -x c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only nrg.h
# a program may include either header, and with them the same program compiles as with an installed library
for include in '<nrg/nrg.h>' '"nrg/nrg.h"' '"nrg.h"' '<nrg.h>'; do
    { say "#include $include" && grep -v '^#include .*nrg\.h' "$root/tests/consumer/consumer.c"; } >consumer.c
    gcc -std=c99 -Wall -Wextra -Werror -I "$work" -fsyntax-only consumer.c
done
gcc -std=c11 -ffp-contract=off -Wall -Wextra -Werror -fsyntax-only nrg.c
if gcc -ffast-math -fsyntax-only nrg.c 2>said || ! grep -q '#error.*fast-math' said; then
    die "nrg.c compiles with -ffast-math, or does not say why it will not"
fi

# object NAME COMPILER OPTION ...: without the families of left_out
object() {
    local name=$1 family
    shift
    for family in "${left_out[@]}"; do
        set -- "$@" "-DNRG_NO_${family^^}"
    done
    "$@" -c "${source:-nrg.c}" -o "$name.o"
}

# hashes PROGRAM PATH RUNNER ...: its ops; all are expected, and there are some
hashes() {
    local program=$1 path=$2 strange
    shift 2
    "$@" "$program" --hash --quick --isa "$path" ${ops:+--op "$ops"} </dev/null 2>/dev/null >"$program.$path" || die "$program: $path does not run"
    strange=$(grep -vxFf "$expected" "$program.$path" || true)
    [[ -z $strange ]] || die "$program: other bits on $path: $(head -n 3 <<<"$strange")"
    [[ -s $program.$path ]] || die "$program: no op on $path"
    say "$program, $path: $(wc -l <"$program.$path") hashes of tests/hashes.txt"
}

# same_bits NAME [PATHS]: of the paths that run here
same_bits() {
    local path paths=${2-$(cpu_paths)}
    gcc check/*.o "$1.o" -lm -o "$1"
    for path in ${paths//,/ }; do
        hashes "./$1" "$path"
    done
}

# What is not a path's own has no instruction of AVX: it would run before a path is chosen.
no_avx_outside() {
    objdump -d --no-show-raw-insn "$1.o" | awk '
        /^[0-9a-f]+ <.*>:$/ { name = $2; functions++ }
        $2 ~ /^v/ && name !~ /avx/ { print name, $0; bad = 1; exit }
        $2 ~ /^v/ { vectors++ }
        END { exit bad || !functions || !vectors }' || die "$1: AVX outside of its paths, or none at all"
}

wait_all() {
    local job status=0
    for job in "$@"; do
        wait "$job" || status=1
    done
    return "$status"
}

gcc_options=(-O2)
clang_options=(-O2)
[[ $machine != x86_64 ]] || clang_options+=(-mfma)
# the cases of norms are others without backward passes and quantized rows, and so are their hashes
few=(channel_norm recurrent embed relative score_bias softmax rope)
clang_paths=$(cpu_paths)
if ((!full)); then
    left_out=("${few[@]}")
    # two thirds of the time of -O2; what fuses runs with it, and not with -O1 alone
    gcc_options=(-O1 -fexpensive-optimizations)
    clang_options[0]=-O1
    if [[ $machine == x86_64 && ,$clang_paths, != *,avx512,* ]]; then
        gcc_options+=(-DNRG_NO_AVX512)
        clang_options+=(-DNRG_NO_AVX512)
    fi
    clang_options+=(-DNRG_NO_GENERIC) # the slowest to compile; gcc has it
    clang_paths=${clang_paths/,generic/}
fi

# Each a chain of its own, so that no core waits: what is compiled by one compiler is looked at while others compile.
chain_gcc() {
    object gcc gcc "${gcc_options[@]}"
    [[ $machine != x86_64 ]] || no_avx_outside gcc
    same_bits gcc
}
chain_clang() {
    object clang clang "${clang_options[@]}"
    same_bits clang "$clang_paths"
}
chain_arm() {
    local cross=aarch64-linux-gnu-gcc ops path said
    left_out=("${few[@]}")
    object arm "$cross" "${gcc_options[@]}" -DNRG_NO_GENERIC
    compile_check "$work" check-arm "$cross"
    "$cross" check-arm/*.o arm.o -lm -o arm
    for ops in norm_backward activation; do # the first has other bits where something is fused
        for path in scalar neon; do
            hashes ./arm "$path" qemu-aarch64 -L /usr/aarch64-linux-gnu
        done
    done
    ((full)) || return 0
    grep -v '^#pragma GCC optimize' nrg.c >fused.c
    source=fused.c object fused "$cross" "${gcc_options[@]}" -DNRG_NO_GENERIC
    "$cross" check-arm/*.o fused.o -lm -o fused
    if said=$( (ops=norm_backward && hashes ./fused neon qemu-aarch64 -L /usr/aarch64-linux-gnu) 2>&1); then
        die "without what keeps gcc from fusing the bits are the same: this looks at nothing"
    fi
    [[ $said == *"other bits on neon"* ]] || die "$said"
    say "without what keeps gcc from fusing the bits are others"
}
chain_c11() {
    local compiler
    for compiler in gcc clang; do
        object "$compiler-c11" "$compiler" -std=c11 -O2 -ffp-contract=off -Wall -Wextra -Werror
        same_bits "$compiler-c11"
    done
}

compile_check "$work" check gcc
chains=(chain_gcc chain_clang)
[[ $machine != x86_64 ]] || chains+=(chain_arm)
jobs=()
for chain in "${chains[@]}"; do
    "$chain" >"$chain.out" 2>&1 &
    jobs+=($!)
done
status=0
wait_all "${jobs[@]}" || status=1
for chain in "${chains[@]}"; do
    cat "$chain.out"
done
((status || !full)) || chain_c11 # not beside them: gcc takes 1.2 GB for all families
exit "$status"
