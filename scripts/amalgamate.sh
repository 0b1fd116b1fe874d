#!/usr/bin/env bash
# The library as one file: DIR/nrg.c, and DIR/nrg.h for its users, from the lists that the builds read. Never checked in.
#
#   scripts/amalgamate.sh DIR
#
# docs/howto/embedding.md says how it is compiled; scripts/test.sh amalgamation does so. It takes Python alone.
set -euo pipefail
(($# == 1)) || {
    echo "usage: scripts/amalgamate.sh DIR" >&2
    exit 2
}
exec python3 "$(dirname "${BASH_SOURCE[0]}")/amalgamate.py" "$1"
