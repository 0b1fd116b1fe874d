# shellcheck shell=bash
# Sets up Debian sid in a folder, for packages that this Debian does not have. Scripts that run something there source it after
# common.sh; do not run it.
#
# debootstrap uses the mirror of this system's apt. The folder is outside of the tree: /var/tmp/nrg-sid, or $NRG_SID_DIR. The first run
# takes a minute and 500 MB (2.2 GB with PyTorch); later runs reuse it. To remove it, delete the folder. Requires root, for chroot.

base=${NRG_SID_DIR:-/var/tmp/nrg-sid}
sid=$base/sid

# Ends the script with status 77: this machine cannot do it (no root, no Debian, no sid on the mirror), which is not wrong.
cannot() {
    say "not here: $*"
    exit 77
}

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
    say "setting up Debian sid in $sid, outside of the tree"
    mkdir -p "$base"
    rm -rf --one-file-system "$sid"
    quietly "$base/debootstrap.log" debootstrap --variant=minbase sid "$sid" "$uri" || cannot "no sid from this system's mirror"
    say "apt there does not look at how old the mirror's lists are (Check-Valid-Until, Check-Date): a mirror may be older than the clock"
    printf 'Acquire::%s "false";\n' Check-Valid-Until Check-Date >"$sid/etc/apt/apt.conf.d/99nrg"
    ! [[ -f /etc/resolv.conf ]] || cp -L /etc/resolv.conf "$sid/etc/resolv.conf"
    quietly "$base/update.log" in_sid apt-get -q update || cannot "no lists of sid from this system's mirror"
    touch "$sid/nrg-done"
}

# sid_with PACKAGE ...: it is there, with these, and in /nrg nothing.
sid_with() {
    [[ $(id -u) == 0 ]] || cannot "chroot needs root"
    is_debian || cannot "what is wanted comes as a Debian package"
    # shellcheck source=/dev/null
    source /etc/os-release
    [[ $ID == debian ]] || cannot "the mirrors of $ID have no Debian sid"
    "$root/scripts/setup.sh" sid
    [[ -f $sid/nrg-done ]] || set_up_sid
    if ! in_sid dpkg -s "$@" >/dev/null 2>&1; then
        quietly "$base/install.log" in_sid apt-get -q -y install --no-install-recommends "$@" || cannot "sid has no $*"
    fi
    rm -rf "$sid/nrg"
    mkdir "$sid/nrg"
}
