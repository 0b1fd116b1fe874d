#!/usr/bin/env bash
# Builds examples/ggml against the ggml of Debian sid, and runs it.
#
#   scripts/ggml.sh [SECONDS]      SECONDS of timing a cell of its table
#
# Debian has libggml-dev in sid alone, so this sets up a folder with sid in it (debootstrap; from the mirror that this system's apt
# is set up with) and builds and runs the program there. The folder is outside of the tree: /var/tmp/nrg-ggml, or $NRG_GGML_DIR.
# It takes 500 MB and a minute, once; a second run finds it. Deleting it is all that is needed to be rid of it.
#
# Needs root, for chroot. Exit status 77: this machine cannot do it (no root, no Debian, no sid on the mirror), which is not wrong.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cannot() {
    say "not here: $*"
    exit 77
}

base=${NRG_GGML_DIR:-/var/tmp/nrg-ggml}
sid=$base/sid
build=${NRG_BUILD_DIR:-$root/build-test}/ggml
seconds=${1-0.2}

[[ $seconds =~ ^[0-9]+([.][0-9]+)?$ ]] || die "usage: scripts/ggml.sh [SECONDS]"
[[ $(id -u) == 0 ]] || cannot "chroot needs root"
is_debian || cannot "ggml comes as a Debian package"
# shellcheck source=/dev/null
source /etc/os-release
[[ $ID == debian ]] || cannot "the mirrors of $ID have no Debian sid"
"$root/scripts/setup.sh" ggml

# The mirror of this release's packages, asked of apt itself because sources come in two formats and many files.
mirror() {
    apt-get update --print-uris | sed -n "s|^'\(.*\)/dists/\($VERSION_CODENAME\)/InRelease'.*|\1|p" | head -n 1
}

in_sid() { chroot "$sid" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "${proxy[@]}" "$@"; }
proxy=()
for name in http_proxy https_proxy no_proxy; do
    [[ -z ${!name-} ]] || proxy+=("$name=${!name}")
done

set_up_sid() {
    local uri
    uri=$(mirror)
    [[ -n $uri ]] || cannot "apt has no source for $VERSION_CODENAME"
    say "setting up Debian sid in $sid, outside of the tree, with ggml and a compiler"
    mkdir -p "$base"
    rm -rf --one-file-system "$sid"
    quietly "$base/debootstrap.log" debootstrap --variant=minbase sid "$sid" "$uri" || cannot "no sid from this system's mirror"
    say "apt there does not look at how old the mirror's lists are (Check-Valid-Until, Check-Date): a mirror may be older than the clock"
    printf 'Acquire::%s "false";\n' Check-Valid-Until Check-Date >"$sid/etc/apt/apt.conf.d/99nrg"
    ! [[ -f /etc/resolv.conf ]] || cp -L /etc/resolv.conf "$sid/etc/resolv.conf"
    quietly "$base/update.log" in_sid apt-get -q update || cannot "no lists of sid from this system's mirror"
    quietly "$base/install.log" in_sid apt-get -q -y install --no-install-recommends gcc libc6-dev libggml-dev ||
        cannot "libggml-dev cannot be installed"
    touch "$sid/nrg-done"
}

[[ -f $sid/nrg-done ]] || set_up_sid

# The library by this system's compiler, as it is tested; the program by sid's.
configure "$build" gcc -Dtests=false -Dbench=disabled -Dexamples=disabled -Dtools=false
quietly "$build.compile.log" meson compile -C "$build"
rm -rf "$sid/nrg"
mkdir "$sid/nrg"
cp -r "$root/include" "$root"/examples/ggml/*.[ch] "$build/libnrg.a" "$sid/nrg"
in_sid sh -c 'cd /nrg && gcc -std=c11 -D_XOPEN_SOURCE=700 -O2 -Wall -Wextra -Wconversion -Wno-sign-conversion -Werror -Iinclude \
    *.c libnrg.a -lggml -lggml-base -lm -o layer'
in_sid dpkg-query -W -f '${Package} ${Version}\n' libggml-dev gcc
in_sid /nrg/layer "$seconds"
