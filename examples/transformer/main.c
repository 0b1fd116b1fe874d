/* A transformer that trains and answers with the same bits everywhere; see usage below, and README.md beside this file.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"

static const char usage[] =
    "transformer: trains a small language model over bytes, and answers with it; the same bits on every CPU\n"
    "\n"
    "transformer train [options] [TEXT …]          learns the texts; without one, Debian's licences\n"
    "  --out FILE          checkpoint, written at the end and every --save steps (default transformer.ckpt)\n"
    "  --resume FILE       goes on from a checkpoint, whose plan holds; --until and the files may be given\n"
    "  --unseen TEXT       text to measure on, any number of times (default: licences kept apart, with the default texts)\n"
    "  --steps N           of the whole plan (default 3000)       --until N     stops after step N, as an interruption would\n"
    "  --curve NAME        NAME.csv and NAME.svg: the loss        --every N     measures unseen text every N steps (default "
    "250)\n"
    "  --save N            steps between checkpoints (default 500) --threads N  (default: the CPUs)\n"
    "  --layers --dim --heads --kv-heads --head --ff --context --sequences --rate --warmup --decay --seed: the model and its "
    "training\n"
    "  --dump FILE         weights before the last step and their gradients, floats, for tests\n"
    "\n"
    "transformer generate CHECKPOINT PROMPT [options]\n"
    "  --bytes N           to write (default 400)                 --temperature T  0: the likeliest byte (default 0.7)\n"
    "  --seed N            of what is drawn                       --threads N\n"
    "  --one-by-one        the prompt byte by byte, not in one batch: the same bits\n"
    "\n"
    "transformer check                             a small model on every path of this machine: one hash\n"
    "\n"
    "NRG_ISA=scalar, avx2, avx512, neon or generic chooses the path of the library.\n";

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
