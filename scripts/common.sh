# shellcheck shell=bash
# Functions that demo.sh, test.sh and other scripts share. Source it; do not run it.

# One language for every tool, so that what they print reads and sorts the same everywhere.
export LC_ALL=C.UTF-8

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s\n' "$*"; }
die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

is_debian() { command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; }

# Runs a command quietly: its output goes to a log file, and to the terminal only if it fails.
quietly() {
    local log=$1
    shift
    mkdir -p "$(dirname "$log")"
    if "$@" >"$log" 2>&1 </dev/null; then
        return 0
    else
        local status=$?
        cat "$log"
        say "failed with status $status: $*"
        return "$status"
    fi
}

# fresh DIR: there, and empty but for a mark. A folder that has something in it, and not the mark, is none of these scripts' own.
fresh() {
    if [[ -e $1 && ! -f $1/.of-nrg && -n $(ls -A "$1") ]]; then
        die "$1 is not empty, and not marked as made by these scripts; if it is no loss, remove it"
    fi
    if [[ -e $1 ]]; then
        find "$1" -mindepth 1 ! -path "$1/.of-nrg" -delete # the mark stays, should this be interrupted
    fi
    mkdir -p "$1"
    : >"$1/.of-nrg"
}

# A Python that has NumPy. The distribution's first: a `python3` of pyenv or conda, earlier on PATH, often has none.
numpy_python() {
    local python
    for python in /usr/bin/python3 python3; do
        if "$python" -c 'import numpy' 2>/dev/null; then
            say "$python"
            return 0
        fi
    done
    return 1
}

# The paths this CPU has, the best one last, by what the kernel says of it: on purpose not by the library's own detection.
cpu_paths() {
    local has=scalar,generic flags
    case $(uname -m) in
    x86_64)
        flags=" $(grep -m1 '^flags' /proc/cpuinfo) "
        if [[ $flags == *" avx2 "* && $flags == *" fma "* && $flags == *" f16c "* ]]; then
            has+=,avx2
            if [[ $flags == *" avx512f "* && $flags == *" avx512bw "* && $flags == *" avx512dq "* && $flags == *" avx512vl "* ]]; then
                has+=,avx512
            fi
        fi
        ;;
    aarch64 | arm64) has+=,neon ;;
    esac
    say "$has"
}

# configure DIR COMPILER [MESON-OPTION ...]: a meson build in DIR, made anew only when the compiler or an option changes.
configure() {
    local dir=$1 compiler=$2 wanted
    shift 2
    wanted="$("$compiler" --version | head -n 1) | meson $(meson --version) | $(cksum <"$root/meson_options.txt") | $*"
    if [[ -f $dir/build.ninja && -f $dir/.configured && $(<"$dir/.configured") == "$wanted" ]]; then
        quietly "$dir.setup.log" ninja -C "$dir" build.ninja # where a meson.build has changed: tests are listed before they are compiled
        return
    fi
    if [[ -d $dir && ! -d $dir/meson-private && -n $(ls -A "$dir") ]]; then
        die "$dir is not empty, and no build; if it is no loss, remove it"
    fi
    rm -rf "$dir"
    CC=$compiler quietly "$dir.setup.log" meson setup "$dir" "$root" "$@"
    say "$wanted" >"$dir/.configured"
}

# What a shared library has to export, and nothing else: the functions of the public headers, sorted.
declared_functions() {
    # a declaration may span lines; its name stands before the first parenthesis
    cat "$root"/include/nrg/*.h | grep -v '^ *#' | tr '\n' ' ' | grep -o 'NRG_API [^;]*;' | sed 's/(.*//; s/.*[ *]//' | sort -u
}

# Ops of most families, for builds whose bits take minutes to make: one that is summed, and whose bits are others where multiplications
# and additions are fused; one of polynomials; and others.
few_ops=(norm_backward activation_backward rope embed_backward relative_scores score_bias)
of_few_ops() (
    IFS='|'
    grep -E "^(${few_ops[*]})_(f32|f16|bf16)(-exact)? "
)

# kept_hashes [--quick]: what `nrg check --hash [--quick]` prints on every path
kept_hashes() { cut -d ' ' -f "$([[ ${1-} == --quick ]] && say 1-3 || say 1,4,5)" "$root/tests/hashes.txt"; }

# same_cross_hashes LEVEL COMMAND ...: what `nrg check LEVEL --hash` of a build for another machine prints, an op on each core
# at a time, is what is kept. COMMAND is that build's `nrg check`.
same_cross_hashes() {
    local level=$1 out status=0
    shift
    out=$(mktemp -d)
    # shellcheck disable=SC2016 # for the shell that xargs starts
    kept_hashes | sed -E 's/_(f32|f16|bf16)(-exact)? .*//' | sort -u |
        xargs -P "$(nproc)" -I {} sh -c '"$@" </dev/null >"$0"' "$out/{}" "$@" ${level:+"$level"} --hash --op {} || status=1
    sort "$out"/* | diff <(kept_hashes "$level" | sort) - || status=1
    rm -r "$out"
    ((!status)) && say "the hashes of tests/hashes.txt"
}

# compile_check INCLUDE OUT COMPILER [OPTION ...]: objects of `nrg check` as a program of its own, which sees the public headers in
# INCLUDE alone. left_out: families that are not in the library.
left_out=()
compile_check() {
    local include=$1 out=$2 source object family system=posix
    shift 2
    for family in "${left_out[@]}"; do
        set -- "$@" "-DNRG_NO_${family^^}"
    done
    if [[ $("$@" -dumpmachine) == *mingw* ]]; then
        system=windows
        set -- "$@" -D__USE_MINGW_ANSI_STDIO=1
    fi
    mkdir -p "$out"
    python3 "$root/check/functions.py" "$out/functions.def"
    cat >"$out/main.c" <<'END'
int command_check(char **arguments);
void system_begin(void);

int main(int argc, char **argv)
{
    system_begin();
    return argc ? command_check(argv + 1) : 1;
}
END
    for source in "$out/main.c" "$root"/tools/{cli,progress,system_"$system"}.c "$root"/check/*.c "$root"/check/*/*.c; do
        [[ $source != */rope/qkv.c || " ${left_out[*]} " != *" norm "* ]] || continue
        object=${source#"$root/"}
        object=${object#"$out/"}
        family=$(basename "$(dirname "$source")")
        # shellcheck disable=SC2086
        if ! printf '%s\n' "${left_out[@]}" | grep -xF -f <(printf '%s\n' $family) >/dev/null; then # -q ends the pipe early
            "$@" -std=c11 -O1 -ffp-contract=off -Wall -Wextra -Werror -D_XOPEN_SOURCE=700 -I "$include" -I "$out" -c "$source" \
                -o "$out/${object//\//-}.o"
        fi
    done
}
