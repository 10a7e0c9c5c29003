/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Constants into cuDNN's order, and plans on a stream. */
#include <assert.h>
#include <string.h>

#include "../cpu/elements.h"
#include "../cpu/weights.h"
#include "dnn_internal.h"

/* --- constants --- */

/* The output channel that a weight belongs to. */
static int64_t channel_of(const struct vgk_op *op, const struct vgk_tensor *weights, const int64_t *index)
{
    if (op->kind == VGK_OP_CONV)
        return index[0];
    return index[0] / (weights->dim[0] / op->p.conv.groups) * weights->dim[1] + index[1];
}

static void put(const struct vgk_op *op, const struct vgk_dnn_constant *c, void *to)
{
    const struct vgk_tensor *from = &op->in[c->input], *t = &c->t;
    int skip = from->rank - t->rank, last = t->rank - 1;
    int64_t index[VGK_MAX_RANK] = {0};
    enum { PIECE = 256 };
    float row[PIECE], scale = 1;
    for (bool more = true; more;) {
        int64_t source = 0, place = 0;
        for (int i = 0; i < last; i++) {
            source += index[i] * from->stride[skip + i];
            place += index[i] * t->stride[i];
        }
        for (int64_t begin = 0; begin < t->dim[last]; begin += PIECE) {
            int64_t n = t->dim[last] - begin < PIECE ? t->dim[last] - begin : PIECE;
            if (c->input == 1) {
                int64_t place_of[VGK_MAX_RANK] = {0};
                memcpy(place_of + skip, index, (size_t)t->rank * sizeof *index);
                place_of[from->rank - 1] = begin;
                vgk_weights_f32(op, place_of, from->rank - 1, row, n);
            } else
                vgk_load_f32(row, from, source + begin * from->stride[skip + last], from->stride[skip + last], n);
            if (c->scaled)
                vgk_load_f32(&scale, &op->in[3], channel_of(op, from, index) * op->in[3].stride[0], 0, 1);
            for (int64_t i = 0; i < n; i++) {
                float value = row[i] * c->factor * scale;
                int64_t at = place + (begin + i) * t->stride[last];
                if (t->type == VGK_F16)
                    ((_Float16 *)to)[at] = (_Float16)value;
                else
                    ((float *)to)[at] = value;
            }
        }
        more = false;
        for (int i = last - 1; i >= 0 && !more; i--) {
            more = ++index[i] < t->dim[i];
            if (!more)
                index[i] = 0;
        }
    }
}

enum vgk_status vgk_dnn_pack(struct vgk_dnn *dnn, const struct vgk_dnn_plan *p, const struct vgk_op *op, void *host,
                             struct vgk_error *err)
{
    memset(host, 0, p->g.packed);
    for (int i = 0; i < p->g.n_constants; i++) {
        const struct vgk_dnn_constant *c = &p->g.constant[i];
        assert(op->in[c->input].data);
        put(op, c, (char *)host + c->offset);
    }
    return VGK_OK;
}

/* --- running --- */

enum vgk_status vgk_dnn_run(struct vgk_dnn *dnn, const struct vgk_dnn_plan *p, const struct vgk_op *op,
                            const void *packed, void *workspace, void *stream, struct vgk_error *err)
{
    void *pointer[VGK_DNN_TENSORS];
    int64_t uid[VGK_DNN_TENSORS];
    int n = p->g.n_bindings;
    if (!dnn->handle || !p->built)
        return vgk_fail(err, VGK_ERR_DEVICE, "cuDNN: a plan that was %s cannot be run",
                        dnn->handle ? "not built" : "made for a description of a device");
    for (int i = 0; i < n; i++) {
        const struct vgk_dnn_binding *b = &p->g.binding[i];
        uid[i] = i + 1;
        switch (b->source) {
        case VGK_DNN_IN: pointer[i] = op->in[b->index].data; break;
        case VGK_DNN_OUT: pointer[i] = op->out->data; break;
        case VGK_DNN_PACKED: pointer[i] = (char *)packed + b->offset; break;
        case VGK_DNN_SCALAR: pointer[i] = (void *)&b->scalar; break;
        }
        if (!pointer[i] || (uintptr_t)pointer[i] % (uintptr_t)b->align)
            return vgk_fail(err, VGK_ERR_DEVICE, "cuDNN: %s of %s at %p: expected an address that is a multiple of %d",
                            b->source == VGK_DNN_OUT ? "the result" : "an input", vgk_kind_name(op->kind), pointer[i],
                            b->align);
    }
    cudnnBackendDescriptor_t d = NULL;
    const char *call = "cudnnSetStream";
    cudnnStatus_t s = dnn->SetStream(dnn->handle, stream);
    if (!s) {
        call = "variant pack";
        s = dnn->BackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &d);
    }
    if (!s)
        s = dnn->BackendSetAttribute(d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, uid);
    if (!s)
        s = dnn->BackendSetAttribute(d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, pointer);
    if (!s)
        s = dnn->BackendSetAttribute(d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    if (!s)
        s = dnn->BackendFinalize(d);
    if (!s) {
        call = "execute";
        s = dnn->BackendExecute(dnn->handle, p->built, d);
    }
    if (d)
        dnn->BackendDestroyDescriptor(d);
    return s ? vgk_dnn_fail(dnn, s, call, err), VGK_ERR_DEVICE : VGK_OK;
}
