/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One op of a net, asked for some rows of its output. */
#ifndef VG_ROWS_H
#define VG_ROWS_H

#include "schedule.h"

/* Rows [*lo, *hi) of an input with `rows` rows that rows [begin, end) of the output need. */
void vg_rows_needed(const struct vg_operand *, int64_t begin, int64_t end, int64_t rows, int64_t *lo, int64_t *hi);

/* The call's op with parameters and operands for its rows: `offset` of operands counts from the window's begin where
 * storage says that there is one.  in: [VG_MAX_OPERANDS]. */
void vg_rows_restrict(const struct vg_net *, const struct vg_call *, const struct vg_storage *, struct vgk_op *op,
                      struct vg_operand *in, struct vg_operand *out);

/* True when vg_rows_restrict can do it, for any rows. */
bool vg_rows_can(const struct vg_net *, const struct vg_net_op *);

/* The buffer of an operand that has the frame's rows, -1 for what has none. */
int vg_rows_buffer(const struct vg_net *, const struct vg_operand *);

#endif
