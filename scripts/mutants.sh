#!/usr/bin/env bash
# What do the tests notice? Some ninety small wrong changes of src/, each built and run against a minute of suites.
#
#   scripts/mutants.sh           all of them: hours on two cores, at the lowest priority; what an earlier run found is kept
#   scripts/mutants.sh --list    what is tried, and how often it occurs
#   scripts/mutants.sh --named   those of mutants-named.txt, which suites once did not notice
#
# Nothing is picked by hand: mutants.py has a list of operators and a list of files, and draws from both. Every change that the
# suites do not notice has to be explained by a line of mutants.txt. Fails where fewer than 95 % of those that change a result are
# noticed, or one is not explained. Builds go to build-mutants/, or to $NRG_BUILD_DIR; a tree and a build of its own, so that
# nothing here is touched. Not a part of test.sh.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

"$root/scripts/setup.sh" test
exec nice -n 19 "$(numpy_python)" "$root/scripts/mutants.py" --root "$root" --build "${NRG_BUILD_DIR:-$root/build-mutants}" \
    --paths "$(cpu_paths)" "$@"
