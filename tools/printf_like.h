/* tools/printf_like.h: PRINTF_LIKE(f, a) before a function whose argument f is a format and whose arguments from a on are what it
 * prints, all as C99 has it: to gcc for Windows, `printf` is Microsoft's of old, which knows no %zu.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_PRINTF_LIKE_H
#define NRG_TOOLS_PRINTF_LIKE_H

#if defined(__MINGW32__) && !defined(__clang__)
#define PRINTF_LIKE(format_index, first) __attribute__((format(gnu_printf, format_index, first)))
#elif defined(__GNUC__)
#define PRINTF_LIKE(format_index, first) __attribute__((format(printf, format_index, first)))
#else
#define PRINTF_LIKE(format_index, first)
#endif

#endif
