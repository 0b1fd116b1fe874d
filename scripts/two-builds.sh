#!/usr/bin/env bash
# Compares two builds of the library: the speed and the bits of every default case of nrg-bench, called alternately in one program
# (bench/two_builds.cc).
#
#   scripts/two-builds.sh one [OPTION ...]          before: the meson build, after: nrg.c, compiled as in docs/howto/one-file.md
#   scripts/two-builds.sh COMMIT [OPTION ...]       before: a commit, after: the tree
#   scripts/two-builds.sh baseline [OPTION ...]     the same with the commit in scripts/baseline
#
#   --path PATH        avx2, avx512, ...; the best one by default
#   --only REGEX       cases whose names match this extended expression: softmax, '/bf16/', '/1x[0-9]+$'
#   --seconds S        of a case (0.1). 0: compares bits only
#   --runs N           a case counts as slower if it is below the limit in all of N separate runs (3)
#   --limit X          the limit (0.9)
#   --bits-differ OP   the bits of this op change on purpose: KERNEL or KERNEL/OP of a case's name. Repeatable
#   --cases tree|own   case files of both sides: the tree's, or each side's own. Default: own, or tree if the commit has no
#                      bench/case_module.c
#   --build            only builds
#
# A figure is a speedup: time before / time after. Prints a line for each case and a summary. Later runs repeat only the cases that
# were slower in each run before. Fails if bits differ.
#
# Builds go to build-two/, or to $NRG_BUILD_DIR. The machine must be idle; the program runs on the last CPU that it may use.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage="usage: scripts/two-builds.sh one|baseline|COMMIT [OPTION ...]; the head of the script lists the options"
other=${1-} cases='' build_only=0 seconds=0.1 runs=3 limit=0.9 options=()
[[ -n $other && $other != -* ]] || die "$usage"
shift
while (($#)); do
    case $1 in
    --build) build_only=1 && shift && continue ;;
    --cases) cases=${2-} ;;
    --seconds) seconds=${2-} ;;
    --runs) runs=${2-} ;;
    --limit) limit=${2-} ;;
    --path | --only | --bits-differ) options+=("$1" "${2-}") ;;
    *) die "$usage" ;;
    esac
    (($# >= 2)) || die "$1 needs a value"
    shift 2
done
[[ $cases =~ ^(tree|own|)$ ]] || die "--cases tree or --cases own"
[[ $runs =~ ^[1-9][0-9]*$ ]] || die "--runs needs a number"
command -v taskset >/dev/null || die "no taskset (Debian: util-linux)"
dir=$(realpath -m "${NRG_BUILD_DIR:-$root/build-two}")
mkdir -p "$dir"

# build DIR TARGET ...: targets of the tree $root
build() {
    local to=$1 off=false
    shift
    ! grep -q "^option('examples', type: 'feature'" "$root/meson_options.txt" || off=disabled # a commit before 0.3.0
    configure "$to" "${CC:-gcc}" -Dtests=false -Dtools=false -Dexamples=$off -Ddefault_library=static
    quietly "$to.log" ninja -C "$to" "$@"
}

build "$dir/tree" bench/nrg-bench-cases.so bench/nrg-two-builds
if [[ $other == one ]]; then
    modules=("$dir/tree/bench/nrg-bench-cases.so" "$dir/one/nrg-bench-cases.so")
    "$root/scripts/amalgamate.sh" "$dir/one"
    quietly "$dir/one.log" "${CC:-gcc}" -O2 -ffp-contract=off -fno-math-errno -fvisibility=hidden -fPIC -c "$dir/one/nrg.c" -o "$dir/one/nrg.o"
    quietly "$dir/one.log" "${CC:-gcc}" -shared -Wl,-Bsymbolic "$dir"/tree/bench/nrg-bench-cases.so.p/*.o "$dir/one/nrg.o" \
        "$dir/tree/bench/libbench-cases.a" -lm -o "$dir/one/nrg-bench-cases.so"
else
    [[ $other != baseline ]] || other=$(<"$root/scripts/baseline")
    commit=$(git -C "$root" rev-parse --verify --quiet "$other^{commit}") || die "no commit: $other"
    source=$dir/source-$commit
    if [[ ! -d $source ]]; then
        fresh "$dir/unpacked"
        git -C "$root" archive "$commit" | tar -C "$dir/unpacked" -xf -
        mv "$dir/unpacked" "$source"
        mv "$source/bench" "$source/own-bench"
    fi
    if [[ -z $cases ]]; then
        cases=own
        [[ -f $source/own-bench/case_module.c ]] || cases=tree
    fi
    rm -rf "$source/bench"
    git -C "$root" show "$commit:meson_options.txt" >"$source/meson_options.txt"
    if [[ $cases == own ]]; then
        cp -Rp "$source/own-bench" "$source/bench"
    else
        cp -Rp "$root/bench" "$source/bench" # with its times, for ninja
        # its meson.build compares this option with 'true' and 'false'
        sed -i "s/^option('bench', type: 'feature', value: 'auto'/option('bench', type: 'combo', choices: ['auto', 'true', 'false']/" \
            "$source/meson_options.txt"
    fi
    # as deep in its tree as the other build is: ccache then compiles what is equal in both only once
    mkdir -p "$source/build"
    root=$source build "$source/build/commit" bench/nrg-bench-cases.so
    modules=("$source/build/commit/bench/nrg-bench-cases.so" "$dir/tree/bench/nrg-bench-cases.so")
fi
((!build_only)) || exit 0

cpu=$(taskset -cp $$ | grep -o '[0-9]*$')
grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //' || true
slower=$dir/slower.txt status=0
rm -f "$slower"
compare=(taskset -c "$cpu" "$dir/tree/bench/nrg-two-builds" "${modules[@]}" --seconds "$seconds" --limit "$limit" --slower "$slower" "${options[@]}")
"${compare[@]}" || status=$?
for ((run = 2; run <= runs && status < 2; run++)); do
    [[ -s $slower ]] || break
    say "run $run of $runs: $(wc -l <"$slower") cases"
    "${compare[@]}" >"$dir/run.txt" || (($? == 1)) || exit 2
    grep '^[^ ]*/' "$dir/run.txt"
done
((status < 2)) || exit "$status"
if [[ ! $seconds =~ ^[0.]*$ ]]; then
    say "$(wc -l <"$slower") cases below $limit in each of $runs runs"
    cat "$slower"
fi
exit "$status"
