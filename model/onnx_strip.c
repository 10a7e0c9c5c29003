/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "onnx_strip.h"

#include <stdlib.h>
#include <string.h>

#define LARGE ((size_t)64 << 10) /* smaller tensors are copied, to aligned places */
#define WORTH ((size_t)1 << 20)  /* bytes of large ones from which a file stays mapped */

/* Messages on the way to raw data, and which of their fields lead there. */
enum message { MODEL, GRAPH, NODE, ATTRIBUTE, TENSOR, OTHER };

static enum message inside(enum message m, uint64_t field)
{
    switch (m) {
    case MODEL: return field == 7 ? GRAPH : OTHER;
    case GRAPH: return field == 1 ? NODE : field == 5 ? TENSOR : OTHER;
    case NODE: return field == 5 ? ATTRIBUTE : OTHER;
    case ATTRIBUTE: return field == 5 ? TENSOR : OTHER;
    default: return OTHER;
    }
}

struct stripper {
    struct vg_onnx_stripped *s;
    size_t room, raw_room, taken;
    int64_t node, attribute, initializer; /* the ones that are being read */
};

static bool put(struct stripper *t, const void *data, size_t n)
{
    struct vg_onnx_stripped *s = t->s;
    if (t->room - s->size < n) {
        size_t room = 2 * t->room + n + 4096;
        uint8_t *p = realloc(s->data, room);
        if (!p)
            return false;
        s->data = p;
        t->room = room;
    }
    memcpy(s->data + s->size, data, n);
    s->size += n;
    return true;
}

static bool varint(const uint8_t **at, const uint8_t *end, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t b = *(*at)++;
        *v |= (uint64_t)(b & 127) << shift;
        if (b < 128)
            return true;
    }
    return false;
}

/* A length in always five bytes, the most that protobuf-c reads, so that it can be written when it is known. */
#define LENGTH 5
static void put_length(uint8_t *to, uint64_t v)
{
    for (int i = 0; i < LENGTH; i++, v >>= 7)
        to[i] = (uint8_t)((v & 127) | (i < LENGTH - 1 ? 128 : 0));
}

static bool take(struct stripper *t, const uint8_t *data, size_t size)
{
    struct vg_onnx_stripped *s = t->s;
    if (s->n == t->raw_room) {
        size_t room = 2 * t->raw_room + 64;
        struct vg_onnx_raw *p = realloc(s->raws, room * sizeof *p);
        if (!p)
            return false;
        s->raws = p;
        t->raw_room = room;
    }
    s->raws[s->n++] = (struct vg_onnx_raw){t->node, t->node < 0 ? t->initializer : t->attribute, data, size};
    t->taken += size;
    return true;
}

static bool copy(struct stripper *t, enum message m, const uint8_t *at, const uint8_t *end)
{
    int64_t graphs = 0, tensors = 0, raws = 0; /* that fields are there once: else they would be merged */
    while (at < end) {
        const uint8_t *start = at;
        uint64_t tag, n = 0;
        if (!varint(&at, end, &tag))
            return false;
        uint64_t field = tag >> 3;
        size_t tag_bytes = (size_t)(at - start);
        switch (tag & 7) {
        case 0:
            if (!varint(&at, end, &n))
                return false;
            n = 0;
            break;
        case 1: n = 8; break;
        case 5: n = 4; break;
        case 2:
            if (!varint(&at, end, &n))
                return false;
            break;
        default: return false;
        }
        if (n > (uint64_t)(end - at))
            return false;
        const uint8_t *body = at;
        at += n;
        enum message in = (tag & 7) == 2 ? inside(m, field) : OTHER;
        if (m == GRAPH && in == NODE) {
            t->node++;
            t->attribute = -1;
        }
        t->attribute += m == NODE && in == ATTRIBUTE;
        if (m == TENSOR && field == 9) {
            if (raws++)
                return false;
            if (n >= LARGE) {
                if (!take(t, body, n))
                    return false;
                continue;
            }
        }
        if (in == OTHER) {
            if (!put(t, start, (size_t)(at - start)))
                return false;
            continue;
        }
        graphs += in == GRAPH;
        tensors += m == ATTRIBUTE && in == TENSOR;
        if (graphs > 1 || tensors > 1)
            return false;
        int64_t node = t->node;
        if (m == GRAPH && in == TENSOR) {
            t->initializer++;
            t->node = -1;
        }
        uint8_t length[LENGTH] = {0};
        if (!put(t, start, tag_bytes))
            return false;
        size_t place = t->s->size;
        if (!put(t, length, LENGTH) || !copy(t, in, body, at))
            return false;
        put_length(t->s->data + place, t->s->size - place - LENGTH);
        t->node = node;
    }
    return true;
}

void vg_onnx_stripped_free(struct vg_onnx_stripped *s)
{
    free(s->data);
    free(s->raws);
    *s = (struct vg_onnx_stripped){0};
}

bool vg_onnx_strip(const void *file, size_t size, struct vg_onnx_stripped *s)
{
    struct stripper t = {.s = s, .node = -1, .attribute = -1, .initializer = -1};
    *s = (struct vg_onnx_stripped){0};
    if (size >= WORTH && size < (size_t)1 << 34 && copy(&t, MODEL, file, (const uint8_t *)file + size) && t.taken >= WORTH)
        return true;
    vg_onnx_stripped_free(s);
    return false;
}

bool vg_onnx_put_back(const struct vg_onnx_stripped *s, Vg__Model *m)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct vg_onnx_raw *r = &s->raws[i];
        const Vg__Graph *g = m->graph;
        Vg__Tensor *t = NULL;
        if (!g)
            return false;
        if (r->node < 0)
            t = (size_t)r->index < g->n_initializer ? g->initializer[r->index] : NULL;
        else if ((size_t)r->node < g->n_node && (size_t)r->index < g->node[r->node]->n_attribute)
            t = g->node[r->node]->attribute[r->index]->t;
        if (!t)
            return false;
        t->has_raw_data = 1;
        t->raw_data = (ProtobufCBinaryData){r->size, (uint8_t *)r->data};
    }
    return true;
}
