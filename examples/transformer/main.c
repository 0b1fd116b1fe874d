/* A transformer that trains and generates with bit-identical results everywhere. See usage below, and README.md in this folder.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"

static const char usage[] =
    "transformer: trains a small language model over bytes, and answers with it; the same bits on every CPU\n"
    "\n"
    "transformer train [options] [TEXT …]   learns the texts; without one, Debian's licences\n"
    "  --out FILE       checkpoint, written in the end and every --save steps (transformer.ckpt)\n"
    "  --resume FILE    goes on from a checkpoint, whose plan holds\n"
    "  --until N        stops after step N of the plan, as an interruption would\n"
    "  --unseen TEXT    text to measure on, any number of times (three licences, with the default texts)\n"
    "  --curve NAME     the loss, as NAME.csv and NAME.svg\n"
    "  --every N        steps from one look at unseen text to the next (100)\n"
    "  --save N         steps from one checkpoint to the next (500)\n"
    "  --threads N      as many as there are CPUs, if not told\n"
    "  --dump FILE      for tests: the weights before the last step, and their gradients\n"
    "  the plan:        --steps (500) --warmup --sequences --rate --decay --seed\n"
    "  the model:       --layers --dim --heads --kv-heads --head --ff --context\n"
    "\n"
    "transformer generate CHECKPOINT PROMPT [options]\n"
    "  --bytes N        to write (400)\n"
    "  --temperature T  0: always the likeliest byte (0.7)\n"
    "  --seed N         of what is drawn (1)\n"
    "  --threads N\n"
    "  --one-by-one     the prompt byte by byte, not in one batch: the same bits\n"
    "\n"
    "transformer check                      a small model on every path of this machine: one hash\n"
    "\n"
    "NRG_ISA=scalar, generic, avx2, avx512 or neon chooses the path of the library.\n";

int main(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "train") == 0)
        return command_train(argc - 1, argv + 1);
    if (argc >= 2 && strcmp(argv[1], "generate") == 0)
        return command_generate(argc - 1, argv + 1);
    if (argc == 2 && strcmp(argv[1], "check") == 0)
        return command_check();
    const int asked = argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    fputs(usage, asked ? stdout : stderr);
    return asked ? 0 : 2;
}
