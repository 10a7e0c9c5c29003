/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Plans: which engine computes an operation.
 *
 * cuDNN's heuristics give a list of engines with their settings, the fastest first, each with the workspace that it will
 * need: that is all a plan has to know, and takes some milliseconds.  Finalising a plan is another matter (engines that
 * are compiled at run time take seconds) and waits until something is to be run.
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
            e.full &= notes[i] != CUDNN_NUMERICAL_NOTE_TENSOR_CORE && notes[i] != CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
            e.fixed &= notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE || notes[i] == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP ||
                       notes[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
        }
    dnn->BackendDestroyDescriptor(d);
    return e;
}

/* Keeps those of a list that will do, in its order; with `compiled` those that are compiled at run time, else the
 * others.  Returns how many were looked at. */
static int64_t keep(struct vgk_dnn_plan *p, cudnnBackendDescriptor_t *config, int64_t n, size_t max_workspace, bool full,
                    bool compiled)
{
    for (int64_t i = 0; i < n && p->n_configs < VGK_DNN_CONFIGS; i++) {
        struct engine e = config[i] ? engine_of(p->dnn, config[i]) : (struct engine){.index = -1};
        if (e.index < 0 || e.compiled != compiled || !e.fixed || (full && !e.full) || e.workspace < 0 ||
            (uint64_t)e.workspace > max_workspace)
            continue;
        p->config[p->n_configs] = config[i];
        p->engine[p->n_configs] = e.index;
        p->compiled[p->n_configs++] = e.compiled;
        if (p->n_configs == 1)
            p->workspace = (size_t)e.workspace;
        config[i] = NULL;
    }
    return n;
}

static cudnnStatus_t ask(struct vgk_dnn_plan *p, cudnnBackendHeurMode_t mode, size_t max_workspace, bool full)
{
    struct vgk_dnn *dnn = p->dnn;
    cudnnBackendDescriptor_t h = NULL, config[48] = {NULL};
    int64_t n = 0, most = (int64_t)(sizeof config / sizeof *config);
    cudnnStatus_t s = dnn->BackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &h);
    if (!s)
        s = dnn->BackendSetAttribute(h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                     &p->g.graph);
    if (!s)
        s = dnn->BackendSetAttribute(h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!s && dnn->device)
        s = dnn->BackendSetAttribute(h, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &dnn->device);
    if (!s)
        s = dnn->BackendFinalize(h);
    if (!s)
        s = dnn->BackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &n, NULL);
    n = n < most ? n : most;
    for (int64_t i = 0; i < n && !s; i++)
        s = dnn->BackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &config[i]);
    if (!s && n)
        s = dnn->BackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, &n, config);
    if (!s) {
        keep(p, config, n, max_workspace, full, false);
        keep(p, config, n, max_workspace, full, true);
    }
    for (int64_t i = 0; i < most; i++)
        if (config[i])
            dnn->BackendDestroyDescriptor(config[i]);
    if (h)
        dnn->BackendDestroyDescriptor(h);
    return s;
}

static enum vgk_status choose(struct vgk_dnn_plan *p, enum vgk_type type, size_t max_workspace, struct vgk_error *err)
{
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    /* f32 is asked for where f16's range was not enough: products in f32, or at least in its range (TF32). */
    for (int full = type == VGK_F32; full >= 0; full--)
        for (size_t i = 0; i < sizeof modes / sizeof *modes && !p->n_configs; i++) {
            cudnnStatus_t s = ask(p, modes[i], max_workspace, full);
            if (s && !p->n_configs && CUDNN_STATUS_CATEGORY((int)s) != CUDNN_STATUS_NOT_SUPPORTED)
                return vgk_dnn_fail(p->dnn, s, "heuristics", err);
        }
    return p->n_configs ? VGK_OK : vgk_fail(err, VGK_ERR_UNSUPPORTED, "cuDNN: no engine with a workspace of %zu bytes or "
                                                                      "less", max_workspace);
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
    if (p->op.kind != op->kind || p->op.n_in != op->n_in || p->max_workspace != max_workspace ||
        !same_view(&p->out, op->out))
        return false;
    for (int i = 0; i < op->n_in; i++)
        if (!same_view(&p->in[i], &op->in[i]) || !p->in[i].data != !op->in[i].data)
            return false;
    size_t bytes = op->kind == VGK_OP_MATMUL      ? sizeof op->p.matmul
                   : op->kind == VGK_OP_ATTENTION ? sizeof op->p.attention
                                                  : sizeof op->p.conv;
    return !memcmp(&p->op.p, &op->p, bytes);
}

enum vgk_status vgk_dnn_plan(struct vgk_dnn *dnn, const struct vgk_op *op, size_t max_workspace,
                             struct vgk_dnn_plan **out, struct vgk_error *err)
{
    *out = NULL;
    for (struct vgk_dnn_plan *p = dnn->plans; p; p = p->next)
        if (alike(p, op, max_workspace)) {
            p->references++;
            *out = p;
            return VGK_OK;
        }
    struct vgk_dnn_plan *p = calloc(1, sizeof *p);
    if (!p)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for a plan of cuDNN's");
    p->dnn = dnn;
    p->references = 1;
    p->op = *op;
    p->out = *op->out;
    memcpy(p->in, op->in, op->n_in * sizeof *op->in);
    p->max_workspace = max_workspace;
    p->g.dnn = dnn;
    p->g.err = err;
    enum vgk_status status = vgk_dnn_graph_make(&p->g, op);
    if (!status)
        status = choose(p, op->out->type, max_workspace, err);
    p->g.err = NULL;
    p->next = dnn->plans;
    dnn->plans = p;
    if (status) {
        vgk_dnn_plan_free(&p);
        return status;
    }
    describe(p, 0);
    *out = p;
    return VGK_OK;
}

void vgk_dnn_plan_free(struct vgk_dnn_plan **plan)
{
    struct vgk_dnn_plan *p = *plan, **at;
    *plan = NULL;
    if (!p || --p->references)
        return;
    for (at = &p->dnn->plans; *at != p; at = &(*at)->next)
        ;
    *at = p->next;
    if (p->built)
        p->dnn->BackendDestroyDescriptor(p->built);
    while (p->n_configs)
        p->dnn->BackendDestroyDescriptor(p->config[--p->n_configs]);
    vgk_dnn_graph_clear(&p->g);
    free(p);
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
        }
        else if (!status)
            status = vgk_fail(err, VGK_ERR_DEVICE, "cuDNN: an engine that said %zu bytes of workspace wants %lld",
                              p->workspace, (long long)workspace);
    }
    return p->built ? VGK_OK : status;
}
