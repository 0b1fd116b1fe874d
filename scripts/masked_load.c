/* Exits 0 if an AVX2 masked load leaves the elements it does not ask for alone, as every CPU does, and dies if it reads them:
 * qemu's user emulation reads all 32 bytes (seen in 7.2), and a load at the end of a page then reaches into the next. For
 * test.sh.
 *
 * SPDX-License-Identifier: MIT */
#include <immintrin.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + page, page, PROT_NONE) != 0)
        return EXIT_FAILURE;
    const __m256i first_three = _mm256_setr_epi32(-1, -1, -1, 0, 0, 0, 0, 0);
    float loaded[8];
    _mm256_storeu_ps(loaded, _mm256_maskload_ps((const float *)(memory + page) - 3, first_three));
    return loaded[0] != 0;
}
