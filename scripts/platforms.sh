#!/usr/bin/env bash
# Asks clang whether the sources are right for platforms that are not at hand: syntax and types, for the target's own choices of
# paths and headers, with stand-ins for headers of its C library (tests/platforms/headers). Nothing is linked or run.
#
#   scripts/platforms.sh [--full]        --full: all of the sources for each
#
# cl.exe's view of the sources is what clang sees as that target without being clang: no GNU word may be left in it, and it has to be
# C11 by itself. What is refused has to be refused in the sentence that says why.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cd "$root"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
headers=tests/platforms/headers
# the bits in conditions are joined on purpose; elsewhere isnan() and its like are builtins, and clang does not mind
flags=(-std=c11 -ffreestanding -nostdlibinc -isystem "$headers" -ffp-contract=off -Wall -Wextra -Wpedantic -Werror
    -Wno-bitwise-instead-of-logical)
core=(src/*.c src/calls/*.c src/exact/*.c src/operands/*.c src/tables/*.c src/scalar/*.c)
avx2=(-mavx2 -mfma -mf16c) avx512=(-mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c)
# without clang's names for itself and its integers, and for the CPU where no header of clang's own needs that; a pragma and keywords of Microsoft's are
# no warning
cl=(--target=x86_64-pc-windows-msvc -U__clang__ -U__SIZEOF_INT128__ -isystem "$headers/cl" -Wno-unknown-pragmas -Wno-language-extension-token)
no_cpu=(-U__x86_64__ -U__x86_64)
failed=0 full=0
[[ ${1-} != --full ]] || full=1

# right NAME CLANG-OPTION ... -- FILE ...: in batches, one a core
right() {
    local name=$1 options=() files
    shift
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    shift
    files=("$@")
    if printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 24 clang "${flags[@]}" "${options[@]}" -fsyntax-only 2>"$work/said"; then
        say "$name: ${#files[@]} files"
    else
        head -n 20 "$work/said"
        say "FAILED: $name"
        failed=1
    fi
}

# refused NAME SENTENCE CLANG-OPTION ...
refused() {
    local name=$1 sentence=$2
    shift 2
    if ! clang "${flags[@]}" "$@" -fsyntax-only src/dispatch.c 2>"$work/said" && grep -q "error: \"$sentence" "$work/said"; then
        say "$name: refused: $sentence"
    else
        head -n 20 "$work/said"
        say "FAILED: $name is not refused in a sentence"
        failed=1
    fi
}

# What cl.exe is shown of the repository's own files. Intrinsics are its business: their headers are empty here.
words_for_cl() {
    mkdir -p "$work/empty"
    : >"$work/empty/immintrin.h"
    : >"$work/empty/intrin.h"
    printf '%s\n' "${core[@]}" src/avx2/*.c src/avx512/*.c |
        xargs -P "$(nproc)" -n 24 clang "${flags[@]}" -isystem "$work/empty" "${cl[@]}" "${no_cpu[@]}" -D__AVX2__ -E |
        awk '/^# [0-9]+ "/ { own = $3 ~ /"(src|include\/nrg)\// } own' >"$work/cl.c" || return 1
    [[ $(wc -l <"$work/cl.c") -gt 100000 ]] || return 1
    # offsetof is clang's own header's
    ! sed 's/__builtin_offsetof//g' "$work/cl.c" | grep -nE '__attribute__|__builtin_|__asm__|__extension__|typeof|__int128|\(\{|vector_size|GCC' | head
}

right "Windows, clang's MSVC dialect" --target=x86_64-pc-windows-msvc -- "${core[@]}" src/generic/*.c
right "Windows on Arm64, clang's MSVC dialect" --target=aarch64-pc-windows-msvc -- src/*.c src/neon/*.c
right "as cl.exe sees it" "${cl[@]}" "${no_cpu[@]}" -- "${core[@]}"
right "as cl.exe sees it, AVX2" "${cl[@]}" "${avx2[@]}" -- src/avx2/*.c
if words_for_cl; then
    say "as cl.exe sees it: no word of GNU C"
else
    say "FAILED: what cl.exe sees"
    failed=1
fi
right "macOS on Arm64" --target=arm64-apple-macos11 -- src/*.c src/neon/*.c
right "macOS on x86-64" --target=x86_64-apple-macos10.15 "${avx2[@]}" -- src/*.c src/avx2/*.c
right "Android on Arm64, API level 18 and later" --target=aarch64-linux-android21 -- src/*.c src/neon/*.c
right "32-bit x86 with SSE2" --target=i686-linux-gnu -msse2 -mfpmath=sse -- src/*.c src/calls/*.c src/operands/*.c
refused "32-bit x86 with x87" "nrg needs float arithmetic in float" --target=i686-linux-gnu
refused "s390x" "nrg is for little-endian targets" --target=s390x-linux-gnu
refused "POWER, big-endian" "nrg is for little-endian targets" --target=powerpc64-linux-gnu
if ((full)); then
    right "Windows, clang's MSVC dialect, AVX2" --target=x86_64-pc-windows-msvc "${avx2[@]}" -- src/avx2/*.c
    right "Windows, clang's MSVC dialect, AVX-512" --target=x86_64-pc-windows-msvc "${avx512[@]}" -- src/avx512/*.c
    right "as cl.exe sees it, AVX-512" "${cl[@]}" "${avx512[@]}" -- src/avx512/*.c
    right "macOS on Arm64, the rest" --target=arm64-apple-macos11 -- "${core[@]}" src/generic/*.c
fi
exit "$failed"
