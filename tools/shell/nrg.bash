# Completion of nrg and nrg-bench in bash. The words are those of the programs themselves, so they are what they take.

# Google Benchmark's own are in its help alone.
_nrg_words_of_bench() {
    "$1" --words
    "$1" --help | sed -n 's/.*\[\(--benchmark_[a-z][a-z_]*\).*/\1=/p'
}

# The paths, of which the help has a list.
_nrg_paths() { "$1" --help | sed -n 's/.*NRG_ISA (\(.*\)).*/\1/p' | tr -d ,; }

_nrg() {
    local program=$1 word=$2 previous=$3 words
    # bash takes --isa=avx2 for three words
    [[ $word != = ]] || word=
    [[ $previous != = ]] || previous=${COMP_WORDS[COMP_CWORD - 2]}
    if [[ $previous == --isa || $previous == --path ]]; then
        words=$(_nrg_paths "${program%-bench}" 2>/dev/null)
    elif [[ $program == *nrg-bench ]]; then
        words=$(_nrg_words_of_bench "$program" 2>/dev/null)
    else
        words=$("$program" help --words "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    # where a file may stand, options are for the asking
    [[ $word == -* || $words != --* ]] || COMPREPLY=()
    [[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace
}

complete -o default -F _nrg nrg nrg-bench
