#!/usr/bin/env bash
# Runs the fuzzers of tests/fuzz: first the corpus, then new inputs.
#
#   scripts/fuzz.sh [--paths LIST] BUILD SECONDS [TARGET ...]    targets: api, npy, cli; default: all. 0 seconds: only the corpus
#
# New inputs stay in BUILD/corpus, where later runs continue; inputs that crash are in BUILD/found. For hours of it:
# scripts/fuzz.sh --paths avx2,avx512 build-fuzz 14400
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

paths=
if [[ ${1-} == --paths && $# -gt 1 ]]; then
    paths=$2
    shift 2
fi
(($# >= 2)) || die "usage: scripts/fuzz.sh [--paths LIST] BUILD SECONDS [TARGET ...]"
build=$(realpath -m "$1") seconds=$2
shift 2
targets=("$@")
limit=-max_total_time=$seconds
((seconds)) || limit=-runs=0
((${#targets[@]})) || targets=(api npy cli)

configure "$build" clang -Dbuildtype=debug -Doptimization=1 -Db_sanitize=address,undefined -Db_lundef=false -Dtests=false -Dfuzz=true \
    -Dbench=false -Dexamples=false "-Dpaths=$paths" \
    "-Dc_args=-fsanitize=fuzzer-no-link -g1 -fno-sanitize-recover=all"
quietly "$build.compile.log" ninja -C "$build" "${targets[@]/#/tests/fuzz/fuzz_}"

# memory of any size asked for is refused, as a machine without it does; libFuzzer itself needs 20 MB at once
export ASAN_OPTIONS=allocator_may_return_null=1:max_allocation_size_mb=32:detect_stack_use_after_return=0
export UBSAN_OPTIONS=print_stacktrace=1
mkdir -p "$build/found"
((seconds < 60)) || say "until $(date -d "+$seconds seconds" '+%F %R'); what it is at: tail $build/*.log"
jobs=()
status=0
for target in "${targets[@]}"; do
    mkdir -p "$build/corpus/$target"
    dictionary=() closed=3
    [[ $target != api ]] || closed=0
    [[ ! -f $root/tests/fuzz/$target.dict ]] || dictionary=("-dict=$root/tests/fuzz/$target.dict")
    # the commands' own complaints are no news, a million of them; reports of the sanitizers come all the same
    "$build/tests/fuzz/fuzz_$target" "$limit" -timeout=30 -max_len=2000 -print_final_stats=1 -verbosity=0 \
        -close_fd_mask="$closed" -artifact_prefix="$build/found/$target-" "${dictionary[@]}" \
        "$build/corpus/$target" "$root/tests/fuzz/corpus/$target" >"$build/$target.log" 2>&1 &
    jobs+=($!)
done
for i in "${!targets[@]}"; do
    target=${targets[i]}
    if wait "${jobs[i]}"; then
        say "fuzz_$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$target.log") inputs, $(find "$build/corpus/$target" -type f | wc -l) kept"
    else
        status=1
        grep -v 'WARNING: AddressSanitizer failed to allocate' "$build/$target.log" | tail -n 40
        say "fuzz_$target: failed; the input is in $build/found"
    fi
done
exit "$status"
