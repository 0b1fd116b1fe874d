#!/usr/bin/env bash
# Installs the packages that demo.sh, test.sh, sid.sh or a stage of test.sh --full requires.
#
#   scripts/setup.sh demo|test|sid|report|site|windows|i686
#
# On Debian and Ubuntu it installs missing packages. If none is missing, it uses neither the network nor root. On other systems it
# lists what is missing, and fails.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# libc6-dev and its like are only recommended by the compilers, and recommended packages are not installed.
demo_packages=(gcc g++ libc6-dev meson ninja-build pkg-config libbenchmark-dev nlohmann-json3-dev libsleef-dev python3 python3-numpy)
test_packages=("${demo_packages[@]}" binutils ccache check clang cmake gcovr libclang-rt-dev libopenmpi-dev openmpi-bin
    python3-dev python3-venv mypy groff-base fish zsh abigail-tools make valgrind)
# debootstrap only recommends the keys that it checks sid's signature with
# shellcheck disable=SC2034 # by name
sid_packages=(gcc libc6-dev meson ninja-build python3 python3-numpy debootstrap debian-archive-keyring)
demo_commands=(gcc g++ meson ninja pkg-config)
test_commands=("${demo_commands[@]}" clang clang++ cmake gcov gcovr mpicc mpirun nm strip)
# shellcheck disable=SC2034 # by name, in name_missing
sid_commands=(gcc meson ninja debootstrap) sid_modules=()
# shellcheck disable=SC2034 # by name: a browser for the page of nrg-bench --report, some 300 MB
report_packages=(chromium) report_commands=(chromium) report_modules=()
# shellcheck disable=SC2034 # by name: what makes the site, and a browser
site_packages=(mkdocs mkdocs-material chromium) site_commands=(mkdocs chromium) site_modules=()
# shellcheck disable=SC2034 # by name: a compiler for Windows and what runs its programs, 1.2 GB
windows_packages=(gcc-mingw-w64-x86-64 wine64)
# shellcheck disable=SC2034 # by name
windows_commands=(x86_64-w64-mingw32-gcc x86_64-w64-mingw32-objdump /usr/lib/wine/wine64) windows_modules=()
# shellcheck disable=SC2034 # by name: a compiler for 32-bit x86, and the libraries that its programs run with
i686_packages=(gcc-i686-linux-gnu libc6-dev-i386-cross libc6-i386 lib32gomp1) i686_commands=(i686-linux-gnu-gcc) i686_modules=()
demo_modules=(benchmark nlohmann_json sleef)
# shellcheck disable=SC2034 # by name, in name_missing
test_modules=("${demo_modules[@]}" check)
if [[ $(uname -m) == x86_64 ]]; then
    test_packages+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-riscv64-linux-gnu libc6-dev-riscv64-cross qemu-user)
    test_commands+=(aarch64-linux-gnu-gcc riscv64-linux-gnu-gcc make qemu-aarch64 qemu-riscv64 qemu-x86_64)
fi
meson_least=1.0.0

as_root() {
    if [[ $(id -u) == 0 ]]; then
        "$@"
    elif ! command -v sudo >/dev/null; then
        die "needs root, or sudo, to run: $*"
    elif [[ -t 0 ]]; then
        sudo "$@"
    else
        sudo -n "$@" # nobody is there to type a password
    fi
}

install_missing() {
    local missing=() package
    for package in "$@"; do
        # an unknown package is an error to dpkg-query, and is missing
        if [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
            missing+=("$package")
        fi
    done
    if ((${#missing[@]} == 0)); then
        return 0
    fi
    say "installing: ${missing[*]}"
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
    # a third party's source that is down makes update fail; whether ours are there, install will tell
    as_root "${apt[@]}" update </dev/null || say "apt-get update had errors; going on with what it has got"
    as_root "${apt[@]}" install --no-install-recommends "${missing[@]}" </dev/null
}

name_missing() {
    local missing=() command module
    local -n commands=$1_commands modules=$1_modules
    for command in "${commands[@]}"; do
        command -v "$command" >/dev/null || missing+=("$command")
    done
    for module in "${modules[@]}"; do
        pkg-config --exists "$module" 2>/dev/null || missing+=("$module (pkg-config module)")
    done
    numpy_python >/dev/null || missing+=("python3 with NumPy")
    if ((${#missing[@]})); then
        printf -v list '\n  %s' "${missing[@]}"
        die "missing on this machine:$list"
    fi
}

case ${1-} in
demo | test | sid | report | site | windows | i686) ;;
*) die "usage: scripts/setup.sh demo|test|sid|report|site|windows|i686" ;;
esac
if is_debian; then
    declare -n packages=$1_packages
    install_missing "${packages[@]}"
fi
name_missing "$1"
version=$(meson --version)
if [[ $(printf '%s\n' "$meson_least" "$version" | sort -V | head -n 1) != "$meson_least" ]]; then
    die "meson $version is too old: $meson_least or later is needed (Debian 12, Ubuntu 24.04)"
fi
