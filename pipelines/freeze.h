/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* vidgen freeze: measures the statistics of a model's norms and stores them beside it. */
#ifndef FREEZE_H
#define FREEZE_H

/* `vidgen freeze ...`, argv[0] being "freeze".  The exit status: see enum exit_code in vidgen.c. */
int freeze_main(int argc, char **argv);

#endif
