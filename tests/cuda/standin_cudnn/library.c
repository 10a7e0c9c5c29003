/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Descriptors, the heuristics that know one engine, and the functions' own checks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin_cudnn.h"

struct cudnnContext {
    cudaStream_t stream;
};

static char last_error[256];
static int calls;

static cudnnStatus_t say(cudnnStatus_t s, const char *what)
{
    snprintf(last_error, sizeof last_error, "%s", what);
    return s;
}

static bool fails(void)
{
    const char *n = getenv("VIDGEN_STANDIN_CUDNN_FAIL");
    calls = n ? calls + 1 : 0;
    return n && calls == atoi(n);
}
#define MAY_FAIL() \
    do { \
        if (fails()) \
            return say(CUDNN_STATUS_EXECUTION_FAILED, "failed because the test said so"); \
    } while (0)

/* --- what may be set --- */

static const struct rule {
    cudnnBackendAttributeName_t name;
    cudnnBackendDescriptorType_t of;
    cudnnBackendAttributeType_t type;
    int most; /* values */
    bool needed;
} rules[] = {
#define RULE(name, of, type, most, needed) \
    {CUDNN_ATTR_##name, CUDNN_BACKEND_##of##_DESCRIPTOR, CUDNN_TYPE_##type, most, needed}
    RULE(DEVICEPROP_DEVICE_ID, DEVICEPROP, INT32, 1, false),
    RULE(DEVICEPROP_JSON_REPRESENTATION, DEVICEPROP, CHAR, 65536, false),
    RULE(TENSOR_DATA_TYPE, TENSOR, DATA_TYPE, 1, true),
    RULE(TENSOR_DIMENSIONS, TENSOR, INT64, MOST_DIMS, true),
    RULE(TENSOR_STRIDES, TENSOR, INT64, MOST_DIMS, true),
    RULE(TENSOR_UNIQUE_ID, TENSOR, INT64, 1, true),
    RULE(TENSOR_BYTE_ALIGNMENT, TENSOR, INT64, 1, true),
    RULE(TENSOR_IS_VIRTUAL, TENSOR, BOOLEAN, 1, false),
    RULE(TENSOR_IS_BY_VALUE, TENSOR, BOOLEAN, 1, false),
    RULE(CONVOLUTION_COMP_TYPE, CONVOLUTION, DATA_TYPE, 1, true),
    RULE(CONVOLUTION_CONV_MODE, CONVOLUTION, CONVOLUTION_MODE, 1, true),
    RULE(CONVOLUTION_SPATIAL_DIMS, CONVOLUTION, INT64, 1, true),
    RULE(CONVOLUTION_PRE_PADDINGS, CONVOLUTION, INT64, 3, true),
    RULE(CONVOLUTION_POST_PADDINGS, CONVOLUTION, INT64, 3, true),
    RULE(CONVOLUTION_FILTER_STRIDES, CONVOLUTION, INT64, 3, true),
    RULE(CONVOLUTION_DILATIONS, CONVOLUTION, INT64, 3, true),
    RULE(POINTWISE_MODE, POINTWISE, POINTWISE_MODE, 1, true),
    RULE(POINTWISE_MATH_PREC, POINTWISE, DATA_TYPE, 1, true),
    RULE(POINTWISE_RELU_LOWER_CLIP_SLOPE, POINTWISE, DOUBLE, 1, false),
    RULE(POINTWISE_RELU_UPPER_CLIP, POINTWISE, DOUBLE, 1, false),
    RULE(MATMUL_COMP_TYPE, MATMUL, DATA_TYPE, 1, true),
    RULE(OPERATION_CONVOLUTION_FORWARD_CONV_DESC, OPERATION_CONVOLUTION_FORWARD, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_CONVOLUTION_FORWARD_X, OPERATION_CONVOLUTION_FORWARD, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_CONVOLUTION_FORWARD_W, OPERATION_CONVOLUTION_FORWARD, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_CONVOLUTION_FORWARD_Y, OPERATION_CONVOLUTION_FORWARD, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_CONVOLUTION_FORWARD_ALPHA, OPERATION_CONVOLUTION_FORWARD, FLOAT, 1, true),
    RULE(OPERATION_CONVOLUTION_FORWARD_BETA, OPERATION_CONVOLUTION_FORWARD, FLOAT, 1, true),
    RULE(OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, OPERATION_CONVOLUTION_BACKWARD_DATA, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_CONVOLUTION_BWD_DATA_DY, OPERATION_CONVOLUTION_BACKWARD_DATA, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_CONVOLUTION_BWD_DATA_W, OPERATION_CONVOLUTION_BACKWARD_DATA, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_CONVOLUTION_BWD_DATA_DX, OPERATION_CONVOLUTION_BACKWARD_DATA, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_CONVOLUTION_BWD_DATA_ALPHA, OPERATION_CONVOLUTION_BACKWARD_DATA, FLOAT, 1, true),
    RULE(OPERATION_CONVOLUTION_BWD_DATA_BETA, OPERATION_CONVOLUTION_BACKWARD_DATA, FLOAT, 1, true),
    RULE(OPERATION_POINTWISE_PW_DESCRIPTOR, OPERATION_POINTWISE, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_POINTWISE_XDESC, OPERATION_POINTWISE, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_POINTWISE_BDESC, OPERATION_POINTWISE, BACKEND_DESCRIPTOR, 1, false),
    RULE(OPERATION_POINTWISE_YDESC, OPERATION_POINTWISE, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_MATMUL_ADESC, OPERATION_MATMUL, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_MATMUL_BDESC, OPERATION_MATMUL, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_MATMUL_CDESC, OPERATION_MATMUL, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_MATMUL_DESC, OPERATION_MATMUL, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_SDPA_FWD_QDESC, OPERATION_SDPA_FWD, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_SDPA_FWD_KDESC, OPERATION_SDPA_FWD, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_SDPA_FWD_VDESC, OPERATION_SDPA_FWD, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_SDPA_FWD_ODESC, OPERATION_SDPA_FWD, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_SDPA_FWD_SCALEDESC, OPERATION_SDPA_FWD, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATIONGRAPH_HANDLE, OPERATIONGRAPH, HANDLE, 1, false),
    RULE(OPERATIONGRAPH_OPS, OPERATIONGRAPH, BACKEND_DESCRIPTOR, MOST_OPS, true),
    RULE(ENGINEHEUR_OPERATION_GRAPH, ENGINEHEUR, BACKEND_DESCRIPTOR, 1, true),
    RULE(ENGINEHEUR_MODE, ENGINEHEUR, HEUR_MODE, 1, true),
    RULE(ENGINEHEUR_DEVICEPROP, ENGINEHEUR, BACKEND_DESCRIPTOR, 1, false),
    RULE(EXECUTION_PLAN_HANDLE, EXECUTION_PLAN, HANDLE, 1, false),
    RULE(EXECUTION_PLAN_ENGINE_CONFIG, EXECUTION_PLAN, BACKEND_DESCRIPTOR, 1, true),
    RULE(VARIANT_PACK_UNIQUE_IDS, VARIANT_PACK, INT64, MOST_TENSORS, true),
    RULE(VARIANT_PACK_DATA_POINTERS, VARIANT_PACK, VOID_PTR, MOST_TENSORS, true),
    RULE(VARIANT_PACK_WORKSPACE, VARIANT_PACK, VOID_PTR, 1, true),
#undef RULE
};
enum { RULES = sizeof rules / sizeof *rules };

static size_t size_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_CHAR: return 1;
    case CUDNN_TYPE_BOOLEAN: return sizeof(bool);
    case CUDNN_TYPE_INT64: return sizeof(int64_t);
    case CUDNN_TYPE_DOUBLE: return sizeof(double);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR: return sizeof(void *);
    default: return 4; /* enumerations, int32, float */
    }
}

/* --- descriptors --- */

const void *attribute_of(const struct descriptor *d, cudnnBackendAttributeName_t name, int64_t *count)
{
    for (int i = 0; i < d->n_attributes; i++)
        if (d->attribute[i].name == name) {
            if (count)
                *count = d->attribute[i].count;
            return d->attribute[i].values;
        }
    return NULL;
}

struct descriptor *part_of(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
    struct descriptor *const *p = attribute_of(d, name, NULL);
    return p ? *p : NULL;
}

static const struct rule *rule_of(cudnnBackendAttributeName_t name)
{
    for (int i = 0; i < RULES; i++)
        if (rules[i].name == name)
            return &rules[i];
    return NULL;
}

const struct tensor *tensor_of(const struct descriptor *op, cudnnBackendAttributeName_t name)
{
    const struct rule *r = rule_of(name);
    const struct descriptor *d = r && r->type == CUDNN_TYPE_BACKEND_DESCRIPTOR ? part_of(op, name) : NULL;
    return d && d->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR ? &d->tensor : NULL;
}

static void release(struct descriptor *d)
{
    if (!d || --d->references)
        return;
    for (int i = 0; i < d->n_attributes; i++) {
        struct attribute *a = &d->attribute[i];
        for (int64_t k = 0; k < a->count && rule_of(a->name)->type == CUDNN_TYPE_BACKEND_DESCRIPTOR; k++)
            release(((struct descriptor **)a->values)[k]);
        free(a->values);
    }
    free(d->attribute);
    release(d->graph);
    free(d);
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)
{
    MAY_FAIL();
    struct descriptor *d = calloc(1, sizeof *d);
    if (!d)
        return say(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "no memory for a descriptor");
    d->type = type;
    d->references = 1;
    *out = d;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
    release(d);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    struct descriptor *d = descriptor;
    const struct rule *r = rule_of(name);
    MAY_FAIL();
    if (!d || !values)
        return say(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no descriptor, or no values");
    if (d->final)
        return say(CUDNN_STATUS_NOT_INITIALIZED, "the descriptor is finalised already");
    if (!r || r->of != d->type)
        return say(CUDNN_STATUS_BAD_PARAM, "not an attribute of such a descriptor");
    if (r->type != type)
        return say(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "an attribute of another type");
    if (count < 1 || count > r->most || attribute_of(d, name, NULL))
        return say(CUDNN_STATUS_BAD_PARAM, "too many values, none, or set before");
    for (int64_t i = 0; i < count && type == CUDNN_TYPE_BACKEND_DESCRIPTOR; i++) {
        struct descriptor *part = ((struct descriptor *const *)values)[i];
        if (!part || !part->final)
            return say(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a part that is not finalised");
        part->references++;
    }
    struct attribute *more = realloc(d->attribute, (d->n_attributes + 1) * sizeof *more);
    if (more)
        d->attribute = more;
    void *copy = more ? malloc((size_t)count * size_of(type)) : NULL;
    if (!copy)
        return say(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "no memory for an attribute");
    memcpy(copy, values, (size_t)count * size_of(type));
    d->attribute[d->n_attributes++] = (struct attribute){name, count, copy};
    return CUDNN_STATUS_SUCCESS;
}

static const char *finalise_tensor(struct descriptor *d)
{
    struct tensor *t = &d->tensor;
    int64_t n, n_strides;
    const int64_t *dim = attribute_of(d, CUDNN_ATTR_TENSOR_DIMENSIONS, &n),
                  *stride = attribute_of(d, CUDNN_ATTR_TENSOR_STRIDES, &n_strides);
    const bool *is_virtual = attribute_of(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, NULL),
               *by_value = attribute_of(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, NULL);
    t->type = *(const cudnnDataType_t *)attribute_of(d, CUDNN_ATTR_TENSOR_DATA_TYPE, NULL);
    t->uid = *(const int64_t *)attribute_of(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, NULL);
    t->align = *(const int64_t *)attribute_of(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, NULL);
    t->is_virtual = is_virtual && *is_virtual;
    t->by_value = by_value && *by_value;
    t->n = (int)n;
    if (n != n_strides || n < 3)
        return "as many strides as dimensions, at least three";
    for (int i = 0; i < n; i++) {
        t->dim[i] = dim[i];
        t->stride[i] = stride[i];
        if (dim[i] < 1 || stride[i] < 1)
            return "dimensions and strides of 1 and more";
    }
    if (t->type != CUDNN_DATA_HALF && t->type != CUDNN_DATA_FLOAT)
        return "f16 or f32";
    if (t->align < 1 || t->align > 16 || (t->align & (t->align - 1)))
        return "an alignment of 1 to 16";
    return NULL;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    struct descriptor *d = descriptor;
    const char *wrong = NULL;
    MAY_FAIL();
    if (!d || d->final)
        return say(CUDNN_STATUS_BAD_PARAM, "no descriptor, or finalised before");
    for (int i = 0; i < RULES; i++)
        if (rules[i].of == d->type && rules[i].needed && !attribute_of(d, rules[i].name, NULL)) {
            char text[64];
            snprintf(text, sizeof text, "attribute %d is not set", rules[i].name);
            return say(CUDNN_STATUS_BAD_PARAM, text);
        }
    int64_t n, m;
    switch (d->type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR: wrong = finalise_tensor(d); break;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: wrong = check_graph(d); break;
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR: {
        const char *json = attribute_of(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, &n);
        if (json && !memmem(json, (size_t)n, "\"deviceVer\":", 12))
            wrong = "!json_object.HasMember(deviceVer)";
        break;
    }
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: {
        struct descriptor *graph = part_of(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        if (!attribute_of(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, NULL) &&
            !attribute_of(d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, NULL))
            wrong = "neither a handle nor a device";
        break;
    }
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
        struct descriptor *config = part_of(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
        d->graph = config->graph;
        d->graph->references++;
        d->workspace = config->workspace;
        break;
    }
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
        attribute_of(d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, &n);
        attribute_of(d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, &m);
        wrong = n != m ? "as many addresses as names" : NULL;
        break;
    default: wrong = check_operation(d); break;
    }
    if (wrong)
        return say(CUDNN_STATUS_BAD_PARAM, wrong);
    d->final = true;
    return CUDNN_STATUS_SUCCESS;
}

/* --- the heuristics: one engine, which can do everything --- */

static cudnnStatus_t results(const struct descriptor *h, int64_t room, int64_t *n, void *values)
{
    int32_t mode = *(const int32_t *)attribute_of(h, CUDNN_ATTR_ENGINEHEUR_MODE, NULL);
    *n = mode == CUDNN_HEUR_MODE_A;
    if (room < 1 || !*n)
        return CUDNN_STATUS_SUCCESS;
    struct descriptor *config = *(struct descriptor **)values;
    if (config->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
        return say(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "results are engine configurations");
    config->graph = part_of(h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    config->graph->references++;
    config->workspace = workspace_of(config->graph, NULL, NULL);
    config->final = true;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room, int64_t *n, void *values)
{
    const struct descriptor *d = descriptor;
    MAY_FAIL();
    if (!d || !d->final || !n)
        return say(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "of a descriptor that is not finalised");
    switch (name) {
    case CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION: {
        static const char itself[] = "{\"deviceName\":\"stand-in\",\"totalGlobalMem\":2147483648,\"deviceVer\":860}";
        const char *json = attribute_of(d, name, n);
        if (!json) {
            json = itself;
            *n = sizeof itself - 1;
        }
        if (values)
            memcpy(values, json, (size_t)(room < *n ? room : *n));
        return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: return results(d, room, n, values);
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
        struct descriptor *engine = *(struct descriptor **)values;
        engine->final = true;
        *n = 1;
        return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        *(int64_t *)values = 0;
        *n = 1;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: *n = 0; return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        if (type != CUDNN_TYPE_INT64 || room != 1)
            return say(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "one int64");
        *(int64_t *)values = (int64_t)d->workspace;
        *n = 1;
        return CUDNN_STATUS_SUCCESS;
    default: return say(CUDNN_STATUS_NOT_SUPPORTED, "not an attribute that this one tells");
    }
}

/* --- running --- */

static void run_job(void *job) { compute(job); }

static void release_job(void *argument)
{
    struct job *job = argument;
    release(job->graph);
    free(job);
}

/* Addresses of all tensors that are not virtual, aligned as they were said to be; values are read now. */
static const char *addresses(const struct descriptor *op, struct job *job, int64_t n, const int64_t *uid,
                             void *const *pointer)
{
    for (int i = 0; i < op->n_attributes; i++) {
        const struct tensor *t = tensor_of(op, op->attribute[i].name);
        if (!t || t->is_virtual)
            continue;
        int64_t k = 0, known = 0;
        while (k < n && uid[k] != t->uid)
            k++;
        while (known < job->n && job->uid[known] != t->uid)
            known++;
        if (k == n || !pointer[k])
            return "a tensor without an address";
        if ((uintptr_t)pointer[k] % (uintptr_t)t->align)
            return "an address that is not aligned as it was said to be";
        if (known < job->n)
            continue;
        if (job->n == MOST_TENSORS)
            return "too many tensors";
        job->uid[job->n] = t->uid;
        job->pointer[job->n] = pointer[k];
        if (t->by_value)
            memcpy(&job->pointer[job->n], pointer[k], sizeof(float));
        job->n++;
    }
    return NULL;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack)
{
    const struct descriptor *p = plan, *v = pack;
    int64_t n, n_ops;
    MAY_FAIL();
    if (!handle || !p || !p->final || !v || !v->final || !attribute_of(p, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, NULL))
        return say(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a handle, a plan that was made with one, a pack: finalised");
    const int64_t *uid = attribute_of(v, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, &n);
    void *const *pointer = attribute_of(v, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, NULL);
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return say(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "no memory for a job");
    job->graph = p->graph;
    job->workspace = *(void *const *)attribute_of(v, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, NULL);
    struct descriptor *const *op = attribute_of(p->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, &n_ops);
    const char *wrong = p->workspace && !job->workspace ? "no workspace" : NULL;
    for (int i = 0; i < n_ops && !wrong; i++)
        wrong = addresses(op[i], job, n, uid, pointer);
    if (wrong) {
        free(job);
        return say(CUDNN_STATUS_BAD_PARAM, wrong);
    }
    job->graph->references++;
    launch(handle->stream, run_job, release_job, job);
    return CUDNN_STATUS_SUCCESS;
}

/* --- the rest --- */

size_t cudnnGetVersion(void)
{
    const char *version = getenv("VIDGEN_STANDIN_CUDNN_VERSION");
    return version ? (size_t)atoi(version) : 91900;
}

const char *cudnnGetErrorString(cudnnStatus_t s)
{
    switch (CUDNN_STATUS_CATEGORY((int)s)) {
    case CUDNN_STATUS_SUCCESS: return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_EXECUTION_FAILED: return "CUDNN_STATUS_EXECUTION_FAILED";
    default: return "CUDNN_STATUS_INTERNAL_ERROR";
    }
}

void cudnnGetLastErrorString(char *text, size_t size)
{
    snprintf(text, size, "%s", last_error);
    last_error[0] = 0;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    MAY_FAIL();
    *handle = calloc(1, sizeof **handle);
    return *handle ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    MAY_FAIL();
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}
