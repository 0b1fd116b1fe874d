/* nrg check as a program of its own. SPDX-License-Identifier: MIT */
int command_check(char **arguments);

int main(int argc, char **argv) { return argc ? command_check(argv + 1) : 1; }
