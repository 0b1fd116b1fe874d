#!/usr/bin/env bash
# Does what docs/embedding.md says, word for word: copies src/ and include/, runs the document's commands, builds and runs its
# program, and compares the library's bits on every path with those of the meson build.
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

rm -rf "$work"
mkdir -p "$work/nrg"
cp -R "$root/src" "$root/include" "$work/nrg"
cd "$work"
block "$arch" >build.sh
block program >program.c
block output >expected
(cd nrg && CC=$compiler sh -e ../build.sh)

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
