# Completion of nrg and nrg-bench in fish. The words are those of the programs themselves, so they are what they take.
function __nrg_words
    set -l before (commandline -opc)
    nrg help --words $before[2..-1] 2>/dev/null
end
complete -c nrg -a '(__nrg_words)'
complete -c nrg-bench -a '(nrg-bench --words 2>/dev/null)'
