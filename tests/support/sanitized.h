/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sanitizers make everything several times as slow: loops that only add numbers, not code, are cut short with them. */
#ifndef TESTS_SANITIZED_H
#define TESTS_SANITIZED_H

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#endif
