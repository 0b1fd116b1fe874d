#!/usr/bin/env bash
# Builds tests/consumer with find_package of an installed library, and checks which versions and components find_package refuses.
#
#   scripts/find-package.sh WORK-DIR PREFIX TARGET ...
#
# TARGET: nrg::nrg or nrg::nrg_static. PREFIX is where the installed tree was moved to: its files must not contain that path.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

(($# >= 3)) || die "usage: find-package.sh WORK-DIR PREFIX TARGET ..."
work=$(realpath -m "$1") prefix=$(realpath "$2")
shift 2
fresh "$work"
version=$("$(numpy_python)" "$root/scripts/versions.py" --number)
IFS=. read -r major minor patch <<<"$version"
config=$(find "$prefix" -name 'nrg*.cmake')
[[ -n $config ]] || die "no CMake package in $prefix"
if tr '\n' '\0' <<<"$config" | xargs -0 grep -F "$prefix"; then
    die "the package of $prefix cannot be moved"
fi

# configure_consumer NAME VERSION [OPTION ...]
configure_consumer() {
    local name=$1 version=$2
    shift 2
    cmake -S "$root/tests/consumer" -B "$work/$name" -G Ninja -Wno-dev -DNRG_FROM=find_package -DNRG_VERSION="$version" \
        -DCMAKE_PREFIX_PATH="$prefix" "$@"
}

for target in "$@"; do
    name=${target#nrg::}
    quietly "$work/$name.log" configure_consumer "$name" "$version" -DNRG_TARGET="$target"
    quietly "$work/$name.log" cmake --build "$work/$name"
    said=$("$work/$name/consumer")
    [[ $said == "nrg on "* ]] || die "$target: the program says: $said"
    if [[ $target == nrg::nrg_static ]] && readelf -d "$work/$name/consumer" | grep libnrg >/dev/null; then
        die "$target takes the shared library"
    fi
    say "find_package, $target: $said"
done

# refused SENTENCE VERSION [OPTION ...]
refused() {
    local sentence=$1
    shift
    if configure_consumer refused "$@" >"$work/refused.log" 2>&1 || ! tr -s ' \n' ' ' <"$work/refused.log" | grep -F "$sentence" >/dev/null; then
        cat "$work/refused.log"
        die "find_package takes $*"
    fi
    rm -r "$work/refused"
}
for wrong in $((major + 1)).0 "$major.$((minor + 1))" "$major.$minor.$((patch + 1))" 0.1 "0.1...<$version"; do
    refused "is compatible with requested version" "$wrong"
done
# Other versions of the library: compatible INSTALLED REQUESTED
compatible() {
    local major minor
    IFS=. read -r major minor _ <<<"$2"
    sed "s/@version@/$1/; s/@pointer_size@//" "$root/cmake/nrgConfigVersion.cmake.in" >"$work/version.cmake"
    printf '%s\n' "set(PACKAGE_FIND_VERSION $2)" "set(PACKAGE_FIND_VERSION_MAJOR $major)" "set(PACKAGE_FIND_VERSION_MINOR $minor)" \
        "include($work/version.cmake)" 'if(NOT PACKAGE_VERSION_COMPATIBLE)' 'message(FATAL_ERROR "no")' 'endif()' >"$work/ask.cmake"
    cmake -P "$work/ask.cmake" 2>/dev/null
}
for right in "0.3.1 0.3" "0.3.1 0.3.1" "1.0.0 1.0" "1.4.2 1.0" "1.4.2 1.4.1" "12.0.1 12.0.0"; do
    # shellcheck disable=SC2086
    compatible $right || die "find_package: installed, wanted $right: refused"
done
for wrong in "0.3.1 0.2" "0.4.0 0.3" "0.3.1 0.3.2" "1.4.2 1.5" "1.0.0 0.9" "2.0.0 1.9" "12.0.0 1.0" "0.30.0 0.3"; do
    # shellcheck disable=SC2086
    if compatible $wrong; then
        die "find_package: installed, wanted $wrong: accepted"
    fi
done
quietly "$work/range.log" configure_consumer range "0.1...$version"
refused "nrg is installed without the component norms; it has " "$version" -DNRG_COMPONENTS=norms
say "find_package: wrong versions and components are refused"
