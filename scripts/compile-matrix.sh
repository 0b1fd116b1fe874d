#!/usr/bin/env bash
# Compiles src/avx2/norm.c and src/calls/norm.c for the CPUs that builds of x86-64 are tuned for, in C11 and in GNU dialects, with gcc
# and clang. Links nrg.c with link-time optimization, and with --full also without optimization.
#
#   scripts/compile-matrix.sh [--full] WORK-DIR
#
# It skips a combination if its preprocessed text equals that of another dialect: dialects differ in macros, and in -ffp-contract and
# -fexcess-precision, which the sources set or check. Without --full, gcc stops after early inlining (-flto) and clang after its front
# end. Both then still report an always_inline function of another target, which the script checks first; nrg.c has only norms,
# forward. --full generates all code, for all of nrg.c.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

full=0
if [[ ${1-} == --full ]]; then
    full=1
    shift
fi
(($# == 1)) || die "usage: compile-matrix.sh [--full] WORK-DIR"
work=$(realpath -m "$1")
fresh "$work"
cd "$root"
launcher=()
! command -v ccache >/dev/null || launcher=(ccache)
common=(-ffp-contract=off -fno-math-errno -Wall -Wextra -Werror)
mapfile -t avx2 < <(awk '$1 == "path" && $2 == "avx2" { for (i = 4; i <= NF; i++) print $i }' src/sources.txt)
declare -A stop=([gcc]=-flto [clang]="-emit-llvm -Xclang -disable-llvm-passes")
((!full)) || stop=([gcc]='' [clang]='')

# A function that calls one of AVX-512 is refused by -c -O1, and not by -fsyntax-only.
cat >"$work/mismatch.c" <<'END'
#include <immintrin.h>
float sum(const float *p);
float sum(const float *p) { return _mm512_reduce_add_ps(_mm512_loadu_ps(p)); }
END

for compiler in gcc clang; do
    # shellcheck disable=SC2086
    if "$compiler" -mavx2 -O1 ${stop[$compiler]} -c "$work/mismatch.c" -o "$work/mismatch.o" 2>"$work/said" ||
        ! grep -q "always_inline.*_mm512_loadu_ps" "$work/said"; then
        die "$compiler does not report an always_inline function of another target: this tests nothing"
    fi
    cpus=() unknown=()
    for cpu in -march={x86-64,x86-64-v3,x86-64-v4,haswell,sapphirerapids,znver4,native} -mavx512fp16; do
        if "$compiler" "$cpu" -fsyntax-only -xc /dev/null 2>/dev/null; then cpus+=("$cpu"); else unknown+=("$cpu"); fi
    done
    for cpu in "${cpus[@]}"; do
        for file in src/avx2/norm.c src/calls/norm.c; do
            options=("${common[@]}" "$cpu")
            [[ $file != src/avx2/* ]] || options+=("${avx2[@]}")
            texts=' '
            for dialect in gnu17 gnu11 c11; do
                text=$("$compiler" "-std=$dialect" "${options[@]}" -O1 -E -P "$file" | cksum | tr ' ' -)
                [[ $texts != *" $text "* ]] || continue
                texts+="$text "
                say "${launcher[*]} $compiler -std=$dialect ${options[*]} -O1 ${stop[$compiler]} -c $file"
            done
        done
    done >"$work/commands"
    awk -v out="$work/object-" '{ print $0 " -o " out NR ".o" }' "$work/commands" >"$work/$compiler.sh"
    tr '\n' '\0' <"$work/$compiler.sh" | xargs -0 -P "$(nproc)" -n 1 sh -c || die "$compiler: one of these combinations does not compile"
    say "$compiler: 3 dialects for ${cpus[*]#-march=}: $(wc -l <"$work/commands") different compilations${unknown:+; it does not support ${unknown[*]#-march=}}"
done

"$root/scripts/amalgamate.sh" "$work" >"$work/amalgamate.log"
definitions=()
if ((!full)); then
    for family in activation channel_norm rope recurrent embed relative score_bias quantize softmax backward; do
        definitions+=("-DNRG_NO_${family^^}")
    done
    definitions=("${definitions[@]/-DNRG_NO_ACTIVATION/-DNRG_NO_GENERIC}") # norms need activations
fi
# link NAME COMPILER OPTION ...
link() {
    local name=$1 compiler=$2 said
    shift 2
    quietly "$work/$name.log" "${launcher[@]}" "$compiler" "$@" "${definitions[@]}" -march=native -c "$work/nrg.c" -o "$work/$name.o"
    quietly "$work/$name.log" "$compiler" "$@" "${definitions[@]}" -march=native -Iinclude tests/consumer/consumer.c "$work/$name.o" -lm -o "$work/$name"
    said=$("$work/$name")
    [[ $said == "nrg on "* ]] || die "$name says: $said"
    say "nrg.c, $compiler $*, -march=native: $said"
}
link gcc-lto gcc -O1 -flto
if ((full)); then
    link gcc-O0 gcc -O0
    link clang-O0 clang -O0
fi
