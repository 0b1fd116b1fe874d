#!/usr/bin/env bash
# Does what docs/embedding.md says, word for word: copies src/ and include/, runs the document's commands, builds and runs its
# program, and compares the library's bits on every path with those of the meson build. Then the same bits without the best path.
#
#   scripts/embed-check.sh WORK-DIR ARCH COMPILER MESON-LIBRARY [RUNNER ...]
#
# ARCH: x86_64 or aarch64. MESON-LIBRARY: the static library to compare with. RUNNER: what runs the program, such as qemu-aarch64.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

(($# >= 4)) || die "usage: embed-check.sh WORK-DIR ARCH COMPILER MESON-LIBRARY [RUNNER ...]"
work=$1 arch=$2 compiler=$3 library=$(realpath "$4")
runner=("${@:5}")

# The fenced block that follows the comment with this name.
block() {
    awk -v mark="<!-- checked by scripts/embed-check.sh: $1 -->" '
        $0 == mark { marked = 1; next }
        marked && /^```/ { if (inside) exit; inside = 1; next }
        inside { print }' "$root/docs/embedding.md" | grep . || die "docs/embedding.md has no block named $1"
}

# build_library DIR COMMANDS COMPILER [LEFT-OUT-PATH]: DIR/libnrg.a from a copy of src/ and include/.
build_library() {
    local dir=$1 commands=$2 cc=$3 left_out=${4-}
    mkdir "$dir"
    cp -R "$root/src" "$root/include" "$dir"
    if [[ -n $left_out ]]; then
        rm -r "$dir/src/$left_out"
    fi
    (cd "$dir" && CC=$cc sh -e "../$commands")
}

rm -rf "$work"
mkdir -p "$work"
cd "$work"

# the list of files, one by one, is what there is
block files | awk '{ for (i = 2; i <= NF; i++) print $1 $i }' | sort >listed
(cd "$root" && find src -name '*.c' | sort) >found
diff listed found || die "(<) listed in docs/embedding.md and not there, or (>) there and not listed"

block "$arch" >build.sh
block program >program.c
block output >expected
build_library nrg build.sh "$compiler"

"$compiler" -std=c11 -Wall -Wextra -Werror -I nrg/include program.c nrg/libnrg.a -lm -pthread -o program
"${runner[@]}" ./program >output
diff -u expected output || die "the program of docs/embedding.md prints something else than it says"

# Both programs are compiled alike and see the same inputs: the hashes differ only if the libraries' bits do.
"$compiler" -std=c11 -O1 -Wall -Wextra -Werror -I nrg/include "$root/scripts/embed_bits.c" nrg/libnrg.a -lm -o bits-embedded
"$compiler" -std=c11 -O1 -Wall -Wextra -Werror -I nrg/include "$root/scripts/embed_bits.c" "$library" -lm -o bits-meson
for bits in bits-embedded bits-meson; do
    "${runner[@]}" "./$bits" >"$bits.txt" || die "$bits: the paths differ from each other: $(tr -s '\n ' ' ' <"$bits.txt")"
done
diff -u bits-meson.txt bits-embedded.txt || die "a library built by docs/embedding.md gives other bits than meson's"
cat bits-embedded.txt

# "To export not even those"
"$compiler" -shared -o libengine.so -Wl,--whole-archive nrg/libnrg.a -Wl,--no-whole-archive -Wl,--exclude-libs,libnrg.a -lm
if nm -D --defined-only libengine.so | grep nrg_; then
    die "--exclude-libs leaves these exported"
fi
"$compiler" -shared -o libengine.so -Wl,--whole-archive nrg/libnrg.a -Wl,--no-whole-archive -lm
nm -D --defined-only libengine.so | grep nrg_ >/dev/null || die "nothing is exported anyway: this test tests nothing"
build_library hidden build.sh "$compiler -DNRG_API="
"$compiler" -shared -o libengine.so -Wl,--whole-archive hidden/libnrg.a -Wl,--no-whole-archive -lm
if nm -D --defined-only libengine.so | grep nrg_; then
    die "-DNRG_API= leaves these exported"
fi

# "Leaving paths out"
if [[ $arch == x86_64 ]]; then
    path=avx512
    block "x86_64 without avx512" >build-without.sh
    build_library without build-without.sh "$compiler" $path
else
    path=neon # the document shows no commands for it: those above, without this folder's line
    sed "/^(cd obj.$path /d" build.sh >build-without.sh
    build_library without build-without.sh "$compiler -DNRG_NO_NEON" $path
fi
cat >built.c <<'END'
#include <nrg/nrg.h>
#include <stdio.h>

int main(void)
{
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        if (nrg_isa_built((nrg_isa)isa))
            printf("%s\n", nrg_isa_name((nrg_isa)isa));
    return 0;
}
END
for which in nrg without; do
    "$compiler" -std=c11 -Wall -Wextra -Werror -I nrg/include built.c "$which/libnrg.a" -lm -o "built-$which"
    "${runner[@]}" "./built-$which" >"built-$which.txt"
done
grep -qx $path built-nrg.txt || die "the whole library is without $path"
diff <(grep -vx $path built-nrg.txt) built-without.txt || die "the library without src/$path should have all the other paths, and only those"
"$compiler" -std=c11 -O1 -Wall -Wextra -Werror -I nrg/include "$root/scripts/embed_bits.c" without/libnrg.a -lm -o bits-without
"${runner[@]}" ./bits-without >bits-without.txt
diff <(grep -v "^$path " bits-meson.txt) bits-without.txt || die "a library without src/$path gives other bits"
say "without src/$path: $(paste -sd ' ' built-without.txt), the same bits"
