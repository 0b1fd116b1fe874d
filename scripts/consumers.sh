#!/usr/bin/env bash
# Builds tests/consumer in all ways in which a project can use the library: CMake (find_package of an install, FetchContent,
# add_subdirectory; Ninja and Make) and meson (a subproject). The stage install tests pkg-config; the stage embedding tests a copy.
#
#   scripts/consumers.sh [--full] WORK-DIR
#
# Without --full it builds a part of the library, because it tests how a project finds it. --full: the complete library, also shared,
# with -O3 and with link-time optimization; each build has the bits of tests/hashes.txt.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

full=0
if [[ ${1-} == --full ]]; then
    full=1
    shift
fi
(($# == 1)) || die "usage: consumers.sh [--full] WORK-DIR"
work=$(realpath -m "$1")
fresh "$work"
export CC=${CC:-gcc}
version=$("$(numpy_python)" "$root/scripts/versions.py" --number)
launcher=()
if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
fi

# cmake_build NAME SOURCE OPTION ...: configured and built, or what it said.
cmake_build() {
    local name=$1 source=$2
    shift 2
    quietly "$work/$name.log" cmake -S "$source" -B "$work/$name" -Wno-dev "${launcher[@]}" "$@"
    quietly "$work/$name.log" cmake --build "$work/$name" -j "$(nproc)"
}

runs() {
    local said
    said=$("$work/$1/${2-consumer}")
    [[ $said == "nrg on "* ]] || die "$1: the program says: $said"
    say "$1: $said"
}

# Both builds compile the same files with the same instruction sets and definitions.
quietly "$work/lists.log" cmake -S "$root" -B "$work/lists" -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
quietly "$work/lists.log" meson setup "$work/lists-meson" "$root" -Dtests=false -Dbench=false -Dtools=false -Dexamples=false
"$(numpy_python)" - "$root" "$work" <<'END'
import json, pathlib, sys
root, work = (pathlib.Path(word).resolve() for word in sys.argv[1:])
MATTER = ("-m", "-f", "-DNRG", "-std", "-O")
ASIDE = ("-fPIC", "-fdiagnostics-color", "-falign", "-fno-asynchronous-unwind-tables", "-fvisibility")


def compiled(folder):
    """The library's files, each with what decides its bits: of several -O the last one."""
    files = {}
    for entry in json.loads((folder / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve().relative_to(root)
        words = [word for word in entry["command"].split() if word.startswith(MATTER) and not word.startswith(ASIDE)]
        level = [word for word in words if word.startswith("-O")][-1:]
        if path.parts[0] == "src":
            files[str(path)] = sorted({word for word in words if not word.startswith("-O")}) + level
    return files


meson, cmake = compiled(work / "lists-meson"), compiled(work / "lists")
wrong = [f"{name}: meson {meson.get(name)}, CMake {cmake.get(name)}" for name in sorted(meson | cmake) if meson.get(name) != cmake.get(name)]
sys.exit("\n".join(wrong[:5]) if wrong else None)
END
soname=$(sed -n "s/.* soversion: '\([0-9]*\)'.*/\1/p" "$root/meson.build")
grep -q " SOVERSION $soname)" "$root/CMakeLists.txt" || die "CMake's library is not libnrg.so.$soname"
say "CMake compiles the files of the meson build with its flags: $(grep -c '"file"' "$work/lists/compile_commands.json")"

part=(-DNRG_FAMILIES="norm" -DNRG_BACKWARD=OFF -DNRG_PATHS=avx2)
((full)) && part=()
cmake_build library "$root" -G Ninja "${part[@]}" -DCMAKE_INSTALL_PREFIX="$work/installed"
quietly "$work/library.log" cmake --install "$work/library"
mv "$work/installed" "$work/else where" # which cmake --install --prefix and a package do as well
"$root/scripts/find-package.sh" "$work/find_package" "$work/else where" nrg::nrg nrg::nrg_static
pc=$(find "$work/else where" -name nrg.pc)
PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --exists --print-errors "nrg >= $version" || die "no nrg.pc after cmake --install"
words=()
eval "words=($(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs --static nrg))" # quoted for a shell
quietly "$work/pkg-config.log" "$CC" "$root/tests/consumer/consumer.c" "${words[@]}" -o "$work/else where/consumer"
runs "else where"
cmake_build fetch "$root/tests/consumer" -G "Unix Makefiles" -DNRG_FROM=fetch -DNRG_SOURCE="$root" "${part[@]}"
runs fetch

# Options that a parent project sets as plain variables count at once, and names that are none are refused.
quietly "$work/plain.log" cmake -S "$root/tests/consumer" -B "$work/plain" -G Ninja -DNRG_FROM=subdirectory -DNRG_SOURCE="$root" -DNRG_PLAIN_FAMILIES=embed
if ninja -C "$work/plain" -t targets all | grep 'softmax' >/dev/null; then
    die "set(NRG_FAMILIES embed) of a parent project is not heeded"
fi
refused() {
    if cmake -S "$root" -B "$work/refused" -G Ninja "$@" >"$work/refused.log" 2>&1 || ! grep -q 'nrg: ' "$work/refused.log"; then
        die "CMake takes $*"
    fi
    rm -rf "$work/refused"
}
refused -DNRG_PATHS=avx2,generic
refused -DNRG_FAMILIES=norms
refused -DCMAKE_SYSTEM_NAME=Linux
say "CMake: options of a parent project, an install elsewhere, what is refused"

mkdir -p "$work/meson-project/subprojects"
cp "$root"/tests/consumer/{meson.build,consumer.c} "$work/meson-project"
ln -s "$root" "$work/meson-project/subprojects/nrg"
quietly "$work/meson.log" meson setup "$work/meson" "$work/meson-project"
[[ $(meson introspect --tests "$work/meson") == '[]' ]] || die "a subproject of meson brings tests"
programs=$(meson introspect --targets "$work/meson" | grep -o '"type": "executable"' | wc -l)
((programs == 1)) || die "a subproject of meson brings programs: there are $programs with the consumer"
say "meson: a subproject is the library alone"
if ((!full)); then
    exit 0
fi

cmake_build shared "$root/tests/consumer" -G Ninja -DNRG_FROM=subdirectory -DNRG_SOURCE="$root" -DBUILD_SHARED_LIBS=ON
runs shared
quietly "$work/meson.log" meson compile -C "$work/meson"
runs meson

# bits NAME OPTION ...: those of every path that runs here
bits() {
    local name=$1 path
    shift
    cmake_build "$name" "$root/tests/consumer" -G Ninja -DNRG_FROM=subdirectory -DNRG_SOURCE="$root" -DNRG_CHECK="$root" "$@"
    for path in $(cpu_paths | tr ',' ' '); do
        "$work/$name/check" --hash --quick --isa "$path" </dev/null | diff <(kept_hashes --quick) - || die "$name: other bits on $path"
    done
    say "$name: the bits of tests/hashes.txt on every path"
}
bits release
bits O3 -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS=-O3
bits lto -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON
