/* The page that a report is put into: what stands before its JSON and after it. Made by page.py from page.html, page.css and the
 * scripts.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_REPORT_PAGE_H
#define NRG_BENCH_REPORT_PAGE_H

#include <stddef.h>

extern const unsigned char report_page_head[], report_page_tail[];
extern const size_t report_page_head_size, report_page_tail_size;

#endif
