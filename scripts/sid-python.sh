#!/usr/bin/env bash
# Runs the tests of the Python package in Debian sid (scripts/sid.sh): with a newer Python and NumPy than this system's, and with
# ml_dtypes and PyTorch, which Debian packages only there. They take 2 GB.
#
#   scripts/sid-python.sh LIBRARY      LIBRARY: a libnrg.so that is built
#
# Needs root. Exit status 77: this machine cannot do it, which is not wrong.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/sid.sh
source "$root/scripts/sid.sh"

(($# == 1)) || die "usage: scripts/sid-python.sh LIBRARY"
library=$(realpath "$1")
sid_with gcc libc6-dev python3-dev python3-numpy python3-ml-dtypes python3-torch libopenblas0-pthread

# PyTorch reads /proc for the CPU. The mount belongs to this command and ends with it.
# shellcheck disable=SC2016 # for the shell that unshare starts
with_proc() { unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 OMP_NUM_THREADS=1 PYTHONPATH=/nrg/python "$@"' "$sid" "$@"; }

mkdir -p "$sid/nrg/tests" "$sid/nrg/docs/reference"
cp -r "$root/include" "$root/src" "$root/python" "$root/LICENSE" "$sid/nrg"
cp -r "$root/tests/python" "$root/tests/torch" "$sid/nrg/tests"
cp "$root/docs/reference/python.md" "$sid/nrg/docs/reference"
cp "$library" "$sid/nrg/libnrg.so"
# what pip calls, without pip
in_sid sh -c 'cd /nrg/python && NRG_LIBRARY=/nrg/libnrg.so python3 -B -c "import nrg_build; nrg_build.build_package(nrg_build.HERE / \"nrg\")"'
in_sid python3 -c 'import ml_dtypes, numpy, platform; print("Python", platform.python_version(), "NumPy", numpy.__version__, "ml_dtypes", ml_dtypes.__version__)'
in_sid env PYTHONPATH=/nrg/python python3 -B -m unittest discover -s /nrg/tests/python -p '*_test.py' 2>&1
with_proc python3 -c 'import torch; print("PyTorch", torch.__version__)' 2>/dev/null
with_proc python3 -B -m unittest discover -s /nrg/tests/torch -p '*_test.py' 2>&1
with_proc python3 -B /nrg/python/examples/torch_model.py --small
