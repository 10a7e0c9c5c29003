/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Plans: which engine computes an operation.
 *
 * cuDNN's heuristics give a list of engines with their settings, the fastest first, each with the workspace that it
 * will need: that is all a plan has to know, and takes some milliseconds.  Finalising a plan is another matter
 * (engines that are compiled at run time take seconds) and waits until something is to be run.
 *
 * Engines whose result depends on more than the numbers of a pixel's own sum (Winograd's blocks, FFT, sums in no fixed
 * order) are passed over: tiles have to equal the whole frame. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dnn_internal.h"

/* --- the choice of an engine --- */

struct engine {
    int64_t index, workspace;
    bool compiled, fixed, full; /* at run time; the same sum for every pixel; products in f32 */
};

static struct engine engine_of(struct vgk_dnn *dnn, cudnnBackendDescriptor_t config)
{
    struct engine e = {.index = -1, .workspace = -1, .fixed = true, .full = true};
    cudnnBackendDescriptor_t d = NULL;
    cudnnBackendBehaviorNote_t behaviour[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t n = 0;
    if (dnn->BackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &e.workspace) ||
        dnn->BackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &d))
        return e;
    if (dnn->BackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &d) ||
        dnn->BackendGetAttribute(d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n, &e.index))
        e.index = -1;
    n = 0;
    if (!dnn->BackendGetAttribute(d, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                  CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &n, behaviour))
        for (int64_t i = 0; i < n; i++)
            e.compiled |= behaviour[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    n = 0;
    if (!dnn->BackendGetAttribute(d, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                  CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, notes))
        for (int64_t i = 0; i < n; i++) {
            bool rounds = notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE ||
                          notes[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
            e.full &= !rounds;
            e.fixed &= rounds || notes[i] == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP;
        }
    dnn->BackendDestroyDescriptor(d);
    return e;
}

/* Keeps those of a list that will do, in its order, but those that come compiled before the others. */
static void keep(struct vgk_dnn_plan *p, cudnnBackendDescriptor_t *config, int n, bool full)
{
    for (int compiled = 0; compiled < 2; compiled++)
        for (int i = 0; i < n && p->n_configs < VGK_DNN_CONFIGS; i++) {
            struct engine e = config[i] ? engine_of(p->dnn, config[i]) : (struct engine){.index = -1};
            if (e.index < 0 || e.compiled != compiled || !e.fixed || (full && !e.full) || e.workspace < 0 ||
                (uint64_t)e.workspace > p->max_workspace)
                continue;
            p->config[p->n_configs] = config[i];
            p->engine[p->n_configs] = e.index;
            p->compiled[p->n_configs++] = e.compiled;
            if (p->n_configs == 1)
                p->workspace = (size_t)e.workspace;
            config[i] = NULL;
        }
}

enum { FEW = 4, MANY = 48 }; /* results that are asked for: each takes up to 20 ms */

static cudnnStatus_t ask(struct vgk_dnn_plan *p, cudnnBackendHeurMode_t mode, int64_t most, bool full)
{
    struct vgk_dnn *dnn = p->dnn;
    cudnnBackendDescriptor_t h = NULL, config[MANY] = {NULL};
    int64_t n = 0;
    cudnnStatus_t s = dnn->BackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &h);
    if (!s)
        s = dnn->BackendSetAttribute(h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                     &p->g.graph);
    if (!s)
        s = dnn->BackendSetAttribute(h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!s && dnn->device)
        s = dnn->BackendSetAttribute(h, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                     &dnn->device);
    if (!s)
        s = dnn->BackendFinalize(h);
    if (!s)
        s = dnn->BackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &n, NULL);
    n = n < most ? n : most;
    for (int64_t i = 0; i < n && !s; i++)
        s = dnn->BackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &config[i]);
    if (!s && n)
        s = dnn->BackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, &n, config);
    if (!s)
        keep(p, config, (int)n, full);
    for (int64_t i = 0; i < most; i++)
        if (config[i])
            dnn->BackendDestroyDescriptor(config[i]);
    if (h)
        dnn->BackendDestroyDescriptor(h);
    return s;
}

static enum vgk_status choose(struct vgk_dnn_plan *p, enum vgk_type type, struct vgk_error *err)
{
    static const struct {
        cudnnBackendHeurMode_t mode;
        int results;
    } ways[] = {{CUDNN_HEUR_MODE_A, FEW}, {CUDNN_HEUR_MODE_A, MANY}, {CUDNN_HEUR_MODE_FALLBACK, MANY}};
    /* f32 is asked for where f16's range was not enough: products in f32, or at least in its range (TF32). */
    for (int full = type == VGK_F32; full >= 0; full--)
        for (size_t i = 0; i < sizeof ways / sizeof *ways && !p->n_configs; i++) {
            cudnnStatus_t s = ask(p, ways[i].mode, ways[i].results, full);
            if (s && !p->n_configs && CUDNN_STATUS_CATEGORY((int)s) != CUDNN_STATUS_NOT_SUPPORTED)
                return vgk_dnn_fail(p->dnn, s, "heuristics", err);
        }
    if (p->n_configs)
        return VGK_OK;
    return vgk_fail(err, VGK_ERR_UNSUPPORTED, "cuDNN: no engine with a workspace of %zu bytes or less",
                    p->max_workspace);
}

static void describe(struct vgk_dnn_plan *p, int i)
{
    snprintf(p->text, sizeof p->text, "engine %lld, %s, workspace %zu", (long long)p->engine[i],
             p->compiled[i] ? "compiled at run time" : "precompiled", p->workspace);
}

/* --- plans, one for all operations that are alike --- */

static bool same_view(const struct vgk_tensor *a, const struct vgk_tensor *b)
{
    return a->type == b->type && a->rank == b->rank && !memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) &&
           !memcmp(a->stride, b->stride, a->rank * sizeof *a->stride);
}

static bool alike(const struct vgk_dnn_plan *p, const struct vgk_op *op, size_t max_workspace)
{
    if (p->op.kind != op->kind || p->op.n_in != op->n_in || p->op.constant != op->constant ||
        p->max_workspace != max_workspace || !same_view(&p->out, op->out))
        return false;
    for (int i = 0; i < op->n_in; i++)
        if (!same_view(&p->in[i], &op->in[i]))
            return false;
    size_t bytes = op->kind == VGK_OP_MATMUL      ? sizeof op->p.matmul
                   : op->kind == VGK_OP_ATTENTION ? sizeof op->p.attention
                                                  : sizeof op->p.conv;
    return !memcmp(&p->op.p, &op->p, bytes);
}

static void free_plan(struct vgk_dnn_plan *p)
{
    if (p->built)
        p->dnn->BackendDestroyDescriptor(p->built);
    while (p->n_configs)
        p->dnn->BackendDestroyDescriptor(p->config[--p->n_configs]);
    vgk_dnn_graph_clear(&p->g);
    free(p);
}

void vgk_dnn_free_plans(struct vgk_dnn *dnn)
{
    while (dnn->plans) {
        struct vgk_dnn_plan *p = dnn->plans;
        dnn->plans = p->next;
        free_plan(p);
    }
}

enum vgk_status vgk_dnn_plan(struct vgk_dnn *dnn, const struct vgk_op *op, size_t max_workspace,
                             struct vgk_dnn_plan **out, struct vgk_error *err)
{
    struct vgk_dnn_plan *p = dnn->plans;
    struct vgk_error why = {{0}};
    *out = NULL;
    while (p && !alike(p, op, max_workspace))
        p = p->next;
    if (!p && !(p = calloc(1, sizeof *p)))
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for a plan of cuDNN's");
    if (!p->dnn) {
        p->dnn = p->g.dnn = dnn;
        p->op = *op;
        p->out = *op->out;
        memcpy(p->in, op->in, op->n_in * sizeof *op->in);
        p->max_workspace = max_workspace;
        p->g.err = &why;
        p->status = vgk_dnn_graph_make(&p->g, op);
        if (!p->status)
            p->status = choose(p, op->in[0].type, &why);
        p->g.err = NULL;
        if (p->status && p->status != VGK_ERR_UNSUPPORTED) {
            enum vgk_status status = vgk_fail(err, p->status, "%s", why.text);
            free_plan(p);
            return status;
        }
        if (p->status)
            snprintf(p->text, sizeof p->text, "%.255s", why.text);
        else
            describe(p, 0);
        p->next = dnn->plans;
        dnn->plans = p;
    }
    if (p->status)
        return vgk_fail(err, p->status, "%s", p->text);
    *out = p;
    return VGK_OK;
}

size_t vgk_dnn_plan_workspace(const struct vgk_dnn_plan *p) { return p->workspace; }
size_t vgk_dnn_plan_packed(const struct vgk_dnn_plan *p) { return p->g.packed; }
const char *vgk_dnn_plan_describe(const struct vgk_dnn_plan *p) { return p->text; }

/* --- finalising --- */

static cudnnStatus_t finalise(struct vgk_dnn_plan *p, int i, int64_t *workspace)
{
    struct vgk_dnn *dnn = p->dnn;
    cudnnBackendDescriptor_t d = NULL;
    int64_t n;
    cudnnStatus_t s = dnn->BackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &d);
    if (!s && dnn->handle)
        s = dnn->BackendSetAttribute(d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &dnn->handle);
    if (!s)
        s = dnn->BackendSetAttribute(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                     &p->config[i]);
    if (!s)
        s = dnn->BackendFinalize(d);
    if (!s)
        s = dnn->BackendGetAttribute(d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, workspace);
    if (!s && *workspace >= 0 && (size_t)*workspace <= p->workspace)
        p->built = d;
    else if (d)
        dnn->BackendDestroyDescriptor(d);
    return s;
}

enum vgk_status vgk_dnn_build(struct vgk_dnn_plan *p, struct vgk_error *err)
{
    enum vgk_status status = VGK_OK;
    for (int i = 0; i < p->n_configs && !p->built; i++) {
        int64_t workspace = -1;
        cudnnStatus_t s = finalise(p, i, &workspace);
        if (p->built)
            describe(p, i);
        else if (!status && s) { /* the first engine's words: the others stand in for it */
            vgk_dnn_fail(p->dnn, s, "finalize(plan)", err);
            status = VGK_ERR_DEVICE;
        } else if (!status) {
            status = vgk_fail(err, VGK_ERR_DEVICE, "cuDNN: an engine that said %zu bytes of workspace wants %lld",
                              p->workspace, (long long)workspace);
        }
    }
    return p->built ? VGK_OK : status;
}
