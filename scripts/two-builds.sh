#!/usr/bin/env bash
# Whether two builds of the library are as fast as each other, by calling them by turns in one program (bench/two_builds.c).
#
#   scripts/two-builds.sh one [PATH [SECONDS]]        A: the meson build, B: nrg.c, compiled as docs/embedding.md says
#   scripts/two-builds.sh COMMIT [PATH [SECONDS]]     A: a commit, B: the tree as it is, with the same structs
#
# SECONDS of a line (0.3); 0: bits alone are compared. Fails where they differ.
#
# In NRG_BUILD_DIR (build-two). On a machine that does nothing else; it pins itself to the last CPU it may use.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

(($# >= 1 && $# <= 3)) || die "usage: scripts/two-builds.sh one|COMMIT [PATH [SECONDS]]"
other=$1
shift
command -v taskset >/dev/null || die "no taskset (Debian: util-linux)"
dir=$(realpath -m "${NRG_BUILD_DIR:-$root/build-two}")
mkdir -p "$dir"

# library NAME: the shared library of the tree $root in $dir/NAME
library() {
    configure "$dir/$1" "${CC:-gcc}" -Dtests=false -Dbench=disabled -Dtools=false -Dexamples=disabled -Ddefault_library=shared
    quietly "$dir/$1.log" meson compile -C "$dir/$1" nrg:shared_library
}

if [[ $other == one ]]; then
    library tree
    "$root/scripts/amalgamate.sh" "$dir/one"
    quietly "$dir/one.log" "${CC:-gcc}" -O2 -ffp-contract=off -fno-math-errno -fvisibility=hidden -fPIC -shared "$dir/one/nrg.c" -lm \
        -o "$dir/one/libnrg.so"
    libraries=("$dir/tree/libnrg.so" "$dir/one/libnrg.so")
else
    commit=$(git -C "$root" rev-parse --verify --quiet "$other^{commit}") || die "no commit: $other"
    if [[ ! -d $dir/source-$commit ]]; then
        fresh "$dir/unpacked"
        git -C "$root" archive "$commit" | tar -C "$dir/unpacked" -xf -
        mv "$dir/unpacked" "$dir/source-$commit"
    fi
    root=$dir/source-$commit library "commit-$commit"
    library tree
    libraries=("$dir/commit-$commit/libnrg.so" "$dir/tree/libnrg.so")
fi

"${CC:-gcc}" -std=c11 -O2 -I "$root/include" -I "$root/src" "$root"/bench/two_builds.c "$root"/bench/measure.c -ldl -o "$dir/nrg-two-builds"
cpu=$(taskset -cp $$ | grep -o '[0-9]*$')
grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //' || true
exec taskset -c "$cpu" "$dir/nrg-two-builds" "${libraries[@]}" "$@"
