#!/usr/bin/env bash
# Compares the binary interface of a build with the one in tests/abi/. Programs that are linked with libnrg.so.0 rely on it.
#
#   scripts/abi.sh BUILD             exit status 0: nothing has changed, or functions were added
#   scripts/abi.sh BUILD --accept    stores the interface of the build
#
# tests/abi/ has the exported functions with the types of their headers (abidw of libabigail). The file of a release comes from the
# tag of the release, and stays the same until the next release or a new soname. Before you accept a change, check that the
# CHANGELOG has it under Breaking, or that it is a field at the end of a struct that begins with its size. Run --accept in the same
# commit.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[[ $# == 1 || ($# == 2 && $2 == --accept) ]] || die "usage: scripts/abi.sh BUILD [--accept]"
build=$(realpath -m "$1")
kept=$root/tests/abi/x86_64.abi.gz
if [[ $(uname -m) != x86_64 ]]; then
    say "not here: the interface is kept for x86-64"
    exit 77
fi
if ! command -v abidiff >/dev/null; then
    say "not here: no abidiff (Debian: abigail-tools)"
    exit 77
fi

# types are the same however code is optimized, and on whatever paths
configure "$build" gcc -Dbuildtype=debug -Doptimization=0 -Dtests=false -Dbench=false -Dtools=false -Dexamples=false -Dpaths= \
    -Ddefault_library=shared
quietly "$build.compile.log" meson compile -C "$build" nrg:shared_library
library=$build/libnrg.so

if [[ ${2-} == --accept ]]; then
    abidw --no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed \
    --exported-interfaces-only "$library" | gzip -9n >"$kept"
    say "kept: $(zcat "$kept" | grep -c '<elf-symbol ') functions, $(stat -c %s "$kept") bytes"
    exit 0
fi

zcat "$kept" >"$build/kept.abi"
added=$(abidiff "$build/kept.abi" "$library" | grep -c '^ *\[A\]' || true)
status=0
abidiff --no-added-syms "$build/kept.abi" "$library" >"$build/abi.txt" || status=$?
if ((status)); then
    cat "$build/abi.txt"
    say "the binary interface is not the one that tests/abi/ keeps; scripts/abi.sh says how a change is accepted"
    exit 1
fi
say "the interface that is kept, of $(grep -c '<elf-symbol ' "$build/kept.abi") functions; $added more since"
