#!/usr/bin/env bash
# Builds Check, which the tests link against, with a cross compiler, and puts it into a folder.
#
#   scripts/check-sysroot.sh TRIPLE DIR        riscv64-linux-gnu, x86_64-w64-mingw32
#
# Debian 12 has no packages for these targets, and later packages need a later C library. So own-check.sh compiles it. DIR also gets
# sysroot.ini, a meson cross file that names it.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage="usage: scripts/check-sysroot.sh TRIPLE DIR"
triple=${1:?$usage} dir=${2:?$usage}
is_debian || die "Check's sources come as a Debian or Ubuntu package; this machine has no apt"
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
# shellcheck source=scripts/own-check.sh
source "$root/scripts/own-check.sh"

# What configure cannot find out without running programs: otherwise it takes malloc, realloc and snprintf for bad ones, and brings
# its own.
options=(--host="$triple")
export ac_cv_func_malloc_0_nonnull=yes ac_cv_func_realloc_0_nonnull=yes
export hw_cv_func_snprintf_c99=yes hw_cv_func_vsnprintf_c99=yes
if [[ $triple == *mingw* ]]; then
    options+=(--disable-fork) # a test that dies ends its suite
    export CFLAGS="-O2 -D__USE_MINGW_ANSI_STDIO=1"
fi
CC=$triple-gcc own_check "$dir" "$(dpkg --print-architecture)" "for $triple" "${options[@]}"
if [[ $triple == *mingw* ]]; then
    # to gcc for Windows, `printf` is Microsoft's of old, which knows no %zu; once more, it finds nothing
    sed -i 's/ATTRIBUTE_FORMAT(printf/ATTRIBUTE_FORMAT(gnu_printf/' "$dir/root/include/check.h"
fi

cat >"$dir/sysroot.ini" <<END
# made by scripts/check-sysroot.sh; goes with the cross file for $triple in cross/
[properties]
pkg_config_libdir = '$dir/root/lib/pkgconfig'
END
