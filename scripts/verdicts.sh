#!/usr/bin/env bash
# Compares the verdicts of two versions of the library: what each public call returns for wild pointers, sizes and options, what
# its `_check` returns, and which kernel it reaches; then what it returns for all that bad_input_test makes wrong. Before: the commit
# in scripts/baseline, after: the tree.
#
#   scripts/verdicts.sh BUILD [OPTION ...]     BUILD: a meson build of the tree with tests; options: those of wild_calls_test
#
# The commit's calls are compiled with stubs for its kernels (tests/calls/wild_module.h) into $NRG_BUILD_DIR, or build-verdicts/.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

(($# >= 1)) || die "usage: scripts/verdicts.sh BUILD [OPTION ...]"
test=$(realpath -m "$1/tests/wild_calls_test")
shift
[[ -x $test ]] || die "$test is not built"
# shellcheck disable=SC2154 # common.sh sets root
commit=$(<"$root/scripts/baseline")
if ! git -C "$root" cat-file -e "$commit^{commit}" 2>/dev/null; then
    say "not here: the history has no commit $commit"
    exit 77
fi
dir=$(realpath -m "${NRG_BUILD_DIR:-$root/build-verdicts}")
module=$dir/$commit.so
if [[ ! -f $module || -n $(find "${BASH_SOURCE[0]}" "$root"/tests/calls/wild_module.* -newer "$module") ]]; then
    fresh "$dir"
    git -C "$root" archive "$commit" src include tests/calls tests/harness check | tar -C "$dir" -xf -
    cp "$root"/tests/calls/wild_module.[ch] "$dir/tests/calls/"
    awk '$2 == "core" { for (i = 3; i <= NF; i++) if ($i ~ /\.c$/ && $i !~ /^tables\//) print "src/" $i }' "$dir/src/sources.txt" |
        cat - <(cd "$dir" && ls src/cpu.c tests/calls/sound_*.c tests/calls/stub_kernels.c tests/calls/wild_module.c) >"$dir/files"
    compile=("${CC:-gcc}" -std=gnu11 -O1 -fPIC -ffp-contract=off -fno-math-errno -fvisibility=hidden -Iinclude -c)
    # shellcheck disable=SC2016 # expanded by the shell of each file
    (cd "$dir" && quietly "$dir/compile.log" xargs -P "$(nproc)" -a files -I{} sh -c '"$@" "$0" -o "$(echo "$0" | tr / .).o"' {} "${compile[@]}")
    read -ra libraries < <(pkg-config --libs check)
    (cd "$dir" && quietly "$dir/link.log" "${CC:-gcc}" -shared -Wl,-Bsymbolic ./*.o "${libraries[@]}" -lm -o "$module")
fi
"$(dirname "$test")/bad_input_test" --against "$module"
exec "$test" --against "$module" "$@"
