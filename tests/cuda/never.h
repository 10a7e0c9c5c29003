/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For stand-ins of libraries: functions that are looked up and must be there, but are not called.  NEVER_SAYS is what
 * they say all the same. */
#define NEVER(name) \
    int name(void); \
    int name(void) { return NEVER_SAYS; }
