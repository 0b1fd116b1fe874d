#!/usr/bin/env bash
# Builds Check, which the tests link against, for MemorySanitizer, and puts it into a folder.
#
#   scripts/memory-check.sh DIR
#
# MemorySanitizer treats everything as unwritten that a library without it writes. Pass DIR/root/lib/pkgconfig to meson as
# pkg_config_path.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

dir=${1:?usage: scripts/memory-check.sh DIR}
is_debian || die "Check's sources come as a Debian or Ubuntu package; this machine has no apt"
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
# shellcheck source=scripts/own-check.sh
source "$root/scripts/own-check.sh"

CC=clang CFLAGS="-O1 -g1 -fsanitize=memory" own_check "$dir" "$(dpkg --print-architecture)" "for MemorySanitizer"
