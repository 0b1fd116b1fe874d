#!/usr/bin/env bash
# Runs the commands of docs/howto/vendor-sources.md, smaller-builds.md and threads.md unchanged: copies src/ and include/, builds the
# library and the program, and compares the library's bits on every path with tests/hashes.txt. Then the same without the best
# path, and without some families.
#
#   scripts/embed-check.sh [--families | --full] WORK-DIR ARCH COMPILER [RUNNER ...]
#
# ARCH: x86_64 or aarch64. RUNNER: what runs the program, such as qemu-aarch64. --families: only with families left out, and no
# portable path. --full: all ops, -O2 as the document has it, and all files compiled for what is left out, too. Otherwise bits are
# those of some ops, optimized by -O1, which takes half the time; when a path is left out, the objects of other vector paths are
# those of before, and when families are, there are only the portable and the scalar path.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

extent=usual
if [[ ${1-} == --families || ${1-} == --full ]]; then
    extent=${1#--}
    shift
fi
(($# >= 3)) || die "usage: embed-check.sh [--families | --full] WORK-DIR ARCH COMPILER [RUNNER ...]"
work=$(realpath -m "$1") arch=$2 compiler=$3
runner=("${@:4}")
case $arch in
x86_64) best=avx512 ;;
aarch64) best=neon ;;
*) die "docs/howto/vendor-sources.md has no commands for $arch" ;;
esac

# block NAME: prints the fenced block that follows the comment with this name, in the only page that has one.
block() {
    local mark="<!-- checked by scripts/embed-check.sh: $1 -->" pages
    mapfile -t pages < <(grep -lxF -- "$mark" "$root"/docs/howto/*.md)
    ((${#pages[@]} == 1)) || die "${#pages[@]} pages of docs/howto have a block named $1, not one"
    awk -v mark="$mark" '
        $0 == mark { marked = 1; next }
        marked && /^```/ { if (inside) exit; inside = 1; next }
        inside { print }' "${pages[0]}" | grep . || die "${pages[0]}: the block named $1 is empty"
}

# A compiler that remembers, if there is ccache: some files of the libraries below are the same text again. It knows commands with
# one source only, and the document's have a folder each, whose files it compiles on all cores.
if command -v ccache >/dev/null; then
    mkdir -p "$(dirname "$work")"
    export CCACHE_DIR=$work.ccache CCACHE_CONFIGPATH=/dev/null
    cat >"$work.cc" <<'END'
#!/usr/bin/env bash
options=() sources=()
for word in "$@"; do
    if [[ $word == *.c ]]; then sources+=("$word"); else options+=("$word"); fi
done
printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P "$(nproc)" ccache "${options[@]}"
END
    chmod +x "$work.cc"
    building="$work.cc $compiler"
else
    building=$compiler
fi

# build_library DIR COMMANDS COMPILER [LEFT-OUT-PATH [PATH ...]]: DIR/libnrg.a from a copy of src/ and include/; paths whose objects
# are taken from the first one
build_library() {
    local dir=$1 commands=$2 cc=$3 omitted=${4-} path
    mkdir "$dir"
    cp -R "$root/src" "$root/include" "$dir"
    if [[ -n $omitted ]]; then
        rm -r "$dir/src/$omitted"
    fi
    for path in "${@:5}"; do
        mkdir -p "$dir/obj"
        cp -R "nrg/obj/$path" "$dir/obj"
    done
    (cd "$dir" && CC=$cc sh -e "../$commands")
}

# compare_hashes DIR: DIR/paths.txt, the paths that DIR/libnrg.a holds; and what those compute that run here.
compare_hashes() {
    local dir=$1 path runs op
    "$compiler" -std=c11 -Wall -Wextra -Werror -I nrg/include paths.c "$dir/libnrg.a" -lm -o "$dir/paths"
    "$compiler" check/*.o "$dir/libnrg.a" -lm -o "$dir/check"
    "${runner[@]}" "$dir/paths" >"$dir/runs.txt"
    cut -d ' ' -f 1 "$dir/runs.txt" >"$dir/paths.txt"
    while read -r path runs; do
        if [[ $runs == no ]]; then
            say "$dir: $path does not run here"
        elif [[ $extent != full ]]; then
            for op in "${few_ops[@]}"; do
                "${runner[@]}" "$dir/check" --hash --quick --isa "$path" --op "$op" </dev/null
            done >"$dir/hashes.txt"
            diff <(kept_hashes --quick | of_few_ops | sort) <(sort "$dir/hashes.txt") || die "$dir: other bits on $path"
            say "$dir: the bits of $path are those of tests/hashes.txt, for some ops"
        else
            "${runner[@]}" "$dir/check" --hash --quick --isa "$path" </dev/null >"$dir/hashes.txt"
            diff <(kept_hashes --quick) "$dir/hashes.txt" || die "$dir: other bits on $path"
            say "$dir: the bits of $path are those of tests/hashes.txt"
        fi
    done <"$dir/runs.txt"
}

fresh "$work"
cd "$work"

# the list of files, one by one, is what there is
block files >files.sh
(cd "$root" && sh -e "$work/files.sh" | sort) >listed
(cd "$root" && find src -name '*.c' | sort) >found
diff listed found || die "(<) listed in src/sources.txt and not in src/, or (>) the reverse"

block "$arch" >build.sh
if [[ $extent != full ]]; then
    sed -i 's/ -O2 / -O1 /' build.sh
fi
# Who forgets -ffp-contract=off, in a dialect that fuses and for a CPU that can, has the same instructions; they are others without
# what src/compiler.h says.
fusing=()
[[ $arch != x86_64 ]] || fusing=(-mfma)
mkdir forgotten
cp -R "$root/src" "$root/include" forgotten
# of_norms NAME [OPTION ...]: the code of a file that fuses much, if it may
of_norms() {
    local name=$1
    shift
    (cd forgotten && "$compiler" -std=gnu11 -O2 -fno-math-errno "${fusing[@]}" "$@" -Iinclude -Isrc -S src/scalar/norm_backward.c -o - |
        grep -vE '^\s*\.(file|ident|loc)' >"$name.s")
}
of_norms as-said -ffp-contract=off
of_norms forgotten
cmp forgotten/as-said.s forgotten/forgotten.s || die "without -ffp-contract=off the code is another"
sed -i '/^#pragma \(STDC FP_CONTRACT\|GCC optimize\)/d' forgotten/src/compiler.h
of_norms fused
if cmp -s forgotten/as-said.s forgotten/fused.s; then
    die "src/compiler.h changes nothing: this looks at nothing"
fi
say "-ffp-contract=off may be forgotten"

cat >paths.c <<'END'
#include <nrg/nrg.h>
#include <stdio.h>

int main(void)
{
    for (int isa = 0; nrg_isa_name((nrg_isa)isa); isa++)
        if (nrg_isa_built((nrg_isa)isa))
            printf("%s %s\n", nrg_isa_name((nrg_isa)isa), nrg_isa_supported((nrg_isa)isa) ? "yes" : "no");
    return 0;
}
END

# take_line PATH COMMANDS: leaves a path's line out, which is that of the whole library.
take_line() {
    diff <(grep "^(cd obj.$1 " build.sh) <(grep "^(cd obj.$1 " "$2") || die "$2 compiles $1 in another way"
    sed -i "/^(cd obj.$1 /d" "$2"
    ! diff -q build.sh "$2" >/dev/null || die "no line for $1"
}

# The document's library, its program, and what it says of exports.
whole_library() {
    block program >program.c
    block output >expected
    build_library nrg build.sh "$building"

    "$compiler" -std=c11 -Wall -Wextra -Werror -I nrg/include program.c nrg/libnrg.a -lm -pthread -o program
    "${runner[@]}" ./program >output
    diff -u expected output || die "the program of docs/howto/threads.md prints another output"

    compile_check nrg/include check "$compiler"
    compare_hashes nrg

    # vendor-sources.md, "Symbols"
    "$compiler" -shared -o libengine.so -Wl,--whole-archive nrg/libnrg.a -Wl,--no-whole-archive -Wl,--exclude-libs,libnrg.a -lm
    if nm -D --defined-only libengine.so | grep nrg_; then
        die "--exclude-libs leaves these exported"
    fi
    "$compiler" -shared -o libengine.so -Wl,--whole-archive nrg/libnrg.a -Wl,--no-whole-archive -lm
    nm -D --defined-only libengine.so | grep nrg_ >/dev/null || die "nothing is exported anyway: this test tests nothing"
    # only what includes the headers that export: the paths are what they were
    grep -vE '^\(cd obj/(scalar|generic|avx2|avx512|neon) ' build.sh >build-core.sh
    build_library hidden build-core.sh "$compiler -DNRG_API="
    "$compiler" -shared -o libengine.so -Wl,--whole-archive hidden/libnrg.a -Wl,--no-whole-archive -lm
    if nm -D --defined-only libengine.so | grep nrg_; then
        die "-DNRG_API= leaves these exported"
    fi
}

# smaller-builds.md, "Exclude a path"
without_best_path() {
    local others=() path building_without
    if [[ $arch == x86_64 ]]; then
        block "x86_64 without avx512" >build-without.sh
        building_without=$building others=(generic avx2)
    else
        # the document shows no commands for it: those above, without this folder's line
        sed "/^(cd obj.$best /d" build.sh >build-without.sh
        building_without="$building -DNRG_NO_NEON" others=(generic)
    fi
    if [[ $extent == full ]]; then
        others=()
    else
        sed -i 's/ -O2 / -O1 /' build-without.sh
        for path in "${others[@]}"; do
            take_line "$path" build-without.sh
        done
    fi
    build_library without build-without.sh "$building_without" $best "${others[@]}"
    compare_hashes without
    grep -qx $best nrg/paths.txt || die "the whole library is without $best"
    diff <(grep -vx $best nrg/paths.txt) without/paths.txt ||
        die "the library without src/$best should have all the other paths, and only those"
    say "without src/$best: $(paste -sd ' ' without/paths.txt), the same bits"
}

cat >families.c <<'END'
#include <nrg/nrg.h>
#include <stdio.h>

int main(void)
{
    for (unsigned i = 0; nrg_family_name(i); i++)
        if (nrg_family_built(nrg_family_name(i)))
            printf("%s\n", nrg_family_name(i));
    return nrg_backward_built();
}
END

# smaller-builds.md, "Exclude a family": norms, activations and rope, forward
some_families() {
    local kept=(norm activation rope) less=(avx2 avx512 neon) definitions path runs
    grep -E '^[a-z_+]+ (core|paths|vectors) ' "$root/src/sources.txt" | grep -v '^always ' >parts
    mapfile -t left_out < <(cut -d ' ' -f 1 parts | tr + '\n' | sort -u | grep -vxF -f <(printf '%s\n' "${kept[@]}"))
    while read -r part kind files; do
        [[ " ${left_out[*]} " == *" ${part%+*} "* || " ${left_out[*]} " == *" ${part#*+} "* ]] || continue
        for file in $files; do
            case $kind in
            core) echo "$file" ;;
            paths) printf '%s\n' {scalar,generic,avx2,avx512,neon}/"$file" ;;
            vectors) printf '%s\n' {generic,avx2,avx512,neon}/"$file" ;;
            esac
        done
    done <parts >left-out-files
    mkdir families
    cp -R "$root/src" "$root/include" families
    (cd families/src && xargs rm) <left-out-files
    definitions=$(printf ' -DNRG_NO_%s' "${left_out[@]^^}")
    cp build.sh build-families.sh
    if [[ $extent != full ]]; then
        [[ $extent != families ]] || less=(generic)
        for path in "${less[@]}"; do
            [[ -d families/src/$path ]] || die "no path $path"
            rm -r "families/src/$path"
            [[ $arch == x86_64 && $path == neon || $arch == aarch64 && $path == avx* ]] || take_line "$path" build-families.sh
            definitions+=" -DNRG_NO_${path^^}"
        done
    fi
    (cd families && CC="$building$definitions" sh -e ../build-families.sh)
    # every symbol that is left is there
    "$compiler" -shared -o libfamilies.so -Wl,--whole-archive families/libnrg.a -Wl,--no-whole-archive -Wl,--no-undefined -lm
    "$compiler" -std=c11 -Wall -Wextra -Werror -I families/include families.c families/libnrg.a -lm -o families/families
    "${runner[@]}" families/families | sort >families/built || die "a build without backward says that it has it"
    diff <(printf '%s\n' "${kept[@]}" | sort) families/built || die "not the families (<) that were asked for"
    compile_check families/include check-families "$compiler"
    "$compiler" -std=c11 -Wall -Wextra -Werror -I families/include paths.c families/libnrg.a -lm -o families/paths
    "$compiler" check-families/*.o families/libnrg.a -lm -o families/check
    "${runner[@]}" families/paths >families/runs.txt
    while read -r path runs; do
        [[ $runs == yes ]] || continue
        for op in activation; do # the cases of norms and rotations are others without backward passes
            "${runner[@]}" families/check --hash --quick --isa "$path" --op $op </dev/null >families/hashes.txt
            diff <(kept_hashes --quick | grep -E "^${op}_(f32|f16|bf16) ") families/hashes.txt || die "families: other bits on $path"
        done
    done <families/runs.txt
    say "only ${kept[*]}, forward: $(stat -c %s libfamilies.so) bytes; the same bits on $(sed -n 's/ yes$//p' families/runs.txt | paste -sd ' ')"
}

if [[ $extent != families ]]; then
    whole_library
    without_best_path
fi
some_families
