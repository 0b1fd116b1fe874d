#!/usr/bin/env bash
# Builds and runs examples/ggml in Debian sid (scripts/sid.sh), because only sid has a package of ggml.
#
#   scripts/ggml.sh [SECONDS]      SECONDS: time for each cell of its table
#
# Requires root. Exit status 77: this machine cannot run it, which is not an error.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/sid.sh
source "$root/scripts/sid.sh"

build=$(realpath -m "${NRG_BUILD_DIR:-$root/build-test}")/ggml
seconds=${1-0.2}
[[ $seconds =~ ^[0-9]+([.][0-9]+)?$ ]] || die "usage: scripts/ggml.sh [SECONDS]"
sid_with gcc libc6-dev libggml-dev

# The library by this system's compiler, as it is tested; the program by sid's.
configure "$build" gcc -Dtests=false -Dbench=false -Dexamples=false -Dtools=false
quietly "$build.compile.log" meson compile -C "$build"
cp -r "$root/include" "$root"/examples/ggml/*.[ch] "$build/libnrg.a" "$sid/nrg"
in_sid sh -c 'cd /nrg && gcc -std=c11 -D_XOPEN_SOURCE=700 -O2 -Wall -Wextra -Wconversion -Wno-sign-conversion -Werror -Iinclude \
    *.c libnrg.a -lggml -lggml-base -lm -o layer'
# shellcheck disable=SC2016 # dpkg's own
in_sid dpkg-query -W -f '${Package} ${Version}\n' libggml-dev gcc
in_sid /nrg/layer "$seconds"
