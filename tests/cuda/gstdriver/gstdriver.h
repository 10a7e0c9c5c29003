/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the driver (driver.c) tells tests. */
#ifndef GSTDRIVER_H
#define GSTDRIVER_H

int gstdriver_contexts(void); /* that there are */
int gstdriver_copies(void);   /* between host and device, so far */

#endif
