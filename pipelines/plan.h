/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* vidgen plan: what a model would need, before anything runs. */
#ifndef PLAN_H
#define PLAN_H

#include <glib.h>

/* `vidgen plan ...`, argv[0] being "plan".  The exit status: see enum exit_code in vidgen.c. */
int plan_main(int argc, char **argv);

/* "frozen" to enum vg_norm_mode; -1 when it is none. */
int parse_norm_mode(const char *text);

/* "512M" to bytes; 0 when it is no size. */
guint64 parse_bytes(const char *text);

#endif
