/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The test kit: one header.  A test program is a main() of `run(name_of_function)` lines and `return kit_done();`.
 *
 *     static void sums(void) { expect(1 + 1 == 2); expect_near(0.1 + 0.2, 0.3, 1e-12); }
 *     int main(void) { run(sums); return kit_done(); }
 *
 * A failed expectation prints its place and goes on.  kit_skip("why") ends the program with 77.
 *
 * For tests of the tests: KIT_ONLY=FUNCTION runs nothing else, KIT_FIRST=1 ends the program at the first that fails. */
#ifndef KIT_H
#define KIT_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sanitized.h"

static int kit_failures;

#define expect(c) \
    do { \
        if (!(c)) { \
            kit_failures++; \
            printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #c); \
        } \
    } while (0)

/* The same with a printf text that helps to repeat it. */
#define expectf(c, ...) \
    do { \
        if (!(c)) { \
            kit_failures++; \
            printf("%s:%d: failed: %s: ", __FILE__, __LINE__, #c); \
            printf(__VA_ARGS__); \
            printf("\n"); \
        } \
    } while (0)

#define expect_near(a, b, tolerance) \
    do { \
        double a_ = (a), b_ = (b); \
        if (!(fabs(a_ - b_) <= (tolerance))) { \
            kit_failures++; \
            printf("%s:%d: failed: %s = %.9g, expected %.9g\n", __FILE__, __LINE__, #a, a_, b_); \
        } \
    } while (0)

static inline int kit_wants(const char *name)
{
    const char *only = getenv("KIT_ONLY");
    return !only || !strcmp(only, name);
}

#define run(f) \
    do { \
        int before_ = kit_failures; \
        if (kit_wants(#f)) { \
            f(); \
            printf("%s %s\n", kit_failures == before_ ? "ok  " : "FAIL", #f); \
            fflush(stdout); \
        } \
        if (kit_failures && getenv("KIT_FIRST")) \
            exit(1); \
    } while (0)

static inline int kit_done(void) { return kit_failures ? 1 : 0; }

static inline _Noreturn void kit_skip(const char *why)
{
    printf("skipped: %s\n", why);
    exit(77);
}

/* A small repeatable random generator (xorshift64*): kit_seed(n), then kit_int(low, high) inclusive, kit_real(low,
 * high). */
static uint64_t kit_state = 0x9e3779b97f4a7c15u;
static inline void kit_seed(uint64_t s) { kit_state = s * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du; }
static inline uint64_t kit_random(void)
{
    kit_state ^= kit_state >> 12;
    kit_state ^= kit_state << 25;
    kit_state ^= kit_state >> 27;
    return kit_state * 0x2545f4914f6cdd1du;
}
static inline int kit_int(int low, int high) { return low + (int)(kit_random() % (uint64_t)(high - low + 1)); }
static inline double kit_real(double low, double high)
{
    return low + (high - low) * (double)(kit_random() >> 11) / 9007199254740992.0;
}

#endif
