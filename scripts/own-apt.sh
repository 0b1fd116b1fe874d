# shellcheck shell=bash
# Downloads packages of a foreign architecture into a folder. It uses the mirrors of this system, with an apt whose configuration and
# state are in that folder. So the dpkg of the system stays unchanged, and root is not required. Source it after common.sh; do not
# run it.

# shellcheck source=/dev/null
source /etc/os-release

# fetched DIR STAMP: whether an earlier run has filled DIR with what STAMP names. If not, DIR is emptied of it.
fetched() {
    local dir=$1 stamp=$2
    if [[ -f $dir/done && $(<"$dir/done") == "$stamp" ]]; then
        return 0
    fi
    rm -rf "${dir:?}"/{apt,root,done}
    mkdir -p "$dir"/apt/{lists/partial,archives/partial} "$dir/root"
    return 1
}

# set_up_apt DIR TYPE ARCH: the configuration, and the lists of packages of this architecture (TYPE deb) or of sources (deb-src).
#
# The system's archives, asked of apt itself because sources come in two formats and many files. Only the release's own suites: a
# third party's sources have nothing for us, and may not even be reachable. Ubuntu keeps the packages of arm64 on a host of its own.
set_up_apt() {
    local dir=$1 type=$2 arch=$3 components=main options=() keyring=/usr/share/keyrings/$ID-archive-keyring.gpg
    if [[ $ID == ubuntu ]]; then
        components="main universe"
    fi
    if [[ $type == deb ]]; then
        options+=("arch=$arch")
    fi
    if [[ -f $keyring ]]; then
        options+=("signed-by=$keyring")
    fi
    if ((${#options[@]})); then
        type+=" [${options[*]}]"
    fi
    apt-get -o Dir::State::lists="$dir/apt/lists" update --print-uris |
        sed -n "s|^'\(.*\)/dists/\(.*\)/InRelease'.*|\1 \2|p" |
        while read -r uri suite; do
            case $suite in
            "$VERSION_CODENAME" | "$VERSION_CODENAME"-updates | "$VERSION_CODENAME"-security | stable | stable-updates | stable-security)
                if [[ $ID == ubuntu && $type == "deb "* && $(dpkg --print-architecture) != "$arch" ]]; then
                    uri=http://ports.ubuntu.com/ubuntu-ports
                fi
                say "$type $uri $suite $components"
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
APT::Architecture "$arch";
APT::Sandbox::User "root";
#clear APT::Architectures;
APT::Architectures { "$arch"; };
#clear APT::Update;
#clear DPkg;
END
    touch "$dir/apt/status"
    export APT_LISTCHANGES_FRONTEND=none
    quietly "$dir/apt/update.log" apt-get -c "$dir/apt/apt.conf" -q update
}

# download DIR COMMAND PACKAGE ...: by apt-get's command, into DIR/apt/archives.
download() {
    local dir=$1
    shift
    (cd "$dir/apt/archives" && quietly "$dir/apt/download.log" apt-get -c "$dir/apt/apt.conf" -q "$@")
}

# done_with DIR STAMP: what only the fetching needed goes, and the next run does nothing.
done_with() {
    rm -rf "$1"/apt/{lists,archives,*.bin}
    say "$2" >"$1/done"
}
