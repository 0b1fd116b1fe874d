#!/usr/bin/env bash
# Creates the files of a release from the commit that is checked out, and tests them as users get them.
#
#   scripts/release.sh [--quick | --untested] VERSION [DIR]
#
# It writes these files to DIR (default: build-release/VERSION):
#   nrg-VERSION-source.tar.gz         the source tree
#   nrg-VERSION-amalgamation.tar.gz   nrg.c, nrg.h, nrg/nrg.h (scripts/amalgamate.sh) and the licence
#   nrg-VERSION.tar.gz                the Python sdist
#   nrg-VERSION-cp311-abi3-*.whl      the Python wheel, with the library compiled for this platform
#   nrg-VERSION-hashes.txt            the output of `nrg check --hash`, equal on every path
#   nrg-VERSION-x86_64.abi.gz         the binary interface (scripts/abi.sh); the next release is compared with it
#   nrg-VERSION-notes.md              the section of CHANGELOG.md
#   SHA256SUMS                        the checksums of all these
#
# Requirements: every change is committed. All places name the same version. CHANGELOG.md has a section with a date (scripts/versions.py).
#
# Tests: it unpacks the source archive and runs scripts/test.sh there. It compares the hashes of that build and of nrg.c with the
# hashes of the release. It installs sdist and wheel without a network.
#   --quick      builds only the library and the command, and compares the short hashes
#   --untested   tests nothing and writes no SHA256SUMS, so the result is not a release. NRG_PATHS and NRG_FAMILIES can then reduce
#                the wheel (python/nrg_build.py).
#
# The same commit and the same tools give the same bytes. The script creates no tag and uploads nothing: at the end it prints the
# remaining steps.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

extent=full
if [[ ${1-} == --quick || ${1-} == --untested ]]; then
    extent=${1#--}
    shift
fi
(($# == 1 || $# == 2)) || die "usage: scripts/release.sh [--quick | --untested] VERSION [DIR]"
version=$1
dir=$(realpath -m "${2-$root/build-release/$version}")
name=nrg-$version
title() { printf '\n=== %s ===\n' "$*"; }

# --- requirements ------------------------------------------------------------------------------------------------------------

[[ $(git -C "$root" rev-parse --show-toplevel 2>/dev/null) == "$(realpath "$root")" ]] || die "this tree is not a git checkout, so it has no commit to release"
changed=$(git -C "$root" status --porcelain)
[[ -z $changed ]] || die "these changes are not committed:"$'\n'"$changed"
python=$(numpy_python) || die "no Python with NumPy found; scripts/setup.sh installs one"
[[ $extent == untested ]] || "$python" -c 'import ensurepip, venv' 2>/dev/null || die "$python has no venv module; install python3-venv"
notes=$("$python" "$root/scripts/versions.py" "$version") || die "the tree is not ready for version $version"
commit=$(git -C "$root" rev-parse HEAD)
tagged=$(git -C "$root" rev-parse --quiet --verify "v$version^{commit}" || true)
[[ -z $tagged || $tagged == "$commit" ]] || die "the tag v$version names another commit: $tagged"

if [[ -e $dir && (! -d $dir || -n $(find "$dir" -mindepth 1 ! \( -type f -name "${name}[-.]*" \) ! -name SHA256SUMS -print -quit)) ]]; then
    die "$dir contains files that are not part of $name; name another folder"
fi

# --- files -------------------------------------------------------------------------------------------------------------------

rm -rf "$dir"
mkdir -p "$dir"
work=$(mktemp -d)
chmod 755 "$work" # tests that run as root start the command as another user too
trap 'rm -rf "$work"' EXIT
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
export SOURCE_DATE_EPOCH

# packed FOLDER FILE: an archive with the same bytes for the same content, at any time and for any user
packed() {
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --format=ustar \
        --mtime="@$SOURCE_DATE_EPOCH" -cf - "$1" | gzip -9n >"$dir/$2"
}

# python_build FOLDER FUNCTION: calls a function of nrg_build.py in FOLDER, which writes a file to $dir
python_build() {
    (cd "$1" && CC=$wheel_compiler "$python" -B -c 'import nrg_build, sys; getattr(nrg_build, sys.argv[1])(sys.argv[2])' "$2" "$dir")
}

compiler=${CC:-cc}
wheel_compiler=$compiler
! command -v ccache >/dev/null || wheel_compiler="ccache $compiler"
[[ $extent == untested ]] || unset NRG_PATHS NRG_FAMILIES
unset NRG_LIBRARY

title "$name: source archive, nrg.c, sdist, wheel"
git -C "$root" archive --format=tar --prefix="$name/" HEAD | gzip -9n >"$dir/$name-source.tar.gz"
tar -C "$work" -xzf "$dir/$name-source.tar.gz"
tree=$work/$name
"$tree/scripts/amalgamate.sh" "$work/$name-amalgamation"
cp "$tree/LICENSE" "$work/$name-amalgamation"
packed "$name-amalgamation" "$name-amalgamation.tar.gz"
python_build "$tree/python" build_sdist
mkdir "$work/sdist"
tar -C "$work/sdist" -xzf "$dir/$name.tar.gz"
python_build "$work/sdist/$name" build_wheel
say "$notes" >"$dir/$name-notes.md"
level=()
root=$tree kept_hashes >"$dir/$name-hashes.txt"
ls -l "$dir"
if [[ $extent == untested ]]; then
    say "These files are untested and not a release: SHA256SUMS is missing."
    exit 0
fi

# --- tests -------------------------------------------------------------------------------------------------------------------

build=$work/build
if [[ $extent == full ]]; then
    title "scripts/test.sh in the source archive"
    NRG_BUILD_DIR=$build "$tree/scripts/test.sh"
    nrg=$build/gcc/tools/nrg
else
    title "library and command of the source archive"
    level=(--quick)
    quietly "$build.log" meson setup "$build" "$tree" -Dtests=false -Dbench=false -Dexamples=false
    quietly "$build.log" meson compile -C "$build"
    nrg=$build/tools/nrg
fi
[[ $("$nrg" --version) == "nrg $version" ]] || die "nrg --version: expected nrg $version, got $("$nrg" --version)"

# same_hashes COMMAND ...: compares the hashes on every path of this CPU
same_hashes() {
    local path
    for path in $(cpu_paths | tr ',' ' '); do
        "$@" --hash "${level[@]}" --isa "$path" </dev/null | diff <(root=$tree kept_hashes "${level[@]}") - || die "the bits differ on the path $path"
        say "$path: the hashes of tests/hashes.txt"
    done
}
title "nrg check --hash"
same_hashes "$nrg" check

title "nrg.c"
cd "$work/$name-amalgamation"
"$compiler" -O2 -ffp-contract=off -fno-math-errno -c nrg.c -o "$work/nrg.o"
root=$tree compile_check . "$work/check" "$compiler"
"$compiler" "$work"/check/*.o "$work/nrg.o" -lm -o "$work/check/check"
same_hashes "$work/check/check"

# python_installs KIND FILE: pip installs it without a network, in a fresh virtual environment; every op has the bits of the others.
# NumPy is the distribution's.
python_installs() {
    local venv=$work/$1-venv offline=()
    "$python" -m venv --system-site-packages "$venv"
    ! unshare -rn true 2>/dev/null || offline=(unshare -rn) # --no-index is enough for pip; this also stops its build backend
    CC=$wheel_compiler "${offline[@]}" "$venv/bin/python" -m pip --disable-pip-version-check install --quiet --no-index "$2" ||
        die "pip could not install $(basename "$2") without a network"
    (
        cd "$work"
        unset PYTHONPATH
        "$venv/bin/python" -c 'import nrg, sys; sys.exit(nrg.__file__.startswith(sys.argv[1]) is False or nrg.version() != sys.argv[2])' "$venv" "$version" ||
            die "$1: the installed package is not nrg $version"
        "$venv/bin/python" "$tree/tests/python/digest.py" | sort >"$work/$1-digests"
    )
    [[ -s $work/$1-digests ]] || die "$1: no op ran"
    say "$1: installed; $(wc -l <"$work/$1-digests") ops ran"
}
title "sdist and wheel"
python_installs wheel "$(echo "$dir/$name"-cp311-abi3-*.whl)"
python_installs sdist "$dir/$name.tar.gz"
diff "$work"/{wheel,sdist}-digests || die "sdist and wheel give different bits"

title "binary interface"
"$tree/scripts/abi.sh" "$work/abi"
"$tree/scripts/abi.sh" "$work/abi" --accept
cp "$tree/tests/abi/x86_64.abi.gz" "$dir/$name-x86_64.abi.gz"

(cd "$dir" && sha256sum -- "$name"* >SHA256SUMS)
title "$name: $dir"
cat "$dir/SHA256SUMS"
cat <<END

Remaining steps:
  1. git tag -a v$version -m "nrg $version" $commit
  2. Publish the tag and the files, with the text of $name-notes.md.
  3. In the next commit:
     - gunzip -c $name-x86_64.abi.gz | gzip -9n >tests/abi/x86_64.abi.gz
     - add a section (unreleased) to CHANGELOG.md that names the value of NRG_NUMBERS_VERSION
     - set the next version in meson.build, include/nrg/base.h and CITATION.cff (scripts/versions.py compares them)
END
