#!/usr/bin/env bash
# Lays Check, which the tests link against, into a folder, made by a cross compiler.
#
#   scripts/check-sysroot.sh TRIPLE DIR        riscv64-linux-gnu, i686-linux-gnu, x86_64-w64-mingw32
#
# Debian 12 has no packages for these, and those of later releases want the C library of theirs; so it is the sources of Check's
# package, fetched by own-apt.sh and compiled, in 10 s. Beside it, DIR gets sysroot.ini, a meson cross file that names it. A second
# run with the same package does nothing.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage="usage: scripts/check-sysroot.sh TRIPLE DIR"
triple=${1:?$usage} dir=${2:?$usage}
is_debian || die "Check's sources come as a Debian or Ubuntu package; this machine has no apt"
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
# shellcheck source=scripts/own-apt.sh
source "$root/scripts/own-apt.sh"

stamp="$ID $VERSION_CODENAME: check by $("$triple-gcc" --version | head -n 1) in $dir"
if fetched "$dir" "$stamp"; then
    exit 0
fi
say "fetching and compiling for $triple: check"
set_up_apt "$dir" deb-src "$(dpkg --print-architecture)"
# As its authors published it. The distribution's patches are for its packaging, and change the library's name.
download "$dir" source --download-only check
mkdir "$dir/apt/check"
tar -xf "$dir"/apt/archives/check_*.orig.tar.* -C "$dir/apt/check" --strip-components=1

# Without subunit, which is another library. What configure cannot find out without running programs is said to it: otherwise it
# takes malloc, realloc and snprintf for bad ones, and brings its own.
(
    cd "$dir/apt/check"
    options=()
    export ac_cv_func_malloc_0_nonnull=yes ac_cv_func_realloc_0_nonnull=yes
    export hw_cv_func_snprintf_c99=yes hw_cv_func_vsnprintf_c99=yes
    if [[ $triple == *mingw* ]]; then
        options=(--disable-fork) # a test that dies ends its suite
        export CFLAGS="-O2 -D__USE_MINGW_ANSI_STDIO=1"
    fi
    CC=$triple-gcc quietly "$dir/apt/configure.log" ./configure --host="$triple" --prefix="$dir/root" \
        --disable-shared --disable-subunit --disable-dependency-tracking "${options[@]}"
    quietly "$dir/apt/make.log" make -j"$(nproc)" install SUBDIRS="lib src"
)
if [[ $triple == *mingw* ]]; then
    # to gcc for Windows, `printf` is Microsoft's of old, which knows no %zu
    sed -i 's/ATTRIBUTE_FORMAT(printf/ATTRIBUTE_FORMAT(gnu_printf/' "$dir/root/include/check.h"
fi

cat >"$dir/sysroot.ini" <<END
# made by scripts/check-sysroot.sh; goes with the cross file for $triple in cross/
[properties]
pkg_config_libdir = '$dir/root/lib/pkgconfig'
END
rm -rf "$dir/apt/check"
done_with "$dir" "$stamp"
