#!/usr/bin/env bash
# Runs all tests. Installs missing packages (setup.sh), runs the stages below, and prints a summary.
#
#   scripts/test.sh              every stage but coverage
#   scripts/test.sh STAGE ...    only these stages
#   scripts/test.sh --list       the names of the stages
#   scripts/test.sh --full ...   full sweeps with gcc, all suites under the emulators, and coverage: some hours
#
# Without --full it takes at most 20 minutes on two idle cores, because:
#   - sweeps are short;
#   - emulators run the tests that depend on the CPU (dispatch, vector headers), and the bits and hashes of paths that this CPU lacks;
#   - AddressSanitizer tests the portable path, and the NEON build has no portable path;
#   - only the gcc release compares results with the ground truth, and some builds are less optimized than a release.
#
# Builds go to build-test/, or to $NRG_BUILD_DIR. A second run builds only what has changed, and runs all tests.
# A test that cannot run here prints SKIP. With CI=true that is a failure, unless the CPU is the reason.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

stages=(
    "headers    public headers compile as C99 and C++17 with gcc and clang; include rules of src/; rules of the tree; sentences, links"
    "gcc        gcc, release: tests, command line, a transformer compared with one in double precision"
    "symbols    exported functions, required functions, and the instructions of each path"
    "instructions  instruction counts of one-row calls, compared with tests/instructions/counts.txt"
    "abi        the binary interface is that of tests/abi/, or has more functions; wild calls have the statuses of scripts/baseline"
    "size       size of the shared library, of programs, of functions and instances of row norms, by source and folder; stack use of a call"
    "reduced    a small build: norms, activations and RoPE, profile small, without backward passes: tests, hashes, size"
    "install    meson install: pkg-config, find_package of CMake, a program of ten lines"
    "shell      manual pages and completion match the options of the programs"
    "embedding  the commands of docs/howto/vendor-sources.md, smaller-builds.md and threads.md, unchanged"
    "amalgamation  nrg.c and nrg.h compile with and without the right flags and give the same bits: some families; --full: all"
    "matrix     x86-64: norms compile for eight CPUs, in three dialects, with gcc and clang; nrg.c with -flto; --full: -O0"
    "consumers  a project that uses the library: find_package, FetchContent, meson subproject; --full: builds it, -O3, LTO"
    "python     pip install into a new virtual environment without a network; compared with NumPy in double precision; README, tutorial; mypy"
    "clang      clang, release: tests"
    "sanitize   address and undefined-behaviour sanitizers"
    "memory     memory sanitizer: no result depends on unwritten memory: with --full"
    "fuzz       the corpus of tests/fuzz, ten seconds of new .npy files and command lines; --full: five minutes, calls too, all paths"
    "valgrind   the cases of nrg check under valgrind, on the paths that it supports: with --full"
    "threads    thread sanitizer on the dispatch and on a training step of a thread pool"
    "nehalem    an x86 CPU without AVX, under qemu"
    "haswell    an x86 CPU with AVX2, under qemu"
    "neon       AArch64, under qemu"
    "riscv64    RISC-V, a CPU without a separate path, under qemu"
    "i686       32-bit x86, the portable path: tests, hashes: with --full"
    "platforms  clang checks the sources for MSVC's dialect, macOS and Android; unsupported targets fail; --full: all files"
    "windows    Windows on x86-64, with mingw-w64 and wine: tests, hashes, DLL, nrg.c: with --full"
    "avx512     the AVX-512 path, emulated if the CPU lacks it"
    "ggml       examples/ggml in Debian sid, which scripts/ggml.sh sets up: with --full, as root"
    "release    scripts/release.sh: its errors, its files, the same bytes twice; --full: a release that is compiled and tested"
    "report     the page of nrg-bench --report in headless Chromium: with --full"
    "coverage   lines and branches of src/ that tests reach"
)

build=$(realpath -m "${NRG_BUILD_DIR:-$root/build-test}")
machine=$(uname -m)
size_limit=2370000 # bytes, with generic and the three x86 paths: rows, channels, activations and positions, forward and backward, in three dtypes
program_limit=165000 # bytes: a program that calls nrg_rms_norm_f32 alone, libc and libm apart
forward_limit=612000 # bytes: the same of nrg_norm_forward, which has all dtypes, gates and formats
reduced_limit=612000 # bytes: the shared library of norms, activations and RoPE without backward passes, profile small
stack_limit=16384 # bytes, any call; promised in nrg/norm.h
common_options=(-Dwerror=true -Dtests=true)
qemu_arm64=(qemu-aarch64 -L /usr/aarch64-linux-gnu)
qemu_riscv64=(qemu-riscv64 -L /usr/riscv64-linux-gnu)
scale=small emulated_scale=tiny
full=0
path_suites=(bits stack environment model) # what runs under an emulator without --full, beside its hashes, of a path that nothing else runs
cpu_suites=(dispatch vec harness) # and of any path

# --- what stages are made of -------------------------------------------------------------------------------------------------

# A line for the summary.
note() { say "$*" >>"$state/notes"; }

# Something that this CPU does not have: not tested, not wrong.
skip() {
    say "SKIP $stage: $*"
    say "$stage: $*" >>"$state/skips"
}

# Something that this machine should have, and does not: wrong in CI, where nobody would notice that it was left out.
missing() {
    skip "$*"
    [[ ${CI-} != true ]]
}

# part COMMAND ...: one of several things a stage looks at. A failure is remembered, and the stage goes on with the others. Inside of
# it a failing command ends nothing (set -e is off in a condition): its functions say || return 1.
part() {
    "$@" </dev/null || failed_part "$*"
}
failed_part() {
    say "FAILED $stage: $(sed "s|$root/||g; s|$build/||g" <<<"$1")"
    failed_parts=$((failed_parts + 1))
}
parts_done() { ((failed_parts == 0)); }

# side_by_side "COMMAND ..." ...: parts that keep one core busy each.
side_by_side() {
    local commands=("$@") jobs=() i
    for i in "${!commands[@]}"; do
        ${commands[i]} >"$state/side-$i" 2>&1 </dev/null &
        jobs+=($!)
    done
    for i in "${!commands[@]}"; do
        wait "${jobs[i]}" || failed_part "${commands[i]}"
        cat "$state/side-$i"
    done
}

x86_only() {
    [[ $machine == x86_64 ]] && return 0
    skip "for x86-64 machines"
    return 1
}

# For builds that say nothing of paths that this CPU does not have.
own_paths() {
    local paths
    paths=$(cpu_paths)
    paths=${paths#scalar}
    say "-Dpaths=${paths#,}"
}

# compile DIR [TARGET ...]
compile() { quietly "$1.compile.log" ninja -C "$@"; }

# One stage makes it, and others that want it wait.
build_gcc() {
    local lock
    exec {lock}>"$build/gcc.lock"
    flock "$lock"
    make_gcc
    flock -u "$lock"
    exec {lock}>&-
}
make_gcc() {
    local quick=true fences # tests look at the results of what nrg-bench compares with, and not at its times
    ((!full)) || quick=false
    fences=$(cpu_paths) fences=${fences##*,} # of one path, since the fences stand in what they are all made of
    [[ $fences == avx* ]] || fences=avx2
    ((!full)) || fences=avx2,avx512
    # -fcallgraph-info changes no code; the size stage reads what it writes
    configure "$build/gcc" gcc "${common_options[@]}" -Dbench=true -Dquick_rivals=$quick "-Dcounted_fences=$fences" -Dmpi=true \
        -Dc_args=-fcallgraph-info=su
    compile "$build/gcc"
}

# configure_neon MESON-OPTION ...
configure_neon() {
    "$root/scripts/arm64-sysroot.sh" "$build/sysroot-arm64"
    configure "$build/neon" aarch64-linux-gnu-gcc "${common_options[@]}" -Dbench=false "$@" \
        --cross-file "$root/cross/aarch64.txt" --cross-file "$build/sysroot-arm64/sysroot.ini"
}

# run_tests DIR [MESON-TEST-ARGUMENT ...]: a build's tests. Those that skip themselves are counted, and are missing
# unless $expected_skips names them or they are for a path that $NRG_REQUIRE_PATHS does not ask for; no test at all is a failure.
run_tests() {
    local dir=$1 status=0 log ok count name test path expected=${expected_skips-}
    shift
    for path in generic avx2 avx512 neon; do
        if [[ -n ${NRG_REQUIRE_PATHS-} && ,$NRG_REQUIRE_PATHS, != *,$path,* ]]; then
            expected+=" vec_$path hashes_$path"
        fi
    done
    # other stages may run others of the same build
    rm -f "$dir/meson-logs/testlog-$stage"*.json
    meson test -C "$dir" --no-rebuild --print-errorlogs --logbase "testlog-$stage" "$@" || status=$?
    log=$(find "$dir/meson-logs" -name "testlog-$stage*.json")
    if [[ -z $log ]]; then
        say "no test ran in $dir"
        return 1
    fi
    while (($#)); do
        if [[ $1 == --suite ]] && ! grep -qE "\"name\": \"[^ ]*[:+]$2[+ ]" "$log"; then
            say "no test of the suite $2 in $dir"
            status=1
        fi
        shift
    done
    ok=$(grep -Ec '"result": "(OK|EXPECTEDFAIL)"' "$log" || true)
    note "$ok tests"
    while read -r count name; do
        test="test $name"
        ((count == 1)) || test+=", $count of them"
        if [[ " $expected " == *" $name "* ]]; then
            skip "$test"
        else
            missing "$test" || status=1
        fi
    done < <(grep '"result": "SKIP"' "$log" | sed 's/.*"name": "\([^"]*\)".*/\1/; s/.*[ /]//' | sort | uniq -c)
    ((ok > 0)) || status=1
    return "$status"
}

# test_targets DIR [MESON-TEST-ARGUMENT ...]: what these tests run, for compile.
test_targets() { "$(numpy_python)" "$root/scripts/test_targets.py" "$@"; }

# some_targets TARGET ...: there are some; otherwise tests of an earlier run would pass for those of this one.
some_targets() {
    (($#)) && return
    say "scripts/test_targets.py names nothing to compile"
    return 1
}

# compile_for DIR [MESON-TEST-ARGUMENT ...]: what these tests run, and $also.
compile_for() {
    local dir=$1 targets
    mapfile -t targets < <(test_targets "$@")
    some_targets "${targets[@]}"
    # shellcheck disable=SC2086
    compile "$dir" ${also-} "${targets[@]}"
}

# tests_but DIR PATTERN: names of a build's tests, without those that look like this.
tests_but() { meson test -C "$1" --no-rebuild --list 2>/dev/null | sed 's|.* / ||' | grep -vE "$2"; }

# print_output PATTERN DIR: what the tests of this name printed, for the figures that are in it. meson keeps it to itself otherwise.
print_output() {
    "$(numpy_python)" - "$1" "$2/meson-logs/testlog-$stage" <<'END'
import glob, json, sys
for log in glob.glob(sys.argv[2] + "*.json"):
    for test in map(json.loads, open(log)):
        if sys.argv[1] in test["name"]:
            print(test["name"] + ":\n" + test.get("stdout", ""))
END
}

# The program says itself which path it runs: what this CPU, or qemu, is expected to make it choose.
expect_path() {
    local path=$1
    shift
    "$@" info | tee "$state/info" || return 1
    if ! grep -q "^Active path $path:" "$state/info"; then
        say "the active path should be $path"
        return 1
    fi
}

# --- stages ------------------------------------------------------------------------------------------------------------------

# A C++20 program that initializes every struct by the names of its fields.
designated_initializers() {
    "$(numpy_python)" -c '
import sys
sys.path.insert(0, sys.argv[1] + "/python")
import headers
print("#include <nrg/nrg.h>")
for name, fields in headers.Headers(sys.argv[1] + "/include").structs.items():
    print(f"{name} make_{name}() {{ return {name}{{" + ", ".join(f".{field} = {{}}" for field, _ in fields) + "}; }")' "$root"
}
stage_headers() {
    local header compiler warnings=(-I "$root/include" -Wall -Wextra -Wpedantic -Werror -fsyntax-only) count=0
    if gcc -fshort-enums -x c -I "$root/include" -fsyntax-only - <<<"#include <nrg/base.h>" 2>"$state/short-enums"; then
        say "nrg/base.h accepts -fshort-enums"
        return 1
    fi
    for header in "$root"/include/nrg/*.h; do
        header=$(basename "$header")
        for compiler in gcc clang; do
            "$compiler" -x c -std=c99 "${warnings[@]}" - <<<"#include <nrg/$header>"$'\ntypedef int not_empty;'
        done
        for compiler in g++ clang++; do
            "$compiler" -x c++ -std=c++17 "${warnings[@]}" - <<<"#include <nrg/$header>"$'\ntypedef int not_empty;'
        done
        say "ok nrg/$header"
        count=$((count + 1))
    done
    for compiler in "gcc -x c -std=c11" "clang -x c -std=c11"; do # a hole is not copied with a struct
        $compiler "${warnings[@]}" -Wpadded - <<<"#include <nrg/nrg.h>"
    done
    designated_initializers | g++ -x c++ -std=c++20 "${warnings[@]}" -
    note "$count headers"
    "$(numpy_python)" "$root/scripts/versions.py"
    "$(numpy_python)" "$root/scripts/layers.py"
    "$(numpy_python)" "$root/scripts/house.py"
    "$(numpy_python)" "$root/scripts/prose.py"
    "$(numpy_python)" "$root/scripts/site.py" --links
}

# Of all cases; the suites compare those of --quick.
same_hashes() {
    "$build/gcc/tools/nrg" check --hash | diff <(kept_hashes) - && say "the hashes of tests/hashes.txt"
}

stage_gcc() {
    local paths
    paths=$(cpu_paths)
    say "paths of this CPU: $paths"
    build_gcc
    NRG_TEST_SCALE=$scale NRG_REQUIRE_PATHS=$paths part run_tests "$build/gcc"
    print_output truth "$build/gcc"
    print_output climb "$build/gcc"
    part expect_path "${paths##*,}" "$build/gcc/tools/nrg"
    # with tests that run nrg check --quick; its other cases are half a minute of two cores more
    part "$(numpy_python)" "$root/tests/cli_test.py" "$build/gcc/tools/nrg"
    part "$(numpy_python)" "$root/tests/transformer/transformer_test.py" "$build/gcc/examples/transformer/transformer"
    ((!full)) || side_by_side "$build/gcc/tools/nrg check" same_hashes
    parts_done
}

stage_symbols() {
    local library=$build/gcc/libnrg.so archive=$build/gcc/libnrg.a strangers
    # What code in src/ may call. Everything else is a question: does it allocate, print, lock, or touch the FP environment?
    local allowed='memcpy memset memmove memcmp strcmp getenv getauxval
        sqrt sqrtf fma fmaf floor ceil rint roundf frexp ldexp ldexpf _GLOBAL_OFFSET_TABLE_ __stack_chk_fail __stack_chk_guard'
    # What the toolchain itself puts into every shared library, all weak.
    local toolchain='__cxa_finalize __gmon_start__ _ITM_deregisterTMCloneTable _ITM_registerTMCloneTable'
    build_gcc
    declared_functions >"$state/declared"
    nm -D --defined-only "$library" | awk '{ print $NF }' | sort -u >"$state/exported"
    diff "$state/declared" "$state/exported" || {
        say "(<) declared in the public headers and not exported, or (>) exported and not declared"
        return 1
    }
    say "exported: $(wc -l <"$state/exported") functions, those of the headers"

    # In a static library all global names meet the user's.
    strangers=$(nm -g --defined-only "$archive" | awk 'NF == 3 && $3 !~ /^nrg_/ { print $3 }')
    if [[ -n $strangers ]]; then
        say "global names without nrg_: $strangers"
        return 1
    fi
    # shellcheck disable=SC2086
    printf '%s\n' $allowed $toolchain | sort -u >"$state/allowed"
    {
        nm -D --undefined-only "$library" | awk '{ print $NF }' | sed 's/@.*//'
        nm -g --undefined-only "$archive" | awk 'NF == 2 { print $2 }' | grep -v '^nrg_' || true
    } | sort -u >"$state/taken"
    say "taken from outside: $(tr '\n' ' ' <"$state/taken")"
    strangers=$(comm -23 "$state/taken" "$state/allowed")
    if [[ -n $strangers ]]; then
        say "not on the list of what src/ may call: $strangers"
        return 1
    fi
    [[ $machine != x86_64 ]] || "$(numpy_python)" "$root/scripts/instructions.py" "$build/gcc"
}

stage_instructions() {
    local status=0
    x86_only || return 0
    if ! command -v valgrind >/dev/null; then
        missing "no valgrind"
        return
    fi
    build_gcc
    "$(numpy_python)" "$root/scripts/instruction_counts.py" "$build/gcc" >"$state/instructions" 2>&1 || status=$?
    cat "$state/instructions"
    if ((status == 77)); then
        skip "$(sed -n 's/^not here: //p' "$state/instructions")"
        return 0
    fi
    note "$(tail -n 1 "$state/instructions"), $(grep -c '^less: ' "$state/instructions" || true) of them shrunk"
    return "$status"
}

stage_abi() {
    local status=0
    "$root/scripts/abi.sh" "$build/abi" >"$state/abi" 2>&1 || status=$?
    cat "$state/abi"
    if ((status == 77)); then
        missing "$(sed -n 's/^not here: //p' "$state/abi")"
    else
        ((status == 0)) || return "$status"
        note "$(sed -n 's/^the interface that is kept, of //p' "$state/abi")"
    fi
    stage_abi_verdicts
}

# Two million calls; --full: a hundred million.
stage_abi_verdicts() {
    local status=0 trials=()
    build_gcc
    ((!full)) || trials=(--trials 350000)
    NRG_TEST_SCALE='' NRG_BUILD_DIR=$build/verdicts "$root/scripts/verdicts.sh" "$build/gcc" "${trials[@]}" >"$state/verdicts" 2>&1 || status=$?
    cat "$state/verdicts"
    if ((status == 77)); then
        skip "$(sed -n 's/^not here: //p' "$state/verdicts")"
        return
    fi
    note "$(sed -n 's/ of the other version$/ of the baseline/p' "$state/verdicts")"
    return "$status"
}

# check_size TITLE FILE LIMIT: of a stripped copy.
check_size() {
    local bytes
    strip --strip-unneeded -o "$state/stripped" "$2" || return 1
    bytes=$(stat -c %s "$state/stripped") || return 1
    size -A "$state/stripped" | grep -E '^\.(text|rodata|data\.rel\.ro|eh_frame)' || true
    say "$1, stripped: $bytes bytes of $3"
    note "$1 $bytes bytes"
    ((bytes <= $3))
}

# check_program TITLE LIMIT: of a program that returns an expression.
check_program() {
    cat >"$state/program.c" <<END
#include <nrg/norm.h>

int main(void)
{
    float x[4] = {2, -2, 2, -2}, w[4] = {1, 2, 3, 4}, o[4];
    nrg_norm_spec spec = nrg_norm_spec_rms(NRG_F32, 4, 0.0);
    nrg_norm_args args = nrg_norm_args_init(1, x, w, o);
    (void)spec, (void)args;
    return $1;
}
END
    gcc -O2 -I "$root/include" "$state/program.c" "$build/gcc/libnrg.a" -lm -Wl,--gc-sections -o "$state/program" || return 1
    "$state/program" || return 1
    check_size "program with ${1%%(*} alone" "$state/program" "$2"
}

# code_sizes DIR: bytes of a build's objects, a source name a line, its folder of src/ a column.
code_sizes() {
    (cd "$1/src" && size libnrg-*.a.p/*.o) | awk '
        NR > 1 {
            sub(/.*\//, "", $6); sub(/\.c\.o$/, "", $6)
            folder = $6 ~ /_/ ? $6 : "src"; sub(/_.*/, "", folder)
            name = $6; sub(/^[^_]*_/, "", name)
            if (!(folder in sum)) folders[++columns] = folder
            if (!(name in total)) names[++rows] = name
            bytes[name, folder] += $1 + $2; total[name] += $1 + $2; sum[folder] += $1 + $2; sum["all"] += $1 + $2
        }
        END {
            folders[++columns] = "all"
            printf "%-21s", "bytes"
            for (c = 1; c <= columns; c++) printf " %9s", folders[c]
            for (r = 1; r <= rows; r++) {
                bytes[names[r], "all"] = total[names[r]]
                printf "\n%-22s", names[r]
                for (c = 1; c <= columns; c++) printf " %9s", bytes[names[r], folders[c]] + 0 ? bytes[names[r], folders[c]] : "-"
            }
            printf "\n%-22s", "all"
            for (c = 1; c <= columns; c++) printf " %9s", sum[folders[c]]
            printf "\n"
        }'
}

stage_size() {
    build_gcc
    code_sizes "$build/gcc"
    part check_size "shared library" "$build/gcc/libnrg.so" "$size_limit"
    part check_program "nrg_rms_norm_f32(1, 4, x, w, o, 0.0)" "$program_limit"
    part check_program "nrg_norm_forward(&spec, &args, 0, 1)" "$forward_limit"
    part "$(numpy_python)" "$root/scripts/stack_use.py" "$stack_limit" "$build/gcc/src"
    if [[ $(gcc -dumpversion) == 12* ]]; then
        part "$(numpy_python)" "$root/scripts/instances.py" "$build/gcc"
    else
        skip "bytes of functions and instances of row norms, which are stated for gcc 12"
    fi
    parts_done
}

# The bits do not depend on the profile. Cases of other ops depend on the families that are built.
reduced_hashes() {
    local path paths
    paths=$(cpu_paths)
    for path in ${paths//,/ }; do
        "$build/reduced/tools/nrg" check --hash --quick --op norm_forward --isa "$path" >"$state/hashes" || return 1
        if [[ ! -s $state/hashes ]] || grep -vxFf <(kept_hashes --quick) "$state/hashes"; then
            say "$path: not the hashes of tests/hashes.txt"
            return 1
        fi
        say "$path: $(wc -l <"$state/hashes") hashes of tests/hashes.txt"
    done
}

stage_reduced() {
    local paths=("$(own_paths)")
    if ((full)) || [[ $machine != x86_64 || $(cpu_paths) == *avx512 ]]; then
        paths=() # what the size is a limit for
    fi
    configure "$build/reduced" gcc "${common_options[@]}" -Dbench=false -Dfamilies=norm,activation,rope -Dbackward=false -Dprofile=small \
        "${paths[@]}"
    compile "$build/reduced"
    NRG_TEST_SCALE=small NRG_REQUIRE_PATHS=$(cpu_paths) part run_tests "$build/reduced"
    part reduced_hashes
    ((!full)) || part "$build/reduced/tools/nrg" check # its quick cases are among the tests of such a build
    if ((${#paths[@]})); then
        skip "the limit on its size, which is for all paths: with --full"
    else
        part check_size "shared library" "$build/reduced/libnrg.so" "$reduced_limit"
    fi
    parts_done
}

stage_install() {
    local dest=$build/install prefix pc
    build_gcc
    fresh "$dest"
    quietly "$dest.log" meson install -C "$build/gcc" --no-rebuild --destdir "$dest"
    pc=$(find "$dest" -name nrg.pc)
    prefix=$dest$(sed -n 's/^prefix=//p' "$pc")
    cat >"$dest/program.c" <<'END'
#include <nrg/nrg.h>

int main(void)
{
    float x[4] = {2, -2, 2, -2}, w[4] = {1, 2, 3, 4}, o[4];
    if (nrg_rms_norm_f32(1, 4, x, w, o, 0.0) != NRG_OK)
        return 1;
    return !(o[0] == 1 && o[1] == -2 && o[2] == 3 && o[3] == -4);
}
END
    # relocated the way a package build does it; PKG_CONFIG_SYSROOT_DIR is taken differently by pkg-config and pkgconf
    local pkg_config=(env PKG_CONFIG_PATH="$(dirname "$pc")" pkg-config --define-variable=prefix="$prefix")
    local shared static
    read -r -a shared <<<"$("${pkg_config[@]}" --cflags --libs nrg)"
    read -r -a static <<<"$("${pkg_config[@]}" --static --cflags --libs nrg)"
    say "shared: ${shared[*]}"
    gcc "$dest/program.c" "${shared[@]}" -o "$dest/shared"
    LD_LIBRARY_PATH=$(dirname "$(find "$dest" -name libnrg.so)") "$dest/shared"
    say "static: -static ${static[*]}"
    gcc -static "$dest/program.c" "${static[@]}" -o "$dest/static"
    "$dest/static"
    "$root/scripts/find-package.sh" "$build/find-package" "$prefix" nrg::nrg nrg::nrg_static
    [[ $("${pkg_config[@]}" --modversion nrg) == $("$build/gcc/tools/nrg" --version | awk '{ print $2 }') ]]
    for header in "$root"/include/nrg/*.h; do
        cmp "$header" "$prefix/include/nrg/$(basename "$header")"
    done
    cmp "$build/gcc/tools/nrg.1" "$prefix/share/man/man1/nrg.1"
    cmp "$root/tools/shell/nrg.bash" "$prefix/share/bash-completion/completions/nrg"
}

stage_shell() {
    local line
    build_gcc
    part "$(numpy_python)" "$root/tests/shell_test.py" "$build/gcc" >"$state/shell"
    while read -r line; do
        case $line in
        *': SKIP: '*) missing "${line/: SKIP/}" || failed_part "$line" ;;
        *) say "$line" ;;
        esac
    done <"$state/shell"
    note "$(sed -n 's/^options.*: //p' "$state/shell")"
    parts_done
}

stage_embedding() {
    local compiler compilers=(gcc) options
    local -A job=()
    if [[ $machine == x86_64 ]]; then
        compilers+=(aarch64-linux-gnu-gcc)
    fi
    ((!full)) || compilers+=(clang) # the same commands once more; what clang says of the sources the clang stage shows
    # side by side: each compiles file by file, as the document says
    for compiler in "${compilers[@]}"; do
        options=()
        if ((full)); then
            options=(--full)
        elif [[ $compiler != gcc ]]; then
            options=(--families) # the neon stage has the others: a minute of compiling otherwise
        fi
        case $compiler in
        aarch64-*) set -- aarch64 "$compiler" "${qemu_arm64[@]}" ;;
        *) set -- "$machine" "$compiler" ;;
        esac
        "$root/scripts/embed-check.sh" "${options[@]}" "$build/embedding/$compiler" "$@" >"$state/embedding-$compiler" 2>&1 </dev/null &
        job[$compiler]=$!
    done
    for compiler in "${compilers[@]}"; do
        wait "${job[$compiler]}" || failed_part "embed-check.sh $compiler"
        say "$compiler:"
        cat "$state/embedding-$compiler"
    done
    parts_done
}

stage_amalgamation() {
    local options=()
    ((!full)) || options=(--full)
    "$root/scripts/amalgamation-check.sh" "${options[@]}" "$build/amalgamation"
}

stage_matrix() {
    local options=()
    x86_only || return 0
    ((!full)) || options=(--full)
    "$root/scripts/compile-matrix.sh" "${options[@]}" "$build/matrix"
}

stage_consumers() {
    local options=()
    ((!full)) || options=(--full)
    "$root/scripts/consumers.sh" "${options[@]}" "$build/consumers"
}

# The tests run on the library of the gcc build. What pip compiles is held against it: with --full all of it, which takes minutes.
stage_python() {
    local python dir=$build/python compiler=gcc summary
    python=$(numpy_python)
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        missing "$python has no venv: python3-venv of Debian"
        return
    fi
    ! command -v ccache >/dev/null || compiler="ccache gcc"
    build_gcc
    fresh "$dir"
    # NumPy is the distribution's: there is no index to take it from
    "$python" -m venv --system-site-packages "$dir/venv"
    local pip=("$dir/venv/bin/python" -m pip --disable-pip-version-check install --quiet --no-index --no-build-isolation)
    NRG_LIBRARY=$build/gcc/libnrg.so part "${pip[@]}" "$root/python"
    # what pip compiles: without --full a part, for which its first path is enough
    if ((full)); then
        CC=$compiler part "${pip[@]}" --no-deps --target "$dir/compiled" "$root/python"
    else
        CC=$compiler NRG_FAMILIES=norm,quantize NRG_PATHS='' part "${pip[@]}" --no-deps --target "$dir/compiled" "$root/python"
    fi
    part same_digests "$dir"
    # from a place that has no folder of this name, with what was installed and nothing else
    (cd "$dir" && part env -u PYTHONPATH CC="$compiler" "$dir/venv/bin/python" -m unittest discover -s "$root/tests/python" -p '*_test.py') 2>&1 |
        tee "$state/python" || true
    summary=$(sed -n 's/^Ran \([0-9]*\) tests.*/\1 tests/p' "$state/python")
    note "${summary:-no tests}"
    # one test may be skipped, and no other
    part grep -qE '^OK( \(skipped=1\))?$' "$state/python"
    part pages "$dir"
    if ((full)); then
        part python_of_sid
    elif grep -q 'skipped=' "$state/python"; then
        skip "bf16 of ml_dtypes, and nrg.torch, which Debian packages only in sid: with --full, as root"
    fi
    if command -v mypy >/dev/null; then
        part types_are_strict "$dir"
    else
        missing "mypy, which checks the annotations: mypy of Debian"
    fi
    # the sdist has all that is compiled
    part sdist_installs "$dir"
    parts_done
}

# README, tutorial and how-to pages as a reader follows them: 8 s on busy cores; --full installs from a copy of the tree, as they show it.
pages() {
    local options=()
    ((!full)) || options=(--full)
    quietly "$1/install.log" meson install -C "$build/gcc" --no-rebuild --destdir "$1/installed" || return 1
    "$1/venv/bin/python" "$root/tests/docs_test.py" "$1/pages" "$(dirname "$(find "$1/installed" -type d -name include)")" "${options[@]}"
}

# The same tests with a newer Python and NumPy, and with ml_dtypes: none is skipped.
python_of_sid() {
    local status=0
    "$root/scripts/sid-python.sh" "$build/gcc/libnrg.so" >"$state/sid" 2>&1 </dev/null || status=$?
    cat "$state/sid"
    if ((status == 77)); then
        skip "bf16 of ml_dtypes, and nrg.torch: $(sed -n 's/^not here: //p' "$state/sid")"
        return 0
    fi
    ((status == 0)) && [[ $(grep -cx OK "$state/sid") == 2 ]] || return 1
    note "$(grep '^Python ' "$state/sid"), $(grep '^PyTorch [0-9.]*' "$state/sid" | head -n 1)"
}

# same_digests DIR: the ops of the library that pip has compiled make what those of the gcc build make.
same_digests() {
    "$1/venv/bin/python" "$root/tests/python/digest.py" | sort >"$state/digests" || return 1
    PYTHONPATH=$1/compiled "$1/venv/bin/python" -c 'import nrg; assert "compiled" in nrg.__file__' || return 1
    PYTHONPATH=$1/compiled "$1/venv/bin/python" "$root/tests/python/digest.py" | sort >"$state/compiled-digests" || return 1
    if [[ ! -s $state/compiled-digests || -n $(comm -13 "$state/digests" "$state/compiled-digests") ]]; then
        comm -3 "$state/digests" "$state/compiled-digests"
        return 1
    fi
    say "$(wc -l <"$state/compiled-digests") ops of what pip compiles have the bits of the gcc build"
}

# types_are_strict DIR: mypy accepts the installed package and a user's program, and the program runs.
types_are_strict() {
    local program=$root/tests/python/typed_program.py start=$SECONDS
    local mypy=(mypy --strict --cache-dir "$build/mypy" --python-executable "$1/venv/bin/python")
    (cd "$1" && "${mypy[@]}" -p nrg && "${mypy[@]}" "$program") || return 1
    "$1/venv/bin/python" -B "$program" || return 1
    note "mypy $((SECONDS - start)) s"
}

# sdist_installs DIR: a tar ball as pip's build makes it, installed by itself.
sdist_installs() {
    (cd "$root/python" && "$1/venv/bin/python" -B -c 'import nrg_build, sys; nrg_build.build_sdist(sys.argv[1])' "$1") || return 1
    mkdir "$1/sdist"
    tar -xzf "$1"/nrg-*.tar.gz -C "$1/sdist" --strip-components=1
    diff -r "$root/src" "$1/sdist/tree/src" && diff -r "$root/include" "$1/sdist/tree/include" || return 1
    NRG_LIBRARY=$build/gcc/libnrg.so "$1/venv/bin/python" -m pip --disable-pip-version-check install --quiet --no-index --no-build-isolation \
        --no-deps --target "$1/of-sdist" "$1"/nrg-*.tar.gz || return 1
    PYTHONPATH=$1/of-sdist "$1/venv/bin/python" -c 'import nrg; assert "of-sdist" in nrg.__file__'
}

# What compares with exact values, for tests_but: where results have the bits of the gcc build, it finds what it has found there.
truth_tests() {
    if ((full)); then say '^$'; else say '_truth$'; fi
}

# That, and what else looks at numbers: the suite of bits makes calls of every kind, between fences.
number_tests() {
    if ((full)); then say '^$'; else say '_(truth|properties|climb|far|edges|fallback)$| hashes_'; fi
}

stage_clang() {
    local tests expected_skips=backward_openmp # clang's OpenMP is a package of its own; gcc comes with one
    local paths=() # those that this CPU lacks gcc's build has, and what clang says of them the platforms stage
    ((full)) || paths=("$(own_paths)")
    configure "$build/clang" clang "${common_options[@]}" -Dbench=false -Dmpi=true "${paths[@]}"
    # gcc's build has run the long sweeps, and held results against the truth; what another compiler could do otherwise, the short
    # ones and the hashes show
    mapfile -t tests < <(tests_but "$build/clang" "$(truth_tests)")
    also=tools/nrg compile_for "$build/clang" "${tests[@]}"
    ((!full)) || compile "$build/clang"
    NRG_REQUIRE_PATHS=$(cpu_paths) NRG_TEST_SCALE=small run_tests "$build/clang" "${tests[@]}"
}

stage_sanitize() {
    local paths tests expected_skips=stack # AddressSanitizer has a stack of its own; the other stages measure the real one
    paths=$(cpu_paths)
    if ((!full)) && [[ $paths == scalar,generic,avx* ]]; then
        # the same templates over vectors whose loads and stores are plain C, all of which AddressSanitizer sees; of the others it does
        # not see those with masks, and the fences suite has pages without access for them. Each takes a fifth of the stage.
        paths=scalar,generic
    fi
    # -O1 and not the release's -O3: the sanitizers see the accesses as they are written; -g1, lines without variables: 35 s and not 55 for the largest file
    # examples/meson.build switches the leak check off for the examples over MPI: Open MPI has leaks of its own
    configure "$build/sanitize" gcc "${common_options[@]}" -Dbench=false -Dmpi=true -Dbuildtype=debug -Doptimization=1 \
        -Db_sanitize=address,undefined "-Dc_args=-fno-sanitize-recover=all -g1" -Dc_link_args=-fno-sanitize-recover=all "-Dpaths=${paths#scalar,}"
    mapfile -t tests < <(tests_but "$build/sanitize" "$(number_tests)")
    also=tools/nrg compile_for "$build/sanitize" "${tests[@]}"
    # no detect_stack_use_after_return: its frames lose the 64-byte alignment of vectors (gcc bug 110027, mended in gcc 13.3)
    export ASAN_OPTIONS=detect_stack_use_after_return=0:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1
    NRG_REQUIRE_PATHS=$paths NRG_TEST_SCALE=small part run_tests "$build/sanitize" --timeout-multiplier 5 "${tests[@]}"
    if ((full)); then
        part "$(numpy_python)" "$root/tests/cli_test.py" --this-program-only "$build/sanitize/tools/nrg"
    else # bits and hashes have the cases of nrg check
        part "$(numpy_python)" "$root/tests/cli_test.py" --this-program-only --without=check_passes_here "$build/sanitize/tools/nrg"
    fi
    parts_done
}

# The harness of calls says of outputs and scratch that nobody has written them (tests/harness/unwritten.h). clang 14 follows AVX2's
# masked loads and stores lane by lane, and halves through their conversions; other intrinsics that it does not know it wants to
# have read nothing unwritten at all, in any lane. Without it compiled are the C library, of which it knows the functions, libm,
# which returns by value, and SLEEF, whose results the one test that links it compares with the library's. OpenMP is not among
# them: what clang's runtime writes MemorySanitizer does not see.
stage_memory() {
    local paths tests expected_skips=stack # as in sanitize
    paths=$(cpu_paths)
    if ((!full)); then
        skip "takes seven minutes, with --full only"
        return 0
    fi
    if ! is_debian; then
        skip "Check for it is made of a Debian package"
        return 0
    fi
    "$root/scripts/memory-check.sh" "$build/memory-check"
    # without -Werror: clang complains of what Check's header has in it where that is no system's
    configure "$build/memory" clang -Dtests=true -Dbench=false -Dmpi=false -Dbuildtype=debug -Doptimization=1 \
        -Db_sanitize=memory -Db_lundef=false "-Dc_args=-fno-sanitize-recover=all -g1 -include $root/tests/memory/stat.h" \
        "-Dpaths=${paths#scalar,}" "-Dpkg_config_path=$build/memory-check/root/lib/pkgconfig"
    compile "$build/memory"
    mapfile -t tests < <(tests_but "$build/memory" '^backward_openmp$')
    export MSAN_OPTIONS=allocator_may_return_null=1 # which it says a word of, where no memory for so much is what is tested
    NRG_REQUIRE_PATHS=$paths NRG_TEST_SCALE=small part run_tests "$build/memory" --timeout-multiplier 5 "${tests[@]}"
    skip "test check_passes_here: takes minutes, and bits has its cases"
    part "$(numpy_python)" "$root/tests/cli_test.py" --this-program-only \
        --without=check_passes_here "$build/memory/tools/nrg"
    parts_done
}

stage_fuzz() {
    local seconds=10 paths='' # of the scalar path: calls are checked before a path is chosen, and all paths take minutes to compile
    if ((full)); then
        seconds=300 paths=$(cpu_paths) paths=${paths#scalar,}
    fi
    part "$root/scripts/fuzz.sh" --paths "$paths" "$build/fuzz" $((full ? seconds : 0)) api >"$state/fuzz"
    part "$root/scripts/fuzz.sh" --paths "$paths" "$build/fuzz" "$seconds" npy cli >>"$state/fuzz"
    cat "$state/fuzz"
    note "$(sed -n 's/^fuzz_\([a-z]*: [0-9]* inputs\).*/\1/p' "$state/fuzz" | paste -sd ';')"
    parts_done
}

# valgrind's CPU is this one without AVX-512, which the dispatch sees. It follows what masked loads and stores touch, which
# AddressSanitizer does not, and what gcc's optimized code computes from memory that nobody has written, down to the bit. The suite
# of bits has the cases of nrg check, and says what is unwritten (tests/harness/unwritten.h). What valgrind 3.19 misjudges is the
# sign of a fused multiply-add that is 0, which the harness then lets pass, and what tests/memory/valgrind.supp names.
stage_valgrind() {
    local paths valgrind=(valgrind -q --error-exitcode=9 "--suppressions=$root/tests/memory/valgrind.supp")
    if ((!full)); then
        skip "takes a quarter of an hour, with --full only"
        return 0
    fi
    if ! command -v valgrind >/dev/null; then
        missing "no valgrind"
        return
    fi
    paths=$(cpu_paths)
    build_gcc
    # wrong calls: where valgrind has nothing to say of them, it has not been told what is unwritten
    CK_RUN_CASE="wrong calls" NRG_TEST_SCALE=small "${valgrind[@]}" "$build/gcc/tests/harness_call_test" >"$state/valgrind" 2>&1 || true
    part grep -q 'depends on uninitialised value' "$state/valgrind"
    NRG_TEST_SCALE=small NRG_REQUIRE_PATHS=${paths%,avx512} part run_tests "$build/gcc" --suite bits \
        --wrapper "${valgrind[*]}" --timeout-multiplier 10
    parts_done
}

stage_threads() {
    local tests paths
    paths=$(cpu_paths)
    if ((!full)) && [[ $paths == scalar,generic,avx2* ]]; then
        paths=scalar,avx2 # two to change between; threads share what is outside of paths
    fi
    # norms are all that these tests call
    configure "$build/threads" gcc "${common_options[@]}" -Dbench=false -Dfamilies=norm -Dbuildtype=debug -Doptimization=1 -Db_sanitize=thread \
        -Dc_args=-g1 "-Dpaths=${paths#scalar,}"
    mapfile -t tests < <(meson test -C "$build/threads" --no-rebuild --list 2>/dev/null | grep -E 'thread|pool' | sed 's|.* / ||')
    if ((${#tests[@]} == 0)); then
        say "no test has 'thread' or 'pool' in its name"
        return 1
    fi
    compile_for "$build/threads" "${tests[@]}"
    # ThreadSanitizer's shadow wants addresses where newer kernels' randomization may not put them. Containers may forbid setarch.
    local wrapper=()
    if setarch -R true 2>/dev/null; then
        wrapper=(--wrapper 'setarch -R')
    fi
    run_tests "$build/threads" "${wrapper[@]}" --timeout-multiplier 5 "${tests[@]}"
}

# emulated_suites PATH: what runs under an emulator whose best path this is, as arguments of meson test. Never the examples over
# MPI, since mpirun would start its ranks outside of it.
emulated_suites() {
    local suites=("${cpu_suites[@]}")
    if ((full)); then
        printf '%s\n' --no-suite mpi
        return
    fi
    # that no path has an instruction which its CPU lacks is looked up in the code: the symbols stage
    [[ ,$(cpu_paths), == *,$1,* ]] || suites+=("${path_suites[@]}" "hashes_$1")
    printf -- '--suite\n%s\n' "${suites[@]}"
}

# odd_cpus BUILD: the dispatcher on CPUs whose CPUID ends before the leaves on caches, and on AVX2; without AVX; with XSAVE, and AVX
# switched off.
odd_cpus() {
    local cpu
    for cpu in Nehalem,level=1 Haswell,level=3 Nehalem Haswell,-avx; do
        part quietly "$build/dispatch.$cpu.log" env NRG_TEST_SCALE=small qemu-x86_64 -cpu "$cpu" "$1/tests/dispatch_test"
    done
}

# under_qemu CPU PATHS: the gcc build's tests on an older CPU, whose best path is the last of PATHS.
under_qemu() {
    local cpu=$1 paths=$2 qemu suites
    x86_only || return 0
    qemu=(qemu-x86_64 -cpu "$cpu")
    build_gcc
    part expect_path "${paths##*,}" "${qemu[@]}" "$build/gcc/tools/nrg"
    # a path the CPU lacks is refused, whoever asks
    NRG_ISA=avx512 part expect_path "${paths##*,}" "${qemu[@]}" "$build/gcc/tools/nrg"
    mapfile -t suites < <(emulated_suites "${paths##*,}")
    # a CPU's VCVTPH2PS and VCVTPS2PH heed neither DAZ nor FTZ
    if [[ $paths == *avx* ]] && { ((full)) || [[ " ${suites[*]} " == *" environment "* ]]; }; then
        skip "suite environment: this qemu flushes halves where a CPU keeps them"
        if ((full)); then
            suites+=(--no-suite environment)
        else
            mapfile -t suites < <(printf '%s\n' "${suites[@]}" | grep -vxE -- '--suite|environment' | sed 'i --suite')
        fi
    fi
    NRG_TEST_SCALE=small NRG_REQUIRE_PATHS=$paths part run_tests "$build/gcc" "${suites[@]}" \
        --wrapper "${qemu[*]}" --timeout-multiplier 10
    [[ $cpu != Nehalem ]] || odd_cpus "$build/gcc"
    parts_done
}

stage_nehalem() { under_qemu Nehalem scalar,generic; }

stage_haswell() {
    x86_only || return 0
    gcc -O1 -mavx2 "$root/scripts/masked_load.c" -o "$build/masked_load"
    # in a shell of its own, which keeps bash's word on the signal to itself as well
    if ! (qemu-x86_64 -cpu Haswell "$build/masked_load" || exit 1) 2>/dev/null; then
        skip "reads past a buffer's end: this qemu reads all 32 bytes of a masked load, so the pages after buffers are readable here"
        export NRG_TEST_READABLE_FENCE=1
    fi
    under_qemu Haswell scalar,generic,avx2
}

stage_neon() {
    local suites paths=scalar,generic,neon
    if [[ $machine == aarch64 ]]; then
        skip "this machine is AArch64: the gcc and clang stages are this one"
        return 0
    fi
    if ! is_debian; then
        skip "the tests' arm64 libraries come as Debian packages"
        return 0
    fi
    if ((full)); then
        configure_neon
    else
        # the portable path beside it takes longer to compile than all else: riscv64 has it, on a CPU that needs it
        paths=scalar,neon
        # -O2 takes two thirds of the time of -O3 to compile, and has the same bits, which is what is looked at; -O1 takes more stack
        configure_neon -Dpaths=neon -Doptimization=2
    fi
    # by hand only, and made of the templates: it is to follow them
    local -r mca=(aarch64-linux-gnu-gcc -std=c11 -O2 -Wall -Wextra -Werror -I "$root/include" -fsyntax-only "$root/scripts/neon-mca.c")
    part "${mca[@]}"
    part "${mca[@]}" -DNEON_MCA_CONSTANT
    mapfile -t suites < <(emulated_suites neon)
    also=tools/nrg compile_for "$build/neon" "${suites[@]}"
    part expect_path neon "${qemu_arm64[@]}" "$build/neon/tools/nrg"
    NRG_TEST_SCALE=$emulated_scale NRG_REQUIRE_PATHS=$paths part run_tests "$build/neon" "${suites[@]}" --timeout-multiplier 10
    side_by_side "clang_for_arm64 neon" "clang_for_arm64 generic"
    parts_done
}

# clang_for_arm64 PATH: clang makes FMAX and FMIN of comparisons, and those order zeros. In a copy of the neon build's program, its
# activations take the places of gcc's; those of the portable path have NEON's names.
clang_for_arm64() {
    local path=$1 dir=$build/neon-clang-$1 neon=$build/neon source isas=(neon) isa
    local compiler=(clang --target=aarch64-linux-gnu -std=c11 -O1 -ffp-contract=off -fno-math-errno -Dgeneric=neon -I "$root/include")
    [[ $path != neon ]] || isas+=(scalar)
    fresh "$dir"
    for source in scalar "$path"; do
        "${compiler[@]}" -c "$root/src/$source/activation.c" -o "$dir/$source.o" || return 1
    done
    aarch64-linux-gnu-gcc "$neon/tools/nrg.p/main.c.o" "$dir"/*.o -Wl,--start-group "$neon"/{tools,check,src}/*.a -Wl,--end-group -lm \
        -o "$dir/nrg" || return 1
    for isa in "${isas[@]}"; do
        "${qemu_arm64[@]}" "$dir/nrg" check --hash --quick --isa "$isa" --op activation >"$dir/hashes" || return 1
        if [[ ! -s $dir/hashes ]] || grep -vxFf <(kept_hashes --quick) "$dir/hashes"; then
            say "activations by clang, $path as $isa: not the bits of tests/hashes.txt"
            return 1
        fi
    done
    say "activations by clang, $path: the hashes of tests/hashes.txt"
}

# portable_cross NAME TRIPLE [RUNNER ...]: the portable path on a CPU that has no other, by the hashes of all ops. The suites in full
# only, with a Check that is compiled for them.
portable_cross() {
    local name=$1 triple=$2 nrg suites with_suites=0 options=(-Dtests=false) quick=--quick
    shift 2
    if ! command -v "$triple-gcc" >/dev/null; then
        skip "no $triple-gcc: it comes as a Debian package"
        return 0
    fi
    if ((full)); then
        quick=''
        if is_debian; then
            "$root/scripts/check-sysroot.sh" "$triple" "$build/sysroot-$name"
            with_suites=1 options=(-Dsleef=false --cross-file "$build/sysroot-$name/sysroot.ini")
            skip "test sleef: for $name there is Check alone"
        else
            skip "the suites: Check for $name is made of a Debian package"
        fi
    fi
    ((full)) || options+=(-Doptimization=1) # half of the time to compile; what is looked at are bits
    configure "$build/$name" "$triple-gcc" "${common_options[@]}" -Dbench=false "${options[@]}" --cross-file "$root/cross/$name.txt"
    compile "$build/$name"
    nrg=("$@" "$build/$name/tools/nrg")
    part expect_path generic "${nrg[@]}"
    # where all hashes are those of the scalar path elsewhere, there is nothing left for a comparison with the scalar path here
    part same_cross_hashes "$quick" "${nrg[@]}" check
    ((!full)) || part "${nrg[@]}" check
    if ((with_suites)); then
        mapfile -t suites < <(emulated_suites generic)
        NRG_TEST_SCALE=small NRG_REQUIRE_PATHS=scalar,generic part run_tests "$build/$name" "${suites[@]}" --timeout-multiplier 10
    fi
    parts_done
}

stage_riscv64() { portable_cross riscv64 riscv64-linux-gnu "${qemu_riscv64[@]}"; }

# A CPU whose sizes have 32 bits, which this one is as well.
stage_i686() {
    x86_only || return 0
    if ((!full)); then
        skip "takes a minute to compile, with --full only"
        return 0
    fi
    if is_debian && ! "$root/scripts/setup.sh" i686; then
        missing "no i686-linux-gnu-gcc"
        return
    fi
    portable_cross i686 i686-linux-gnu
}

# Of platforms that are not at hand there is what clang says of the sources.
stage_platforms() {
    local options=() status=0
    ((!full)) || options=(--full)
    "$root/scripts/platforms.sh" "${options[@]}" >"$state/platforms" 2>&1 || status=$?
    cat "$state/platforms"
    note "$(grep -cE ': [0-9]+ files$' "$state/platforms") targets and paths, $(grep -c ': refused: ' "$state/platforms") refused"
    return "$status"
}

# Another operating system, C library and calling convention, in a Windows of wine's that is this build's own.
stage_windows() {
    local path paths wine=/usr/lib/wine/wine64 exe=$build/windows/tools/nrg.exe
    x86_only || return 0
    if ((!full)); then
        skip "wants mingw-w64 and wine, which are installed with --full only"
        return 0
    fi
    if ! is_debian; then
        skip "Check for Windows is made of a Debian package"
        return 0
    fi
    if ! "$root/scripts/setup.sh" windows; then
        missing "no mingw-w64, or no wine"
        return
    fi
    export WINEPREFIX=$build/wine WINEDEBUG=-all
    paths=$(cpu_paths)
    "$root/scripts/check-sysroot.sh" x86_64-w64-mingw32 "$build/sysroot-windows"
    configure "$build/windows" x86_64-w64-mingw32-gcc "${common_options[@]}" -Dbench=false -Dsleef=false -Dmpi=false \
        --cross-file "$root/cross/mingw64.txt" --cross-file "$build/sysroot-windows/sysroot.ini"
    compile "$build/windows"
    skip "test sleef: for Windows there is Check alone"
    skip "test stack: Windows has no contexts with a stack of their own"
    # before anything else, since two programs at once would both begin to make it
    quietly "$build/wine.log" "$wine" wineboot --init
    for path in ${paths//,/ }; do
        NRG_ISA=$path part expect_path "$path" "$wine" "$exe"
        NRG_ISA=$path part same_cross_hashes --quick "$wine" "$exe" check
    done
    NRG_TEST_SCALE=small NRG_REQUIRE_PATHS=$paths part run_tests "$build/windows" --timeout-multiplier 10
    part "$root/scripts/windows-check.sh" "$build/windows-check" "$build/windows"
    parts_done
}

# The path over vectors made of AVX2's: tests/emulated/.
stage_avx512() {
    local tests paths options
    x86_only || return 0
    paths=$(cpu_paths)
    if [[ $paths != scalar,generic,avx2 ]]; then
        skip "the paths of this CPU are $paths: the emulation is made of AVX2, for CPUs without AVX-512"
        return 0
    fi
    # vectors are pairs in memory there, of which gcc cannot see that loops have filled them; of real ones it can, in the gcc stage
    if ((full)); then
        options=(-Doptimization=2)
        paths+=,avx512
    else # the other paths are those of the gcc stage
        options=(-Doptimization=1 -Dpaths=avx512)
        paths=scalar,avx512
    fi
    configure "$build/avx512" gcc "${common_options[@]}" -Dbench=false -Dexamples=false "${options[@]}" \
        -Demulate_avx512=true -Dc_args=-Wno-maybe-uninitialized
    # never what asks the CPU itself, nor the use of stack: emulated vectors live there
    if ((full)); then
        mapfile -t tests < <(tests_but "$build/avx512" '^dispatch|^stack$')
    else
        mapfile -t tests < <(emulated_suites avx512 | grep -vxE -- '--suite|dispatch|stack|model' | sed 'i --suite')
    fi
    also=tools/nrg compile_for "$build/avx512" "${tests[@]}"
    part expect_path avx512 "$build/avx512/tools/nrg"
    NRG_TEST_SCALE=$emulated_scale NRG_REQUIRE_PATHS=$paths part run_tests "$build/avx512" "${tests[@]}"
    parts_done
}

# Its own build of the library, and 500 MB of Debian sid outside of the tree.
stage_ggml() {
    local status=0
    if ((!full)); then
        skip "sets up a Debian sid, with --full only"
        return 0
    fi
    "$root/scripts/ggml.sh" 0.02 >"$state/ggml" 2>&1 </dev/null || status=$?
    cat "$state/ggml"
    if ((status == 77)); then
        skip "$(sed -n 's/^not here: //p' "$state/ggml")"
        return 0
    fi
    ((status == 0)) || return 1
    note "$(grep -c '^| [`*]' "$state/ggml") ops and layers agree"
}

stage_release() {
    local options=()
    if [[ $(git -C "$root" rev-parse --show-toplevel 2>/dev/null) != "$(realpath "$root")" ]]; then
        skip "a release is made of a git checkout, which this tree is not"
        return 0
    fi
    ((!full)) || options=(--quick)
    "$(numpy_python)" "$root/tests/release_test.py" "$build/release" "${options[@]}" >"$state/release" || {
        cat "$state/release"
        return 1
    }
    cat "$state/release"
    note "$(sed -n 's/^scripts.release.sh: \(.*\), 0 failed/\1/p' "$state/release")"
}

# The figures of a report are nobody's business here: its JSON and --compare are looked at by the gcc stage's tests as well.
stage_report() {
    local status=0
    if ((!full)); then
        skip "wants a browser, which is installed with --full only"
        return 0
    fi
    if ! "$root/scripts/setup.sh" report; then
        missing "no Chromium for the page"
        return
    fi
    build_gcc
    fresh "$build/report"
    quietly "$build/report.errors.log" "$build/gcc/bench/nrg-bench" --errors
    quietly "$build/report.log" "$build/gcc/bench/nrg-bench" --report "$build/report" --seconds-total 60
    "$(numpy_python)" "$root/tests/report/page_test.py" "$build/report" "$build/report/pictures" >"$state/report" 2>&1 || status=$?
    cat "$state/report"
    ((status == 0)) || return 1
    note "$(sed -n 's/^the page of a report: \(.*\), 0 wrong/\1/p' "$state/report")"
}

stage_site() {
    local status=0
    if ((!full)); then
        skip "needs MkDocs and a browser, which are installed with --full only; stage headers checks the links"
        return 0
    fi
    if ! "$root/scripts/setup.sh" site; then
        missing "no MkDocs or no Chromium for the site"
        return
    fi
    fresh "$build/site"
    "$(numpy_python)" "$root/scripts/site.py" "$build/site"
    "$(numpy_python)" "$root/tests/site_test.py" "$build/site/site" "$build/site/pictures" >"$state/site" 2>&1 || status=$?
    cat "$state/site"
    ((status == 0)) || return 1
    note "$(sed -n 's/^the site: \(.*\), 0 wrong/\1/p' "$state/site")"
}

stage_coverage() {
    local report=$build/coverage.txt
    local expected_skips=stack # unoptimized code uses more of it; the other stages measure the real one
    # -O0: already at -O1 lines such as an early return are merged with others, and count as no line at all
    configure "$build/coverage" gcc -Dtests=true -Dbench=false -Dbuildtype=debug -Doptimization=0 -Db_coverage=true \
        -Dc_args=-fprofile-update=atomic "$(own_paths)"
    compile "$build/coverage"
    find "$build/coverage" -name '*.gcda' -delete
    NRG_REQUIRE_PATHS=$(cpu_paths) NRG_TEST_SCALE=small part run_tests "$build/coverage" --timeout-multiplier 5
    [[ $machine != x86_64 ]] || odd_cpus "$build/coverage"
    gcovr -r "$root" --filter "$root/src/" --exclude-unreachable-branches --json "$report.json" --txt "$report" \
        --print-summary "$build/coverage" >"$report.summary"
    cat "$report"
    part "$(numpy_python)" "$root/scripts/coverage.py" "$report.json" >"$state/coverage"
    cat "$state/coverage"
    note "$(sed -n 's/^lines: \([^ ]*\).*/\1 of lines/p' "$report.summary")"
    note "$(sed -n 's/^branches: //p' "$state/coverage") of branches"
    parts_done
}

# --- running them ------------------------------------------------------------------------------------------------------------

# What the children of this shell have taken so far of all cores. Far below the seconds that went by times the number of cores,
# something waits.
core_seconds=0
count_core_seconds() {
    local stat
    read -ra stat <"/proc/$BASHPID/stat"
    core_seconds=$(((stat[15] + stat[16]) / 100))
}

# run_stage NAME TITLE: in a shell of its own, where a failing command ends the stage and not the script. Its line of the summary,
# and its result, go to its folder.
run_stage() {
    stage=$1 state=$states/$1
    local result=passed begin=$SECONDS status skips=0 failed_parts=0 busy
    mkdir "$state"
    printf '\n=== %s: %s ===\n' "$stage" "$2"
    : >"$state/notes"
    : >"$state/skips"
    count_core_seconds
    busy=$core_seconds
    set +e
    (
        set -e
        "stage_$stage"
    )
    status=$?
    set -e
    skips=$(wc -l <"$state/skips")
    if ((status != 0)); then
        result=FAILED
    elif ((skips > 0)) && [[ ! -s $state/notes ]]; then
        result=skipped
    fi
    count_core_seconds
    busy=$((core_seconds - busy))
    printf -- '--- %s: %s, %d s, %d s of cores\n' "$stage" "$result" $((SECONDS - begin)) "$busy"
    {
        printf '%-12s %-8s %6d s %6d s  %s\n' "$stage" "$result" $((SECONDS - begin)) "$busy" \
            "$(paste -sd ';' "$state/notes" | sed 's/;/, /g')"
        sed 's/^[^:]*/             SKIP/' "$state/skips"
    } >"$state/summary"
    say "$result" >"$state/result"
}

# run_stages LIVE NAME ...: those of them that nobody else has begun. LIVE: what they say is printed as they say it, and not when
# they are through.
run_stages() {
    local live=$1 name title said
    shift
    for name in "$@"; do
        mkdir "$states/$name.begun" 2>/dev/null || continue
        title=$(printf '%s\n' "${stages[@]}" | sed -n "s/^$name  *//p")
        if ((live)); then
            run_stage "$name" "$title"
        else
            said=$states/$name.said
            flock "$states" printf '... %s: begins\n' "$name"
            run_stage "$name" "$title" >"$said" 2>&1
            flock "$states" cat "$said"
        fi
    done
}

names=()
for entry in "${stages[@]}"; do
    names+=("${entry%% *}")
done
if [[ ${1-} == --full ]]; then
    full=1
    scale=full emulated_scale=small
    shift
fi
if [[ ${1-} == --list ]]; then
    printf '%s\n' "${stages[@]}"
    exit 0
fi
for name in "$@"; do
    [[ " ${names[*]} " == *" $name "* ]] || die "no stage named '$name'; they are: ${names[*]}"
done
wanted=()
for name in "${names[@]}"; do
    # three minutes of the twenty, for a report: the tests of coverage are those of the other stages
    if [[ " $* " == *" $name "* ]] || { (($# == 0)) && [[ $name != coverage || $full == 1 ]]; }; then
        wanted+=("$name")
    fi
done

"$root/scripts/setup.sh" test

mkdir -p "$build"
states=$(mktemp -d)
trap 'rm -rf "$states"' EXIT
if ((full || ${#wanted[@]} < 2)); then
    run_stages 1 "${wanted[@]}"
else
    # Two at a time, from either end of the list, since no stage keeps all cores busy from its beginning to its end. With --full
    # some of them install what they want, which only one can do.
    backwards=()
    for name in "${wanted[@]}"; do
        backwards=("$name" "${backwards[@]}")
    done
    workers=()
    # each with all that it has begun, of which what was said is all there is
    stop_workers() {
        local worker said
        for worker in "${workers[@]}"; do
            kill -- "-$worker" 2>/dev/null || true
        done
        for said in "$states"/*.said; do
            name=$(basename "$said" .said)
            [[ ! -f $said || -f $states/$name/result ]] || cat "$said"
        done
    }
    trap 'stop_workers; rm -rf "$states"' EXIT
    set -m # a process group for each
    { set +m && run_stages 0 "${wanted[@]}"; } </dev/null & workers+=($!)
    { set +m && run_stages 0 "${backwards[@]}"; } </dev/null & workers+=($!)
    set +m
    wait "${workers[@]}" || true
fi

count_core_seconds
printf '\n=== summary, %d s, %d s of cores ===\n' "$SECONDS" "$core_seconds"
printf '%-12s %-8s %8s %8s\n' stage '' time cores
for name in "${wanted[@]}"; do
    if [[ -f $states/$name/result ]]; then
        cat "$states/$name/summary"
    else
        printf '%-12s died\n' "$name"
    fi
done
count() { cat "$states"/*/result 2>/dev/null | grep -cx "$1" || true; }
passed=$(count passed) failed=$((${#wanted[@]} - passed - $(count skipped)))
skipped=$(cat "$states"/*/skips | wc -l)
say
if ((skipped)); then
    say "$passed passed, $failed failed, $skipped skipped"
else
    say "$passed passed, $failed failed"
fi
((failed == 0))
