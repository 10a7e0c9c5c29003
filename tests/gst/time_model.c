/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For scripts: time-model WINDOW EMIT CENTRE writes such a model (time_nets.h) and prints its path. */
#include "time_nets.h"

int
main (int argc, char **argv)
{
  if (argc != 4)
    return 2;
  g_print ("%s\n", time_window_model (atoi (argv[1]), atoi (argv[2]), atoi (argv[3])));
  return 0;
}
