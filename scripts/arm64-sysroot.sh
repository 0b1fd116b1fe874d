#!/usr/bin/env bash
# Puts the arm64 libraries that the tests link against into a folder, to build and test the NEON path on another machine.
#
#   scripts/arm64-sysroot.sh DIR
#
# own-apt.sh downloads the packages. DIR also gets sysroot.ini, a meson cross file that names the libraries. A second run with the
# same packages does nothing.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Only -dev packages, so that all is linked statically and nothing has to be found again at run time under qemu; SLEEF alone has
# no static library, and is found where it was linked.
packages=(check libsubunit-dev libsleef-dev libsleef3)

dir=${1:?usage: scripts/arm64-sysroot.sh DIR}
is_debian || die "the arm64 libraries come as Debian or Ubuntu packages; this machine has no apt"
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
# shellcheck source=scripts/own-apt.sh
source "$root/scripts/own-apt.sh"

stamp="$ID $VERSION_CODENAME: ${packages[*]} in $dir"
if fetched "$dir" "$stamp"; then
    exit 0
fi
say "fetching for arm64: ${packages[*]}"
set_up_apt "$dir" deb arm64
download "$dir" download "${packages[@]}"

for deb in "$dir"/apt/archives/*.deb; do
    dpkg-deb -x "$deb" "$dir/root"
done
# libraries' development links to shared objects that are not here would be found before the static ones
find "$dir/root" -xtype l -name '*.so' -delete
# Where they are is said in the .pc files rather than by PKG_CONFIG_SYSROOT_DIR, which pkg-config and pkgconf apply differently.
find "$dir/root" -name '*.pc' -exec sed -E -i "s#(^[a-z_]+=|-[IL])/usr#\1$dir/root/usr#" {} +
# a compiler of that machine would look in its multiarch folder by itself
multiarch=$dir/root/usr/include/aarch64-linux-gnu
if [[ -d $multiarch ]]; then
    cp -R "$multiarch/." "$dir/root/usr/include"
fi

cat >"$dir/sysroot.ini" <<END
# made by scripts/arm64-sysroot.sh; goes with cross/aarch64.txt
[properties]
pkg_config_libdir = '$dir/root/usr/lib/aarch64-linux-gnu/pkgconfig'
END
done_with "$dir" "$stamp"
