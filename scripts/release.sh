#!/usr/bin/env bash
# What a release consists of, made of the commit that is checked out, and tested as its users get it.
#
#   scripts/release.sh [--quick | --untested] VERSION [DIR]
#
# In DIR (build-release/VERSION):
#   nrg-VERSION.tar.gz                the tree
#   nrg-VERSION-amalgamation.tar.gz   nrg.c and nrg.h (scripts/amalgamate.sh) and the licence
#   nrg-VERSION-hashes.txt            what `nrg check --hash` prints, on every path
#   nrg-VERSION-x86_64.abi.gz         the binary interface (scripts/abi.sh), for the next release to be held against
#   nrg-VERSION-notes.md              its section of CHANGELOG.md
#   SHA256SUMS                        of these
#
# Nothing may be changed and not committed; the places that name the version agree, and CHANGELOG.md has its section, with a date
# (scripts/versions.py). Then the tar ball is unpacked elsewhere and scripts/test.sh runs there, the hashes are computed by what was
# built of it, and nrg.c is compiled and has them too. --quick: instead of test.sh the library and the command alone, and the short
# hashes. --untested: none of this, and no SHA256SUMS, without which it is no release.
#
# The same commit gives the same bytes. No tag is made and nothing is sent: what is left to do is printed at the end.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

extent=whole
if [[ ${1-} == --quick || ${1-} == --untested ]]; then
    extent=${1#--}
    shift
fi
(($# == 1 || $# == 2)) || die "usage: scripts/release.sh [--quick | --untested] VERSION [DIR]"
version=$1
dir=$(realpath -m "${2-$root/build-release/$version}")
name=nrg-$version
title() { printf '\n=== %s ===\n' "$*"; }

# --- may it be released? -----------------------------------------------------------------------------------------------------

[[ $(git -C "$root" rev-parse --show-toplevel 2>/dev/null) == "$(realpath "$root")" ]] || die "a release is made of a git checkout, which this tree is not"
changed=$(git -C "$root" status --porcelain)
[[ -z $changed ]] || die "not committed:"$'\n'"$changed"
notes=$("$(numpy_python)" "$root/scripts/versions.py" "$version") || die "not ready for $version"
commit=$(git -C "$root" rev-parse HEAD)
tagged=$(git -C "$root" rev-parse --quiet --verify "v$version^{commit}" || true)
[[ -z $tagged || $tagged == "$commit" ]] || die "v$version is another commit: $tagged"

if [[ -e $dir && (! -d $dir || -n $(find "$dir" -mindepth 1 ! \( -type f -name "${name}[-.]*" \) ! -name SHA256SUMS -print -quit)) ]]; then
    die "$dir has more in it than $name"
fi

# --- what it consists of -----------------------------------------------------------------------------------------------------

rm -rf "$dir"
mkdir -p "$dir"
work=$(mktemp -d)
chmod 755 "$work" # tests of root run the command as a user who may not do everything
trap 'rm -rf "$work"' EXIT

# packed FOLDER FILE: the same bytes for the same content, whoever packs it and when
packed() {
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --format=ustar \
        --mtime="@$(git -C "$root" log -1 --format=%ct)" -cf - "$1" | gzip -9n >"$dir/$2"
}

title "$name: the tree and nrg.c"
git -C "$root" archive --format=tar --prefix="$name/" HEAD | gzip -9n >"$dir/$name.tar.gz"
tar -C "$work" -xzf "$dir/$name.tar.gz"
tree=$work/$name
"$tree/scripts/amalgamate.sh" "$work/$name-amalgamation"
cp "$tree/LICENSE" "$work/$name-amalgamation"
packed "$name-amalgamation" "$name-amalgamation.tar.gz"
say "$notes" >"$dir/$name-notes.md"
hashes='hashes.txt'
cp "$tree/tests/hashes.txt" "$dir/$name-hashes.txt"
ls -l "$dir"
if [[ $extent == untested ]]; then
    say "not tested, and no release: no SHA256SUMS"
    exit 0
fi

# --- does it hold what it says? ----------------------------------------------------------------------------------------------

build=$work/build
if [[ $extent == whole ]]; then
    title "scripts/test.sh of the tar ball"
    NRG_BUILD_DIR=$build "$tree/scripts/test.sh"
    nrg=$build/gcc/tools/nrg
else
    title "the tar ball's library and command"
    hashes='hashes-quick.txt'
    quietly "$build.log" meson setup "$build" "$tree" -Dtests=false -Dbench=false -Dexamples=false
    quietly "$build.log" meson compile -C "$build"
    nrg=$build/tools/nrg
fi
[[ $("$nrg" --version) == "nrg $version" ]] || die "the command says that it is $("$nrg" --version)"

# same_hashes COMMAND ...: of every path that runs here
same_hashes() {
    local path level=()
    [[ $hashes == hashes.txt ]] || level=(--quick)
    for path in $(cpu_paths | tr ',' ' '); do
        "$@" --hash "${level[@]}" --isa "$path" </dev/null | diff "$tree/tests/$hashes" - || die "other bits on $path"
        say "$path: the hashes of tests/$hashes"
    done
}
title "nrg check --hash"
same_hashes "$nrg" check

title "nrg.c"
cd "$work/$name-amalgamation"
compiler=${CC:-cc}
"$compiler" -O2 -ffp-contract=off -fno-math-errno -c nrg.c -o "$work/nrg.o"
mkdir -p "$work/include/nrg"
cp nrg.h "$work/include/nrg"
root=$tree compile_check "$work/include" "$work/check" "$compiler"
"$compiler" "$work"/check/*.o "$work/nrg.o" -lm -o "$work/check/check"
same_hashes "$work/check/check"

title "the binary interface"
"$tree/scripts/abi.sh" "$work/abi"
"$tree/scripts/abi.sh" "$work/abi" --accept
cp "$tree/tests/abi/x86_64.abi.gz" "$dir/$name-x86_64.abi.gz"

(cd "$dir" && sha256sum -- "$name"* >SHA256SUMS)
title "$name: $dir"
cat "$dir/SHA256SUMS"
cat <<END

What is left to do:
  git tag -a v$version -m "nrg $version" $commit
  then publish the tag, and the files with the text of $name-notes.md;
  in the next commit: gunzip -c $name-x86_64.abi.gz | gzip -9n >tests/abi/x86_64.abi.gz, a section (unreleased) in CHANGELOG.md,
  which says what NRG_NUMBERS_VERSION is, and its version in meson.build, include/nrg/base.h and CITATION.cff, which scripts/versions.py holds together
END
