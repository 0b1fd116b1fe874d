#!/usr/bin/env bash
# Tests the tests: makes about ninety small wrong changes to src/, and builds and tests each for a minute.
#
#   scripts/mutants.sh           all changes: hours on two cores, at the lowest priority; results of earlier runs are kept
#   scripts/mutants.sh --list    prints the changes, and how often each occurs
#   scripts/mutants.sh --named   the changes in mutants-named.txt, which the suites once missed
#   scripts/mutants.sh --norm [COUNT]
#                                200 changes to src/template/norm on AVX2 and to the vectors of the generic path, at least three to a
#                                file, each tested for 20 s by the suites of norms; fails also if more than 10 % change no result
#   scripts/mutants.sh --calls [COUNT]
#                                200 changes to src/calls, src/operands and src/job, each tested by the suites of calls and of the
#                                file's family, and by wild calls whose statuses have to be those of scripts/baseline; as --norm otherwise
#   scripts/mutants.sh --templates [COUNT]
#                                200 changes to src/template outside norm/ on AVX2, by the suites of the file's family; as --norm otherwise
#
# --keep tries no change again that an earlier run caught, or found without effect, in a file that is still the same: for runs after
# which tests were added, not after some were changed.
#
# mutants.py draws the changes from a list of operators and a list of files. A line of mutants.txt has to explain each change that the
# suites miss. The script fails if the suites notice fewer than 95 % of the changes that change a result, or if an explanation is
# missing. It builds a copy of the tree in build-mutants/, or in $NRG_BUILD_DIR. test.sh does not run it.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

"$root/scripts/setup.sh" test
exec nice -n 19 "$(numpy_python)" "$root/scripts/mutants.py" --root "$root" --build "${NRG_BUILD_DIR:-$root/build-mutants}" \
    --paths "$(cpu_paths)" "$@"
