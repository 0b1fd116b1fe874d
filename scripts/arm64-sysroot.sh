#!/usr/bin/env bash
# Lays the arm64 libraries that the tests link against into a folder, for building and testing the NEON path on another machine.
#
#   scripts/arm64-sysroot.sh DIR
#
# The .debs come from the mirrors the system is set up with, through an apt whose configuration and state are all in DIR: the
# system's dpkg learns of no foreign architecture, and no root is needed. Beside the libraries, DIR gets sysroot.ini, a meson
# cross file that names them. A second run with the same packages does nothing.
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

# shellcheck source=/dev/null
source /etc/os-release
stamp="$ID $VERSION_CODENAME: ${packages[*]} in $dir"
if [[ -f $dir/done && $(<"$dir/done") == "$stamp" ]]; then
    exit 0
fi
say "fetching for arm64: ${packages[*]}"
rm -rf "${dir:?}"/{apt,root,done}
mkdir -p "$dir"/apt/{lists/partial,archives/partial} "$dir/root"

# The system's archives, asked of apt itself because sources come in two formats and many files. Only the release's own suites:
# a third party's sources have nothing for us, and may not even be reachable. Ubuntu keeps arm64 on a host of its own.
components=main
keyring=/usr/share/keyrings/$ID-archive-keyring.gpg
if [[ $ID == ubuntu ]]; then
    components="main universe"
fi
options="arch=arm64"
if [[ -f $keyring ]]; then
    options+=" signed-by=$keyring"
fi
apt-get -o Dir::State::lists="$dir/apt/lists" update --print-uris |
    sed -n "s|^'\(.*\)/dists/\(.*\)/InRelease'.*|\1 \2|p" |
    while read -r uri suite; do
        case $suite in
        "$VERSION_CODENAME" | "$VERSION_CODENAME"-updates | "$VERSION_CODENAME"-security | stable | stable-updates | stable-security)
            if [[ $ID == ubuntu && $(dpkg --print-architecture) != arm64 ]]; then
                uri=http://ports.ubuntu.com/ubuntu-ports
            fi
            say "deb [$options] $uri $suite $components"
            ;;
        esac
    done | sort -u >"$dir/apt/sources.list"
[[ -s $dir/apt/sources.list ]] || die "apt has no source for $ID $VERSION_CODENAME"

# Read after the system's own configuration, whose proxies and mirrors' options thus hold. The hooks it clears belong to the
# system's package manager.
cat >"$dir/apt/apt.conf" <<END
Dir::Etc::sourcelist "$dir/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$dir/apt/lists";
Dir::State::status "$dir/apt/status";
Dir::Cache "$dir/apt";
APT::Architecture "arm64";
APT::Sandbox::User "root";
#clear APT::Architectures;
APT::Architectures { "arm64"; };
#clear APT::Update;
#clear DPkg;
END
touch "$dir/apt/status"
export APT_LISTCHANGES_FRONTEND=none
quietly "$dir/apt/update.log" apt-get -c "$dir/apt/apt.conf" -q update
(cd "$dir/apt/archives" && quietly "$dir/apt/download.log" apt-get -c "$dir/apt/apt.conf" -q download "${packages[@]}")

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
rm -rf "$dir"/apt/{lists,archives,*.bin}
say "$stamp" >"$dir/done"
