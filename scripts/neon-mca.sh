#!/usr/bin/env bash
# Models the NEON loops of row norms without a machine: counts the instructions of an iteration, the cycles that the ports of
# Neoverse N2 and V1 need for them, and the cycles that llvm-mca simulates. Prints the tables of docs/speed/neon.md.
#
#   scripts/neon-mca.sh [WORK-DIR]
#
# qemu runs a row of 4096 elements and logs every instruction of the sum and the apply function. The most frequent cycle through the
# hottest instruction is the loop. A sum of the fast grade has two nested loops, of blocks and of lanes; there the cycle covers a
# block. WORK-DIR keeps the loops (*.s).
#
# Debian packages: gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user llvm-19. CC, QEMU and LLVM_SUFFIX select others.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cc=${CC:-aarch64-linux-gnu-gcc} qemu=${QEMU:-qemu-aarch64} suffix=${LLVM_SUFFIX--19}
for tool in "$cc" "$qemu" "llvm-mca$suffix" "llvm-objdump$suffix" "llvm-nm$suffix"; do
    command -v "$tool" >/dev/null || die "$tool is missing (Debian: gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user llvm-19)"
done
if (($#)); then
    work=$1
    mkdir -p "$work"
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi

dim=4096 # DIM of neon-mca.c
# the library's, in src/meson.build
flags=(-std=c11 -O2 -DNDEBUG -fPIC -ffp-contract=off -fno-math-errno -fvisibility=hidden
    -falign-functions=32 -falign-loops=32 -falign-jumps=1 -falign-labels=1)
for program in built constant; do
    options=()
    [[ $program == built ]] || options=(-DNEON_MCA_CONSTANT)
    "$cc" "${flags[@]}" "${options[@]}" -c "$root/scripts/neon-mca.c" -o "$work/$program.o"
    "$cc" -static -no-pie "$work/$program.o" -lm -o "$work/$program"
    "llvm-nm$suffix" -S --defined-only "$work/$program" >"$work/$program.symbols"
    "llvm-objdump$suffix" -d --no-show-raw-insn "$work/$program" >"$work/$program.listing"
done

one_instruction=-one-insn-per-tb # since qemu 8.1
# -h ends with a status of its own
help=$("$qemu" -h 2>&1 || true)
[[ $help == *one-insn-per-tb* ]] || one_instruction=-singlestep

# loop PROGRAM FUNCTION CASE ROUNDS OUT: the loop of FUNCTION in PROGRAM, as assembly, into OUT; prints instructions of the whole
# call. ROUNDS: how often the row goes round it; 0: as often as the hottest instruction is met.
loop() {
    local program=$work/$1 function=$2 case=$3 rounds=$4 out=$5 begin size
    # gcc may add .isra.0 and the like; two of that name would mix two functions
    awk -v name="$function" '$4 == name || index($4, name ".") == 1 { print $1, $2 }' "$program.symbols" >"$work/range"
    (($(wc -l <"$work/range") == 1)) || die "$function: not exactly one function of this name"
    read -r begin size <"$work/range"
    "$qemu" "$one_instruction" -d exec,nochain -dfilter "0x$begin+0x$size" -D "$work/trace" "$program" "$case"
    awk -v function_="$function" '
        FNR == 1 { file++ }
        file == 1 { # the listing: address, tab, instruction
            if (match($0, /^ *[0-9a-f]+:/)) {
                address = $1
                sub(/:.*/, "", address)
                sub(/^[^\t]*\t/, "")
                text[address] = $0
            }
            next
        }
        match($0, /\[[0-9a-f]+\/[0-9a-f]+\//) { # the trace: ... [cs_base/pc/flags/cflags] ...
            split(substr($0, RSTART + 1, RLENGTH), part, "/")
            pc = part[2]
            sub(/^0+/, "", pc)
            if (pc in text) # once each: some versions log twice
                order[++n] = pc
        }
        END {
            for (i = 1; i <= n; i++)
                if (++count[order[i]] > most)
                    most = count[order[i]]
            if (rounds > 0)
                most = rounds
            for (i = 1; i <= n && count[order[i]] != most; i++)
                ;
            head = order[i]
            for (turn = order[i++]; i <= n; turn = turn " " order[i++])
                if (order[i] == head) {
                    if (++turns[turn] > best) {
                        best = turns[turn]
                        loop = turn
                    }
                    turn = ""
                }
            if (best < 8) {
                print function_ ": no loop found" >"/dev/stderr"
                exit 1
            }
            m = split(loop, way, " ")
            for (i = 1; i <= m; i++) {
                line = text[way[i]]
                sub(/ *(\/\/|<).*/, "", line)
                if (line ~ /^(b|b\..*|cbn?z|tbn?z)[ \t]/)
                    sub(/0x[0-9a-f]+ *$/, "elsewhere", line)
                print line >out
            }
            print n
        }' out="$out" rounds="$rounds" "$program.listing" "$work/trace" || die "$function: the trace of qemu holds no loop"
}

# mca CPU WIDTH FILE TURNS: cycles a turn, simulated. WIDTH: 0 for what the model says.
mca() {
    local width=()
    (($2)) && width=(-dispatch="$2")
    "llvm-mca$suffix" -mtriple=aarch64 -mcpu="$1" "${width[@]}" -iterations="$4" -instruction-info=0 -resource-pressure=0 "$3" |
        awk -v turns="$4" '/^Total Cycles:/ { print $3 / turns }' | grep .
}

# What a turn needs at least. Prints: loads stores vector other instructions; then for each CPU the cycles of the busiest ports,
# their name, and the cycles of dispatch. A set of ports needs (µops that can go nowhere else) / (ports of the set).
bounds() {
    awk '
        function bound(cpu, cycles, name) {
            if (cycles > least[cpu]) {
                least[cpu] = cycles
                port[cpu] = name
            }
        }
        {
            m = $1
            sub(/^[^ \t]+[ \t]+/, "")
            first = substr($0, 1, 1)
            all++
            if (m ~ /^(ldp|ldr|ldur|prfm|ldrs?[bhw])$/) {
                loads++
                load_ops += m == "ldp" && first == "q" ? 2 : 1
            } else if (m ~ /^(stp|str|stur)$/) {
                stores++
                if (first ~ /[qds]/) {
                    data_n2 += m == "stp" && first == "q" ? 2 : 1 # stp q: 2 V on N2, 1 V01 on V1, in LLVM
                    data_v1++
                }
            } else if (m == "fcmp") {
                vector++
                compares++
            } else if (first == "v") {
                vector++
                if (m ~ /^fcvt/)
                    converts++
                else if (m ~ /^([su]?shll2?|shl|[su]shr|[su]sra|shrn2?|sli|sri)$/)
                    shifts++
                else if (m !~ /^(f(add|sub|mul|mla|mls|neg|abs|cmeq)|add|sub|and|orr|orn|eor|bic|bif|bit|bsl|cmeq|cmtst|mov|movi|mvni|mvn|not|uzp[12]|zip[12]|ext|urhadd)$/)
                    unknown = unknown " " m
            } else if (m ~ /^(b|b\..*|cbn?z|tbn?z)$/)
                branches++
            else if (m ~ /^(add|adds|sub|subs|cmp|cmn|tst|mov|and|ands|csel|orr|lsl|lsr|ccmp|nop)$/)
                integers++
            else
                unknown = unknown " " m
        }
        END {
            if (unknown) {
                print "bounds: instructions unknown to scripts/neon-mca.sh:" unknown >"/dev/stderr"
                exit 1
            }
            split("n2 v1", cpus, " ")
            for (i = 1; i <= 2; i++) {
                bound(cpus[i], (load_ops + stores) / 3, "L")
                bound(cpus[i], stores / 2, "L01")
                bound(cpus[i], branches / 2, "B")
                bound(cpus[i], integers / 4, "I")
            }
            bound("n2", (vector + data_n2) / 2, "V")
            bound("n2", converts + compares, "V0")
            bound("n2", shifts, "V1")
            bound("v1", (vector + data_v1) / 4, "V")
            bound("v1", compares, "V0")
            bound("v1", (compares + converts) / 2, "V02")
            bound("v1", shifts / 2, "V13")
            bound("v1", (compares + data_v1) / 2, "V01")
            bound("v1", (compares + converts + data_v1) / 3, "V012")
            bound("v1", (shifts + data_v1) / 3, "V013")
            print loads + 0, stores + 0, vector + 0, integers + branches, all, least["n2"], port["n2"], all / 5, least["v1"], port["v1"], all / 8
        }' "$1"
}

per() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }

# cycles_row NAME ELEMENTS BUILT CONSTANT CPU WIDTH PORTS PORT FRONT
cycles_row() {
    local wide narrow constant_narrow turns=$(($2 > 64 ? 250 : 1000))
    wide=$(mca "$5" 0 "$3" "$turns")
    narrow=$(mca "$5" "$6" "$3" "$turns")
    constant_narrow=$(mca "$5" "$6" "$4" "$turns")
    printf '| %s | %s (%s) | %s | %s | **%s** | %s |' "$1" "$(per "$7" "$2")" "$8" "$(per "$9" "$2")" \
        "$(per "$wide" "$2")" "$(per "$narrow" "$2")" "$(per "$constant_narrow" "$2")"
}

instruction_rows=() n2_rows=() v1_rows=()
for case in {exact_f32,fast_f32,fast_bf16}_{rms,add_rms,layer}; do
    IFS=_ read -r grade dtype norm <<<"$case"
    read -r step_sum step_apply < <("$qemu" "$work/built" "$case" steps)
    for step in sum apply; do
        elements=$step_apply rounds=0 function=output
        if [[ $step == sum ]]; then
            elements=$step_sum function=$norm
            [[ $norm != add_rms ]] || function=rms
            [[ $grade == exact ]] || rounds=$((dim / elements))
        elif [[ $grade == fast ]]; then
            function=outputs
        fi
        if [[ $grade == exact ]]; then
            function=exact_$function
        else
            function=general_${function}_$dtype
        fi
        built=$work/$case-$step.s constant=$work/$case-$step-constant.s
        whole=$(loop built "$function" "$case" "$rounds" "$built")
        loop constant "${step}_$case" "$case" "$rounds" "$constant" >/dev/null
        counts=$(bounds "$built")
        constant_counts=$(bounds "$constant")
        read -r loads stores vector other all n2 n2_port n2_front v1 v1_port v1_front <<<"$counts"
        read -r _ _ _ _ constant_all _ <<<"$constant_counts"
        name="$dtype ${norm/_/+}, $grade: $step"
        instruction_rows+=("| $name | $elements | $loads | $stores | $vector | $other | $all | **$(per "$all" "$elements")** |\
 $(per "$whole" "$dim") | $(per "$constant_all" "$elements") |")
        row=$(cycles_row "$name" "$elements" "$built" "$constant" neoverse-n2 5 "$n2" "$n2_port" "$n2_front")
        n2_rows+=("$row")
        row=$(cycles_row "$name" "$elements" "$built" "$constant" neoverse-v1 8 "$v1" "$v1_port" "$v1_front")
        v1_rows+=("$row")
    done
done

versions=$("$cc" --version | head -n 1)", "$("llvm-mca$suffix" --version | grep -o 'LLVM version [0-9.]*')
say "$versions"
say
say "Instructions per iteration and per element:"
say
say "| loop | elements | loads | stores | vector | integer, branch | all | **per element** | per element, full call | per element, constant options |"
say "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
printf '%s\n' "${instruction_rows[@]}"
for cpu in "Neoverse N2|n2_rows|5" "Neoverse V1|v1_rows|8"; do
    IFS='|' read -r title rows width <<<"$cpu"
    declare -n list=$rows
    say
    say "$title, cycles per element:"
    say
    say "| loop | ports, minimum | front end, minimum ($width a cycle) | mca | **mca, $width a cycle** | the same, constant options |"
    say "| --- | --- | --- | --- | --- | --- |"
    printf '%s\n' "${list[@]}"
done
