#!/usr/bin/env bash
# Checks with clang that the sources compile for platforms that we cannot run: syntax and types, with the paths and headers that each
# target selects, and with stand-ins for the headers of its C library (tests/platforms/headers). It links and runs nothing.
#
#   scripts/platforms.sh [--full]        --full: all sources for each platform, not only those that differ between them
#
# For the view of cl.exe, clang compiles for its target without clang's own macros: no GNU keyword may remain, and the code must be
# plain C11. The sources, meson and CMake must reject each unsupported target with the sentence that gives the reason.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cd "$root"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
headers=tests/platforms/headers
# the bits in conditions are joined on purpose
clang=(clang -std=c11 -ffreestanding -nostdlibinc -isystem "$headers" -ffp-contract=off -Wall -Wextra -Wpedantic -Werror
    -Wno-bitwise-instead-of-logical)
# without clang's names for itself and its integers, and for the CPU where no header of clang's own needs that; a pragma and keywords
# of Microsoft's are no warning
cl=(--target=x86_64-pc-windows-msvc -U__clang__ -U__SIZEOF_INT128__ -isystem "$headers/cl" -Wno-unknown-pragmas
    -Wno-language-extension-token)
no_cpu=(-U__x86_64__ -U__x86_64)
core=(src/*.c src/calls/*.c src/exact/*.c src/operands/*.c src/scalar/*.c)
# what asks for the platform, and of everything else a file
some=(src/*.c src/exact/*.c src/{calls,operands,scalar}/norm.c)
failed=0
[[ $# == 0 || ($# == 1 && $1 == --full) ]] || die "usage: scripts/platforms.sh [--full]"
full=$#

# flags_of PATH: what the builds compile it with
flags_of() { awk -v path="$1" '$1 == "path" && $2 == path { for (i = 4; i <= NF; i++) print $i }' src/sources.txt; }

failure() {
    head -n 20 "$work/said"
    say "FAILED: $*"
    failed=1
}

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
    if printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 24 "${clang[@]}" -fsyntax-only "${options[@]}" 2>"$work/said"; then
        say "$name: ${#files[@]} files"
    else
        failure "$name"
    fi
}

# platform NAME TARGET PATH ...: what stands around the paths, and the paths
platform() {
    local name=$1 target=$2 path flags files=("${some[@]}")
    shift 2
    ((!full)) || files=("${core[@]}")
    right "$name" --target="$target" -- "${files[@]}"
    for path in "$@"; do
        mapfile -t flags < <(flags_of "$path")
        files=("src/$path/norm.c" "src/$path/softmax.c")
        ((!full)) || files=("src/$path"/*.c)
        right "$name, $path" --target="$target" "${flags[@]}" -- "${files[@]}"
    done
}

# What cl.exe is shown of the repository's own files. Intrinsics are its business: their headers are empty here.
words_for_cl() {
    mkdir -p "$work/empty"
    : >"$work/empty/immintrin.h"
    : >"$work/empty/intrin.h"
    # avx2 has every template; one after the other, since lines of several would meet in the pipe
    printf '%s\n' "${core[@]}" src/avx2/*.c src/avx512/norm.c |
        xargs -n 24 "${clang[@]}" -isystem "$work/empty" "${cl[@]}" "${no_cpu[@]}" -D__AVX2__ -E |
        awk '/^# [0-9]+ "/ { own = $3 ~ /"(src|include\/nrg)\// } own' >"$work/cl.c" || return 1
    if (($(wc -l <"$work/cl.c") < 50000)); then
        say "$(wc -l <"$work/cl.c") lines" >"$work/said"
        return 1
    fi
    # offsetof is clang's own header's
    ! sed 's/__builtin_offsetof//g' "$work/cl.c" |
        grep -nE '__attribute__|__builtin_|__asm__|__extension__|typeof|__int128|\(\{|vector_size|GCC' >"$work/said"
}

# Nor are vectors anything but unions to it, which can be assigned, and have no other operator.
operators_for_cl() {
    local file options
    mapfile -t options < <(flags_of avx512)
    for file in src/avx2/*.c src/avx512/norm.c; do
        # behind clang's own headers, whose functions are made of such operators
        "${clang[@]}" "${cl[@]}" "${options[@]}" -fsyntax-only -Wno-everything -Xclang -ast-dump -fno-color-diagnostics "$file" |
            sed -n '/FunctionDecl.*src\//,$p' | grep -E '(Binary|Unary|CompoundAssign)Operator .*__vector_size__' |
            grep -vE "prefix '[*&]'|','$" | sed "s|^|$file: |"
    done >"$work/operators"
    assigned=$(grep -c "'='\$" "$work/operators") || return 1
    ! grep -v "'='\$" "$work/operators" >"$work/said"
}

# refused NAME SENTENCE COMMAND ...: it fails, and says this
refused() {
    local name=$1 sentence=$2
    shift 2
    if ! "$@" >"$work/said" 2>&1 </dev/null && tr -s ' \n' ' ' <"$work/said" | grep -F "$sentence" >/dev/null; then
        say "$name: refused: $sentence"
    else
        failure "$name is not refused in a sentence"
    fi
}

((full)) || right "Windows, clang's MSVC dialect, all but the paths" --target=x86_64-pc-windows-msvc -- "${core[@]}"
platform "Windows, clang's MSVC dialect" x86_64-pc-windows-msvc avx2 avx512 generic
platform "Windows on Arm64, clang's MSVC dialect" aarch64-pc-windows-msvc neon generic
right "as cl.exe sees it" "${cl[@]}" "${no_cpu[@]}" -- "${core[@]}"
for path in avx2 avx512; do
    mapfile -t flags < <(flags_of "$path")
    files=("src/$path"/norm*.c)
    ((!full)) || files=("src/$path"/*.c)
    right "as cl.exe sees it, $path" "${cl[@]}" "${flags[@]}" -- "${files[@]}"
done
if words_for_cl; then
    say "as cl.exe sees it: no word of GNU C in $(wc -l <"$work/cl.c") lines"
else
    failure "words of GNU C that cl.exe would see"
fi
if ((full)); then
    if operators_for_cl; then
        say "as cl.exe sees it: no operator but = between vectors, of which there are $assigned"
    else
        failure "operators between vectors, which cl.exe has not"
    fi
fi
platform "macOS on Arm64" arm64-apple-macos11 neon generic
platform "macOS on x86-64" x86_64-apple-macos10.15 avx2 avx512 generic
platform "Android on Arm64, API level 21" aarch64-linux-android21 neon generic
platform "Android on x86-64, API level 21" x86_64-linux-android21 avx2 avx512 generic
# Sizes and pointers of 32 bits. Doubles are aligned to 4 bytes on i686, and to 8 on the others.
bits_32=("${some[@]}" src/calls/qkv.c src/generic/norm.c)
((!full)) || bits_32=("${core[@]}" src/generic/*.c)
mapfile -t sse < <(sed -n "s/^c_args = \[\(.*\)\]/\1/p" cross/i686.txt | tr -d "' " | tr ',' '\n')
right "32-bit x86" --target=i686-linux-gnu "${sse[@]}" -- "${bits_32[@]}"
right "x86-64 with 32-bit pointers (x32)" --target=x86_64-linux-gnux32 -- "${bits_32[@]}"
right "WebAssembly" --target=wasm32-wasi -- "${core[@]}" src/generic/norm.c
right "WebAssembly with SIMD" --target=wasm32-wasi -msimd128 -- "${bits_32[@]}"
right "32-bit Arm" --target=armv7-linux-gnueabihf -- "${bits_32[@]}"
right "32-bit Arm without floating point" --target=armv7-linux-gnueabi -mfloat-abi=soft -- "${bits_32[@]}"
right "Android on 32-bit Arm" --target=armv7-linux-androideabi21 -- "${bits_32[@]}"
right "watchOS on Arm64 with 32-bit pointers" --target=arm64_32-apple-watchos -- "${bits_32[@]}" src/neon/norm.c
right "32-bit RISC-V" --target=riscv32-linux-gnu -- "${bits_32[@]}"
right "32-bit MIPS" --target=mipsel-linux-gnu -- "${bits_32[@]}"
right "32-bit POWER" --target=powerpcle-linux-gnu -- "${bits_32[@]}"

# refused_once NAME SENTENCE COMPILER ...: by the sources, in one error
refused_once() {
    local name=$1 sentence=$2 file
    shift 2
    for file in src/dispatch.c src/calls/qkv.c src/generic/norm.c; do
        if "$@" -fsyntax-only "$file" >"$work/said" 2>&1 || (($(grep -c 'error:' "$work/said") != 1)) || ! grep -qF -e "$sentence" "$work/said"; then
            failure "$name: one error with the right sentence"
            return
        fi
    done
    say "$name: refused: $sentence"
}
is_little="nrg is for little-endian targets"
in_float="nrg needs float arithmetic in float"
refused_once "32-bit x86 with x87" "$in_float" "${clang[@]}" --target=i686-linux-gnu -mno-sse
if [[ $(uname -m) == x86_64 ]]; then
    refused_once "x86-64 with x87" "$in_float" gcc -std=c11 -mfpmath=387
    refused_once "x86-64 with x87 and -ffast-math" "nrg must not be compiled with -ffast-math" gcc -std=c11 -mfpmath=387 -ffast-math
fi
refused_once "s390x" "$is_little" "${clang[@]}" --target=s390x-linux-gnu
# gcc evaluates float as double there
refused_once "s390x, as gcc has it" "$is_little" "${clang[@]}" --target=s390x-linux-gnu -Wno-macro-redefined -D__FLT_EVAL_METHOD__=1
refused_once "POWER, big-endian" "$is_little" "${clang[@]}" --target=powerpc64-linux-gnu -Wno-deprecated-altivec-src-compat
refused_once "32-bit POWER, big-endian" "$is_little" "${clang[@]}" --target=powerpc-linux-gnu
# meson knows no more of a target than its cross file says; CMake looks into an object
cat >"$work/big.txt" <<'END'
[binaries]
c = 'gcc'
ar = 'ar'
[host_machine]
system = 'linux'
cpu_family = 's390x'
cpu = 's390x'
endian = 'big'
END
refused "s390x by meson" "$is_little" meson setup "$work/meson" . --cross-file "$work/big.txt"
cat >"$work/big.cmake" <<'END'
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR s390x)
set(CMAKE_C_COMPILER clang)
set(CMAKE_C_COMPILER_TARGET s390x-linux-gnu)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
END
refused "s390x by CMake" "nrg: is for little-endian targets" cmake -S . -B "$work/cmake" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$work/big.cmake"
exit "$failed"
