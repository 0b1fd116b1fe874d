#!/usr/bin/env bash
# What users of Windows take of a build by mingw-w64: the DLL exports the headers' functions, programs link with it, with the static
# library and by CMake, and nrg.c, compiled as docs/howto/one-file.md says, has the bits of tests/hashes.txt.
#
#   WINEPREFIX=... scripts/windows-check.sh WORK-DIR BUILD-DIR        BUILD-DIR: a meson build by cross/mingw64.txt
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

(($# == 2)) || die "usage: windows-check.sh WORK-DIR BUILD-DIR"
work=$(realpath -m "$1") library=$(realpath "$2")
triple=x86_64-w64-mingw32 wine=/usr/lib/wine/wine64
dll=$(basename "$(find "$library" -maxdepth 1 -name 'libnrg*.dll')")
[[ -n $dll ]] || die "no DLL in $library"
fresh "$work"
cd "$work"

# exports FILE, imports FILE: of functions, and from which DLLs
exports() { "$triple-objdump" -p "$1" | awk '/Ordinal\/Name Pointer. Table/ { on = 1; next } !NF { on = 0 } on { print $NF }'; }
imports() { "$triple-objdump" -p "$1" | sed -n 's/^[ \t]*DLL Name: //p'; }

declared_functions >declared
exports "$library/$dll" | sort -u >exported
diff declared exported || die "$dll: (<) declared in the public headers and not exported, or (>) exported and not declared"
# nothing that a user's Windows lacks, such as gcc's own DLLs
strange=$(imports "$library/$dll" | grep -viE '^(kernel32|msvcrt|ucrtbase|api-ms-win-crt-.*)\.dll$' || true)
[[ -z $strange ]] || die "$dll wants $strange"
say "$dll: exports $(wc -l <exported) functions, those of the headers; wants $(imports "$library/$dll" | paste -sd ' ')"

# runs PROGRAM: consumer.c, and whether it takes the DLL
runs() {
    local said takes="the static library"
    said=$("$wine" "$1" </dev/null | tr -d '\r') || die "$1 fails: $said"
    [[ $said == "nrg on "* ]] || die "$1 says: $said"
    ! imports "$1" | grep -xF "$dll" >/dev/null || takes=$dll
    [[ $takes == "$2" ]] || die "$1 takes $takes"
    say "$1, with $takes: $said"
}
compiler=("$triple-gcc" -std=c99 -O2 -Wall -Wextra -Werror)
consumer=("${compiler[@]}" -I "$root/include" "$root/tests/consumer/consumer.c")
cp "$library/$dll" .
"${consumer[@]}" -DNRG_DLL "$library/libnrg.dll.a" -o dll.exe
"${consumer[@]}" "$library/libnrg.dll.a" -o dll-by-jump.exe
"${consumer[@]}" "$library/libnrg.a" -o static.exe
runs dll.exe "$dll"
runs dll-by-jump.exe "$dll"
runs static.exe "the static library"

# A part of the library by CMake, installed and found: its DLL has the name of meson's.
cat >toolchain.cmake <<END
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER $triple-gcc)
set(CMAKE_FIND_ROOT_PATH /usr/$triple)
END
cmake_build() {
    local name=$1 source=$2
    shift 2
    quietly "$name.log" cmake -S "$source" -B "$name" -G Ninja -Wno-dev -DCMAKE_TOOLCHAIN_FILE="$work/toolchain.cmake" "$@"
    quietly "$name.log" cmake --build "$name" -j "$(nproc)"
}
cmake_build cmake "$root" -DBUILD_SHARED_LIBS=ON -DNRG_FAMILIES=norm -DNRG_BACKWARD=OFF -DNRG_PATHS=avx2 \
    -DCMAKE_INSTALL_PREFIX="$work/installed"
quietly cmake.log cmake --install cmake
cmake_build find_package "$root/tests/consumer" -DNRG_FROM=find_package -Dnrg_DIR="$(dirname "$(find "$work/installed" -name nrgConfig.cmake)")"
cp "installed/bin/$dll" find_package
runs find_package/consumer.exe "$dll"

"$root/scripts/amalgamate.sh" . >amalgamate.log
"$triple-gcc" -O2 -ffp-contract=off -fno-math-errno -Wa,-muse-unaligned-vector-move -c nrg.c &
compile_check . check "$triple-gcc"
wait $!
"$triple-gcc" check/*.o nrg.o -o check.exe
for path in $(cpu_paths | tr ',' ' '); do
    say "nrg.c on $path:"
    same_cross_hashes --quick "$wine" check.exe --isa "$path" || die "nrg.c: other bits on $path"
done
