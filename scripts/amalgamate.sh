#!/usr/bin/env bash
# Makes the library as one file: DIR/nrg.c, and DIR/nrg.h for its users, from the lists that the builds read. DIR/nrg/nrg.h includes
# DIR/nrg.h, for programs that include <nrg/nrg.h>. These files are never checked in.
#
#   scripts/amalgamate.sh DIR
#
# docs/howto/one-file.md shows how to compile them; scripts/test.sh amalgamation does so. The script requires only Python.
set -euo pipefail
(($# == 1)) || {
    echo "usage: scripts/amalgamate.sh DIR" >&2
    exit 2
}
exec python3 "$(dirname "${BASH_SOURCE[0]}")/amalgamate.py" "$1"
