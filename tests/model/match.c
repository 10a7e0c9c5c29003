/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What exporters write out is found again: each pattern becomes the ops that it should, and gives what its nodes gave
 * one by one; what only looks like one stays as it is.  The forms are those of torch's exporters, at opset 18 (dynamo)
 * and 17, and of models written by hand.
 *
 * Results differ by the rounding of the steps that are gone: 2e-5 for values about 1. */
#include "kit.h"
#include "model/fuse.h"
#include "model/onnx.h"
#include "model/plan_internal.h"
#include "model/run.h"
#include "onnx_write.h"

enum { C = 8, H = 6, W = 10, L = H * W, GIVEN = 8 };

static struct vgk_device *cpu;
static struct ow *file;
static bool indices_given; /* indices are inputs, so that nothing is known of them */
static struct vgk_tensor given[GIVEN];
static int n_given;

/* --- a file, line by line --- */

/* A node; its attributes: "axis=1 to=10". */
static void node(const char *type, const char *in, const char *out, const char *attributes)
{
    struct pb *n = ow_node(type, out, in, out);
    for (const char *a = attributes; a && *a; a += strcspn(a, " "), a += *a == ' ') {
        char name[32];
        int64_t v[8];
        int length = (int)strcspn(a, "="), k = 0;
        snprintf(name, sizeof name, "%.*s", length, a);
        char *end = (char *)a + length;
        do
            v[k++] = strtoll(end + 1, &end, 10);
        while (*end == ',');
        if (!strcmp(name, "perm") || !strcmp(name, "pads") || !strcmp(name, "axes"))
            ow_ints(n, name, (size_t)k, v);
        else
            ow_int(n, name, v[0]);
    }
    ow_add(file, n);
}

static void number(const char *name, double x) { ow_floats_tensor(file, name, 0, NULL, &(float){(float)x}); }

static void numbers(const char *name, int rank, const int64_t *dim, double low, double high)
{
    size_t n = ow_count(rank, dim);
    float *v = malloc(n * sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = (float)kit_real(low, high);
    ow_floats_tensor(file, name, rank, dim, v);
    free(v);
}

static void ints(const char *name, int n, const int64_t *v) { ow_ints_tensor(file, name, 1, (int64_t[]){n}, v); }
#define INTS(name, ...) ints(name, (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]){__VA_ARGS__})

/* Indices: a constant, or an input of the same values. */
static void indices(const char *name, int rank, const int64_t *dim, const int64_t *v)
{
    if (!indices_given) {
        ow_ints_tensor(file, name, rank, dim, v);
        return;
    }
    char text[64] = "";
    for (int i = 0; i < rank; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i ? "," : "", (int)dim[i]);
    ow_input(file, name, 7, text);
    struct vgk_tensor t = vgk_tensor_make(VGK_I64, rank, dim, VGK_ROW_MAJOR);
    t.data = malloc(ow_count(rank, dim) * sizeof *v);
    memcpy(t.data, v, ow_count(rank, dim) * sizeof *v);
    given[n_given++] = t;
}

/* --- running it --- */

struct result {
    char ops[256]; /* kinds, views left out */
    int rank;
    int64_t dim[VGK_MAX_RANK], count;
    float *y;
    struct vgk_error err;
};

static bool make(void (*build)(void), const float *x, bool fuse, struct result *r)
{
    size_t size;
    struct vg_graph *g = NULL;
    struct vg_net *net = NULL;
    struct vg_program *program = NULL;
    struct vg_run *run = NULL;
    struct vg_program_request request = {.output = -1};
    struct vg_input_size sizes[GIVEN] = {{4, {1, C, H, W}}};
    memset(r, 0, sizeof *r);
    kit_seed(5);
    n_given = 1;
    file = ow_new(18);
    ow_input(file, "x", 1, "1,8,h,w");
    build();
    ow_output(file, "y", 1, NULL);
    uint8_t *data = ow_finish(file, &size);
    enum vgk_status s = vg_onnx_parse(data, size, &g, &r->err);
    free(data);
    given[0] = vgk_tensor_make(VGK_F32, 4, sizes[0].dim, VGK_ROW_MAJOR);
    given[0].data = (void *)x;
    for (int i = 1; i < n_given; i++) {
        sizes[i].rank = given[i].rank;
        memcpy(sizes[i].dim, given[i].dim, sizeof given[i].dim);
    }
    struct vg_binding binding = {.sizes = sizes, .axis = {3, 2}, .cpu = cpu};
    if (!s)
        s = vg_net_bind(g, &binding, &net, &r->err);
    if (!s && fuse)
        s = vg_net_fuse(net);
    for (int i = 0; !s && i < net->n_ops; i++)
        if (!net->ops[i].view && !net->ops[i].dead)
            snprintf(r->ops + strlen(r->ops), sizeof r->ops - strlen(r->ops), "%s%s", *r->ops ? " " : "",
                     vgk_kind_name(net->ops[i].op.kind));
    if (!s && (s = vg_program_make(net, &vgk_cpu, cpu, &request, &program, &r->err)))
        vg_net_free(&net);
    struct vg_model model = {.summary.name = "test", .frame_input = -1};
    struct vg_plan plan = {.model = &model, .backend = &vgk_cpu, .device = cpu, .program = program};
    if (!s) {
        plan.info.arena_bytes = vg_plan_arrange(&plan);
        s = vg_run_open(&plan, &run, &r->err);
    }
    if (!s) {
        struct vgk_tensor y = vgk_tensor_make(VGK_F32, program->outputs[0].t.rank, program->outputs[0].t.dim,
                                              VGK_ROW_MAJOR);
        r->count = vgk_tensor_count(&y);
        y.data = r->y = calloc((size_t)r->count + 1, sizeof *r->y);
        s = vg_run_tensors(run, given, n_given, &y, 1, &r->err);
    }
    for (int i = 1; i < n_given; i++)
        free(given[i].data);
    vg_run_close(&run);
    vg_program_free(&program);
    vg_graph_free(&g);
    return !s;
}

static void compare(const char *name, const struct result *a, const struct result *b, double tolerance)
{
    double worst = 0, largest = 0;
    expectf(a->count == b->count, "%s: %d values, %d", name, (int)a->count, (int)b->count);
    for (int64_t i = 0; i < a->count && i < b->count; i++) {
        double d = fabs((double)a->y[i] - (double)b->y[i]);
        worst = d <= worst ? worst : d; /* NaN counts */
        largest = fmax(largest, fabs((double)b->y[i]));
    }
    expectf(worst <= tolerance, "%s: off by %g", name, worst);
    expectf(largest > 1e-3, "%s: nothing but zeros", name); /* a test of nothing */
}

/* ops: what is left when fused, "" = whatever. */
static void check_within(const char *name, void (*build)(void), const char *ops, double tolerance)
{
    static float x[C * L];
    struct result fused, plain;
    kit_seed(3);
    for (int i = 0; i < C * L; i++)
        x[i] = (float)kit_real(-2, 2);
    indices_given = false;
    bool ok = make(build, x, true, &fused);
    indices_given = true;
    ok = ok && make(build, x, false, &plain);
    expectf(ok, "%s: %s%s", name, fused.err.text, ok ? "" : plain.err.text);
    if (ok) {
        expectf(!strcmp(fused.ops, ops), "%s: [%s], expected [%s]; before [%s]", name, fused.ops, ops, plain.ops);
        compare(name, &fused, &plain, tolerance);
    }
    free(fused.y);
    if (ok)
        free(plain.y);
}
#define CHECK(f, ops) check_within(#f, f, ops, 2e-5)

/* --- activations --- */

static void gelu(const char *x, double divisor, double half, bool product_first)
{
    number("d", divisor);
    number("h", half);
    number("one", 1);
    char in[32];
    snprintf(in, sizeof in, "%s,d", x);
    node("Div", in, "u", NULL);
    node("Erf", "u", "e", NULL);
    node("Add", "e,one", "a", NULL);
    if (product_first) {
        node("Mul", "x,a", "p", NULL);
        node("Mul", "h,p", "y", NULL);
    } else {
        node("Mul", "h,x", "p", NULL);
        node("Mul", "p,a", "y", NULL);
    }
}
static void gelu_erf(void) { gelu("x", 1.41421354, 0.5, true); }
static void gelu_erf_2(void) { gelu("x", 1.41421354, 0.5, false); }
static void not_gelu_divisor(void) { gelu("x", 1.5, 0.5, true); }
static void not_gelu_half(void) { gelu("x", 1.41421354, 0.6, true); }
static void not_gelu_other(void)
{
    node("Neg", "x", "z", NULL);
    gelu("z", 1.41421354, 0.5, true);
}
static void tanh_gelu(double cubic)
{
    number("k", cubic);
    number("r", 0.797884583);
    number("three", 3);
    number("one", 1);
    number("h", 0.5);
    node("Pow", "x,three", "c", NULL);
    node("Mul", "k,c", "kc", NULL);
    node("Add", "x,kc", "s", NULL);
    node("Mul", "s,r", "u", NULL);
    node("Tanh", "u", "t", NULL);
    node("Add", "t,one", "a", NULL);
    node("Mul", "x,a", "p", NULL);
    node("Mul", "h,p", "y", NULL);
}
static void gelu_tanh(void) { tanh_gelu(0.0447149985); }
static void not_gelu_cubic(void) { tanh_gelu(0.05); }
static void silu(void)
{
    node("Sigmoid", "x", "s", NULL);
    node("Mul", "x,s", "y", NULL);
}
static void swish(void)
{
    number("a", 1.702);
    node("Mul", "x,a", "u", NULL);
    node("Sigmoid", "u", "s", NULL);
    node("Mul", "x,s", "y", NULL);
}
static void not_silu_scaled(void)
{
    number("a", 3);
    node("Sigmoid", "x", "s", NULL);
    node("Mul", "a,s", "b", NULL);
    node("Mul", "x,b", "y", NULL);
}

static void activations(void)
{
    CHECK(gelu_erf, "unary");
    CHECK(gelu_erf_2, "unary");
    CHECK(gelu_tanh, "unary");
    CHECK(silu, "unary");
    CHECK(swish, "unary");
    CHECK(not_gelu_divisor, "binary unary binary binary binary");
    CHECK(not_gelu_half, "binary unary binary binary binary");
    CHECK(not_gelu_other, "unary binary unary binary binary binary");
    CHECK(not_gelu_cubic, "binary binary binary binary unary binary binary binary");
    CHECK(not_silu_scaled, "unary binary binary");
}

/* --- norms --- */

static void tokens(void)
{
    INTS("flat", 1, C, -1);
    node("Reshape", "x,flat", "x3", NULL);
    node("Transpose", "x3", "t", "perm=0,2,1");
}

enum { MEAN = 1, RECIPROCAL = 2, ONE_DIV = 4, SQUARE = 8, TWO_AXES = 16, NO_EPSILON = 32 };

/* x / sqrt(mean(x^2) + c) over an axis, with the mean taken off or not. */
static void by_hand(const char *x, int64_t axis, int64_t axis_2, int how)
{
    char in[64];
    const char *d = how & MEAN ? "d" : x;
    INTS("axis", axis);
    INTS("axis2", axis_2);
    number("eps", 1e-5);
    number("two", 2);
    number("one", 1);
    if (how & MEAN) {
        snprintf(in, sizeof in, "%s,axis", x);
        node("ReduceMean", in, "m", NULL);
        snprintf(in, sizeof in, "%s,m", x);
        node("Sub", in, "d", NULL);
    }
    snprintf(in, sizeof in, how & SQUARE ? "%s,%s" : "%s,two", d, d);
    node(how & SQUARE ? "Mul" : "Pow", in, "q", NULL);
    node("ReduceMean", "q,axis2", "v", NULL);
    node("Add", how & NO_EPSILON ? "v,v" : "v,eps", "ve", NULL);
    node("Sqrt", "ve", "s", NULL);
    if (how & RECIPROCAL)
        node("Reciprocal", "s", "r", NULL);
    if (how & ONE_DIV)
        node("Div", "one,s", "r", NULL);
    snprintf(in, sizeof in, how & (RECIPROCAL | ONE_DIV) ? "%s,r" : "%s,s", d);
    node(how & (RECIPROCAL | ONE_DIV) ? "Mul" : "Div", in, "n", NULL);
}

static void gains(const char *n, int rank, const int64_t *dim, bool bias)
{
    char in[32];
    numbers("gamma", rank, dim, 0.5, 1.5);
    snprintf(in, sizeof in, "%s,gamma", n);
    node("Mul", in, bias ? "ng" : "y", NULL);
    if (!bias)
        return;
    numbers("beta", rank, dim, -1, 1);
    node("Add", "ng,beta", "y", NULL);
}
#define GAINS(bias, ...) gains("n", (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]){__VA_ARGS__}, bias)

static void layer_norm(void)
{
    tokens();
    by_hand("t", -1, -1, MEAN);
    GAINS(true, C);
}
static void layer_norm_no_gain(void)
{
    tokens();
    by_hand("t", -1, -1, MEAN | SQUARE | RECIPROCAL);
    node("Identity", "n", "y", NULL);
}
static void layer_norm_2d(void) /* of each pixel's channels */
{
    by_hand("x", 1, 1, MEAN);
    GAINS(true, C, 1, 1);
}
static void rms_norm(void)
{
    tokens();
    by_hand("t", -1, -1, RECIPROCAL);
    GAINS(false, C);
}
static void rms_norm_div(void)
{
    tokens();
    by_hand("t", -1, -1, SQUARE);
    GAINS(false, C);
}
static void rms_norm_one_div(void)
{
    tokens();
    by_hand("t", -1, -1, ONE_DIV);
    GAINS(false, 1, 1, C);
}
static void rms_norm_channels(void) /* torch's normalize, times the root of C */
{
    INTS("axis", 1);
    number("least", 1e-12);
    number("root", sqrt(C));
    node("ReduceL2", "x,axis", "l", NULL);
    node("Clip", "l,least", "c", NULL);
    INTS("shape", 1, C, H, W);
    node("Expand", "c,shape", "e", NULL);
    node("Div", "x,e", "u", NULL);
    node("Mul", "u,root", "n", NULL);
    GAINS(false, C, 1, 1);
}
static void other_mean(void) /* of another dimension: what is left is an RMS norm of the difference */
{
    tokens();
    by_hand("t", 1, -1, MEAN);
    GAINS(false, C);
}
static void not_norm_epsilon(void) /* no constant */
{
    tokens();
    by_hand("t", -1, -1, NO_EPSILON);
    GAINS(false, C);
}
static void not_norm_used(void) /* somebody else wants the deviation */
{
    tokens();
    by_hand("t", -1, -1, 0);
    node("Add", "n,s", "y", NULL);
}
static void token_gain(void) /* for each token: its channels are the pixels of an instance norm */
{
    tokens();
    by_hand("t", -1, -1, MEAN);
    GAINS(false, L, 1);
}
static void not_norm_gain(void) /* a gain for each row of pixels is none of a norm over channels */
{
    by_hand("x", 1, 1, MEAN);
    GAINS(false, H, 1);
}
static void not_rms_cube(void)
{
    tokens();
    INTS("axis", -1);
    number("eps", 1e-5);
    number("three", 3);
    node("Abs", "t", "a", NULL);
    node("Pow", "a,three", "q", NULL);
    node("ReduceMean", "q,axis", "v", NULL);
    node("Add", "v,eps", "ve", NULL);
    node("Sqrt", "ve", "s", NULL);
    node("Div", "a,s", "y", NULL);
}

static void group(bool twice)
{
    numbers("w", 4, (int64_t[]){C, C, 3, 3}, -0.3, 0.3);
    node("Conv", "x,w", "c", "pads=1,1,1,1");
    INTS("groups", 1, 2, -1);
    INTS("back", 1, C, H, W);
    ow_floats_tensor(file, "ones", 1, (int64_t[]){2}, (float[]){1, 1});
    ow_floats_tensor(file, "zeros", 1, (int64_t[]){2}, (float[]){0, 0});
    node("Reshape", "c,groups", "g", NULL);
    node("InstanceNormalization", "g,ones,zeros", "i", NULL);
    node("Reshape", "i,back", "n", NULL);
    if (twice) {
        node("ReduceMax", "i", "top", NULL);
        node("Add", "n,top", "y", NULL);
    } else {
        GAINS(true, C, 1, 1);
    }
}
static void group_norm(void) { group(false); }
static void not_group_norm(void) { group(true); } /* somebody else sees the groups */

static void norms(void)
{
    CHECK(layer_norm, "norm");
    CHECK(layer_norm_no_gain, "norm");
    CHECK(layer_norm_2d, "norm");
    CHECK(rms_norm, "norm");
    CHECK(rms_norm_div, "norm");
    CHECK(rms_norm_one_div, "norm");
    CHECK(rms_norm_channels, "norm");
    CHECK(group_norm, "conv norm");
    CHECK(other_mean, "reduce binary norm");
    CHECK(not_norm_epsilon, "binary reduce binary unary binary binary");
    CHECK(not_norm_used, "binary reduce binary unary binary binary");
    CHECK(token_gain, "norm");
    CHECK(not_norm_gain, "norm binary");
    CHECK(not_rms_cube, "unary binary reduce binary unary binary");
    CHECK(not_group_norm, "conv copy norm reduce binary");
}

/* --- attention --- */

enum { HEADS = 2, SCALE_BEFORE = 1, SCALE_BETWEEN = 2, MASK_FLOAT = 4, MASK_BOOL = 8, NAN_ROWS = 16, CAUSAL = 32,
       OTHER_AXIS = 64, SCORES_USED = 128, LOW_MASK = 256 };

static void attention_of(int how)
{
    tokens();
    INTS("split", 1, L, HEADS, C / HEADS);
    const char *names[] = {"q", "k", "v"};
    for (int i = 0; i < 3; i++) {
        char in[32], a[8], b[8];
        numbers(names[i], 2, (int64_t[]){C, C}, -0.5, 0.5);
        snprintf(in, sizeof in, "t,%s", names[i]);
        snprintf(a, sizeof a, "%sm", names[i]);
        node("MatMul", in, a, NULL);
        snprintf(in, sizeof in, "%s,split", a);
        snprintf(b, sizeof b, "%sr", names[i]);
        node("Reshape", in, b, NULL);
        snprintf(a, sizeof a, "%sh", names[i]);
        node("Transpose", b, a, "perm=0,2,1,3");
    }
    node("Transpose", "kh", "kt", "perm=0,1,3,2");
    number("scale", how & SCALE_BEFORE ? pow(C / HEADS, -0.25) : pow(C / HEADS, -0.5));
    if (how & SCALE_BEFORE) {
        node("Mul", "qh,scale", "qs", NULL);
        node("Mul", "kt,scale", "ks", NULL);
    }
    node("MatMul", how & SCALE_BEFORE ? "qs,ks" : "qh,kt", "s0", NULL);
    const char *s = "s0";
    if (how & SCALE_BETWEEN) {
        node("Mul", "s0,scale", "s1", NULL);
        s = "s1";
    }
    if (how & (MASK_FLOAT | MASK_BOOL | CAUSAL)) {
        static float mask[L * L];
        static uint8_t seen[L * L];
        for (int i = 0; i < L; i++)
            for (int j = 0; j < L; j++) {
                bool hidden = how & CAUSAL ? j > i : (i * 7 + j * 3) % 5 == 0 || i == 4;
                seen[i * L + j] = !hidden;
                mask[i * L + j] = how & (CAUSAL | NAN_ROWS) ? (hidden ? how & LOW_MASK ? -3.4028235e38f : -INFINITY : 0)
                                                            : (float)(i - j) * 0.05f;
            }
        char in[32];
        if (how & MASK_BOOL) {
            number("never", how & LOW_MASK ? -1e9 : -INFINITY);
            ow_initializer(file, ow_raw("mask", 9, 2, (int64_t[]){L, L}, seen, sizeof seen));
            snprintf(in, sizeof in, "mask,%s,never", s);
            node("Where", in, "s2", NULL);
        } else {
            ow_floats_tensor(file, "mask", 2, (int64_t[]){L, L}, mask);
            snprintf(in, sizeof in, "%s,mask", s);
            node("Add", in, "s2", NULL);
        }
        s = "s2";
    }
    node("Softmax", s, "p", how & OTHER_AXIS ? "axis=2" : "axis=-1");
    if (how & NAN_ROWS) {
        number("zero", 0);
        node("IsNaN", "p", "nan", NULL);
        node("Where", "nan,zero,p", "pz", NULL);
    }
    node("MatMul", how & NAN_ROWS ? "pz,vh" : "p,vh", "o", NULL);
    node("Transpose", "o", "ot", "perm=0,2,1,3");
    INTS("joined", 1, L, C);
    node("Reshape", "ot,joined", how & SCORES_USED ? "oj" : "y", NULL);
    if (how & SCORES_USED) {
        node("ReduceMax", "p", "top", NULL);
        node("Add", "oj,top", "y", NULL);
    }
}
static void sdpa(void) { attention_of(0); }
static void sdpa_scale_before(void) { attention_of(SCALE_BEFORE); }
static void sdpa_scale_between(void) { attention_of(SCALE_BETWEEN); }
static void sdpa_mask(void) { attention_of(SCALE_BEFORE | MASK_FLOAT); }
static void sdpa_where(void) { attention_of(SCALE_BETWEEN | MASK_BOOL | NAN_ROWS); }
static void sdpa_nan_rows(void) { attention_of(SCALE_BEFORE | MASK_FLOAT | NAN_ROWS); }
static void sdpa_causal(void) { attention_of(SCALE_BEFORE | CAUSAL); }
static void sdpa_causal_low(void) { attention_of(SCALE_BEFORE | CAUSAL | LOW_MASK); }
static void not_sdpa_axis(void) { attention_of(SCALE_BEFORE | OTHER_AXIS); }
static void not_sdpa_used(void) { attention_of(SCALE_BEFORE | SCORES_USED); }
static void not_sdpa_low(void) { attention_of(SCALE_BETWEEN | MASK_BOOL | LOW_MASK); } /* -1e9 leaves whole rows something */

/* What comes out of the pattern has a mask or is causal, as it should. */
static void attention(void)
{
    CHECK(sdpa, "matmul matmul matmul attention");
    CHECK(sdpa_scale_before, "matmul matmul matmul attention");
    CHECK(sdpa_scale_between, "matmul matmul matmul attention");
    CHECK(sdpa_mask, "matmul matmul matmul attention");
    CHECK(sdpa_where, "matmul matmul matmul attention");
    CHECK(sdpa_nan_rows, "matmul matmul matmul attention");
    CHECK(sdpa_causal, "matmul matmul matmul attention");
    CHECK(sdpa_causal_low, "matmul matmul matmul attention");
    CHECK(not_sdpa_axis, "matmul matmul matmul binary binary matmul softmax matmul copy");
    CHECK(not_sdpa_used, "matmul matmul matmul binary binary matmul softmax matmul copy reduce binary");
    CHECK(not_sdpa_low, "matmul matmul matmul matmul where softmax matmul copy");
}

/* --- products of matrices --- */

static void linear(void)
{
    tokens();
    numbers("w", 2, (int64_t[]){C, 5}, -1, 1);
    numbers("b", 1, (int64_t[]){5}, -1, 1);
    number("half", 0.5);
    node("MatMul", "t,w", "p", NULL);
    node("Mul", "p,half", "q", NULL);
    node("Add", "b,q", "y", NULL);
}
static void not_linear(void) /* a bias for each row */
{
    tokens();
    numbers("w", 2, (int64_t[]){C, 5}, -1, 1);
    numbers("b", 2, (int64_t[]){L, 1}, -1, 1);
    node("MatMul", "t,w", "p", NULL);
    node("Add", "p,b", "y", NULL);
}

/* --- moving --- */

static void unshuffle(void)
{
    numbers("w", 4, (int64_t[]){4, C, 1, 1}, -1, 1);
    node("Conv", "x,w", "c", NULL);
    INTS("cut", 1, 4, H / 2, 2, W / 2, 2);
    INTS("join", 1, 16, H / 2, W / 2);
    node("Reshape", "c,cut", "a", NULL);
    node("Transpose", "a", "b", "perm=0,1,3,5,2,4");
    node("Reshape", "b,join", "d", NULL);
    numbers("w2", 4, (int64_t[]){3, 16, 1, 1}, -1, 1);
    node("Conv", "d,w2", "y", NULL);
}
static void unpatchify(void)
{
    tokens();
    INTS("cut", 1, H, W, 2, 2, 2);
    INTS("join", 1, 2, 2 * H, 2 * W);
    node("Reshape", "t,cut", "a", NULL);
    node("Transpose", "a", "b", "perm=0,3,1,4,2,5");
    node("Reshape", "b,join", "d", NULL);
    numbers("w2", 4, (int64_t[]){3, 2, 1, 1}, -1, 1);
    node("Conv", "d,w2", "y", NULL);
}
static void casts(void) /* half and full are one (tests/model/widen.c) */
{
    node("Cast", "x", "h", "to=10");
    node("Cast", "h", "f", "to=1");
    node("Relu", "f", "y", NULL);
}
static void not_casts(void) /* double to full loses digits */
{
    node("Cast", "x", "d", "to=11");
    node("Cast", "d", "f", "to=1");
    node("Cast", "f", "e", "to=11");
    node("Cast", "e", "y", "to=1");
}
static void pairs(void)
{
    INTS("split", 1, L, HEADS, C / HEADS);
    tokens();
    node("Reshape", "t,split", "h0", NULL);
    node("Transpose", "h0", "h", "perm=0,2,1,3");
    numbers("cos", 2, (int64_t[]){L, C / HEADS / 2}, -1, 1);
    numbers("sin", 2, (int64_t[]){L, C / HEADS / 2}, -1, 1);
    INTS("zero", 0);
    INTS("first", 1);
    INTS("last", -1);
    INTS("end", 1 << 30);
    INTS("step", 2);
    node("Slice", "h,zero,end,last,step", "p", NULL);
    node("Slice", "h,first,end,last,step", "q", NULL);
    node("Mul", "p,cos", "pc", NULL);
    node("Mul", "q,sin", "qs", NULL);
    node("Sub", "pc,qs", "a", NULL);
    node("Mul", "p,sin", "ps", NULL);
    node("Mul", "q,cos", "qc", NULL);
    node("Add", "ps,qc", "b", NULL);
}
static void rope_concat(void)
{
    pairs();
    node("Unsqueeze", "a,last", "a5", NULL);
    node("Unsqueeze", "b,last", "b5", NULL);
    node("Concat", "a5,b5", "r", "axis=-1");
    INTS("shape", 1, HEADS, L, C / HEADS);
    node("Reshape", "r,shape", "y", NULL);
}
static void rope_scatter_from(int64_t begin)
{
    pairs();
    int64_t even[2] = {0, 2}, odd[2] = {begin, begin == 1 ? 3 : 2};
    numbers("empty", 4, (int64_t[]){C / HEADS, HEADS, L, 1}, -1, 1);
    indices("ie", 2, (int64_t[]){2, 1}, even);
    indices("io", 2, (int64_t[]){2, 1}, odd);
    node("Transpose", "a", "at", "perm=3,1,2,0");
    node("Transpose", "b", "bt", "perm=3,1,2,0");
    node("ScatterND", "empty,ie,at", "s1", NULL);
    node("ScatterND", "s1,io,bt", "s2", NULL);
    node("Transpose", "s2", "y", "perm=3,1,2,0");
}
static void rope_scatter(void) { rope_scatter_from(1); }
static void not_rope_scatter(void) { rope_scatter_from(-2); } /* negative and positive indices: -2, 2 */
static void picked_rows(int kind)
{
    static int64_t v[2 * H * 2 * W * 2];
    int64_t *p = v;
    for (int i = 0; i < 2 * H; i++)
        for (int j = 0; j < 2 * W; j++) {
            *p++ = kind == 0 || kind == 1 ? i / 2 : (i * i) % H;
            *p++ = kind == 1 ? (j + 1) / 2 % W : j / 2;
        }
    node("Transpose", "x", "a", "perm=2,3,0,1");
    indices("i", 3, (int64_t[]){2 * H, 2 * W, 2}, v);
    node("GatherND", "a,i", "b", NULL);
    node("Transpose", "b", "y", "perm=2,3,0,1");
}
static void nearest_exact(void) { picked_rows(0); }
static void not_nearest_shifted(void) { picked_rows(1); }
static void not_nearest(void) { picked_rows(2); }
static void windows(void)
{
    int64_t v[3 * 2] = {0, 1, 2, 3, 4, 5};
    indices("i", 2, (int64_t[]){3, 2}, v);
    node("Gather", "x,i", "y", "axis=2");
}
static void sliding(void)
{
    int64_t v[4 * 3] = {0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5};
    indices("i", 2, (int64_t[]){4, 3}, v);
    node("Gather", "x,i", "g", "axis=2");
    node("Relu", "g", "y", NULL);
}
static void not_windows(void)
{
    int64_t v[3 * 2] = {0, 1, 2, 3, 4, 4};
    indices("i", 2, (int64_t[]){3, 2}, v);
    node("Gather", "x,i", "y", "axis=2");
}
static void joined(void) /* a Concat of what is made for it alone */
{
    node("Relu", "x", "a", NULL);
    node("Neg", "x", "b", NULL);
    node("Concat", "a,b", "y", "axis=1");
}
static void not_joined(void)
{
    node("Relu", "x", "a", NULL);
    node("Concat", "a,a", "y", "axis=1");
}

/* To 8 bits and back. */
static void rounded(const char *out, const char *first, const char *second)
{
    char text[64], between[16];
    snprintf(between, sizeof between, "q%s", out);
    snprintf(text, sizeof text, "x,%s", first);
    node("QuantizeLinear", text, between, NULL);
    snprintf(text, sizeof text, "%s,%s", between, second);
    node("DequantizeLinear", text, out, NULL);
}
static void steps(void)
{
    number("s", 0.03);
    number("t", 0.05);
    ow_initializer(file, ow_raw("z", 2, 0, NULL, &(uint8_t){100}, 1));
    ow_initializer(file, ow_raw("other", 2, 0, NULL, &(uint8_t){99}, 1));
}
static void quanta(void) /* each reader has a pair of its own */
{
    steps();
    rounded("a", "s,z", "s,z");
    rounded("b", "s,z", "s,z");
    node("Exp", "a", "e", NULL);
    node("Add", "e,b", "y", NULL);
}
static void other_quanta(void)
{
    steps();
    rounded("a", "s,z", "s,z");
    rounded("b", "t,z", "t,z");
    node("Add", "a,b", "y", NULL);
}
static void not_quanta(void) /* by other numbers on the way back */
{
    steps();
    rounded("a", "s,z", "t,z");
    rounded("b", "s,z", "s,other");
    node("Add", "a,b", "y", NULL);
}

static void moving(void)
{
    check_within("quanta", quanta, "unary unary binary", 0);
    check_within("other_quanta", other_quanta, "unary unary binary", 0);
    check_within("not_quanta", not_quanta, "quantize dequantize quantize dequantize binary", 0);

    CHECK(linear, "matmul");
    CHECK(not_linear, "matmul binary");
    CHECK(unshuffle, "conv copy conv");
    CHECK(unpatchify, "copy conv");
    check_within("casts", casts, "unary", 0);
    check_within("not_casts", not_casts, "copy copy copy copy", 0);
    CHECK(rope_concat, "binary binary binary binary binary binary");
    CHECK(rope_scatter, "binary binary binary binary binary binary copy copy copy copy");
    CHECK(not_rope_scatter, "binary binary binary binary binary binary copy copy scatter");
    check_within("nearest_exact", nearest_exact, "resize", 0);
    check_within("not_nearest_shifted", not_nearest_shifted, "take", 0);
    check_within("not_nearest", not_nearest, "take", 0);
    check_within("windows", windows, "", 0);
    check_within("sliding", sliding, "unary", 0);
    check_within("not_windows", not_windows, "gather", 0);
    check_within("joined", joined, "unary unary", 0);
    check_within("not_joined", not_joined, "unary copy copy", 0);
}

/* --- branches --- */

static void chosen(bool at_run_time)
{
    struct pb *n = ow_node("If", "if", "c", "y");
    const char *types[] = {"Relu", "Neg"}, *names[] = {"then_branch", "else_branch"};
    INTS("zero", 0);
    node("Shape", "x", "shape", NULL);
    INTS("two", 2);
    node("Gather", "shape,two", "rows", NULL); /* [6] */
    INTS("five", 5);
    if (at_run_time) {
        node("ReduceMax", "x", "top", "keepdims=0");
        number("limit", 0);
        node("Greater", "top,limit", "c", NULL);
    } else {
        node("Greater", "rows,five", "c", NULL);
    }
    for (int i = 0; i < 2; i++) {
        struct pb *g = pb_new(), *v = pb_new(), *a = ow_attribute(names[i], 5);
        pb_message(g, 1, ow_node(types[i], "", "x", "z"));
        pb_text(v, 1, "z");
        pb_message(g, 12, v);
        pb_message(a, 6, g);
        pb_message(n, 5, a);
    }
    ow_add(file, n);
}
static void known(void) { chosen(false); }
static void unknown(void) { chosen(true); }

static void branches(void)
{
    static float x[C * L];
    struct result r;
    for (int i = 0; i < C * L; i++)
        x[i] = (float)(i % 7 - 3);
    bool ok = make(known, x, true, &r);
    expectf(ok && !strcmp(r.ops, "unary"), "%s [%s]", r.err.text, r.ops);
    for (int64_t i = 0; ok && i < r.count; i++)
        if (r.y[i] != fmaxf(x[i], 0)) {
            expectf(0, "element %d: %g", (int)i, (double)r.y[i]);
            break;
        }
    free(r.y);
    ok = make(unknown, x, true, &r);
    expectf(!ok && strstr(r.err.text, "node 'if' (If") && strstr(r.err.text, "its condition (c) depends on the frame's"),
            "%s", r.err.text);
    free(r.y);
}

/* A few bytes in the file, billions of elements when computed. */
static void large(void)
{
    INTS("shape", 1 << 16, 1 << 16);
    number("one", 1);
    node("ConstantOfShape", "shape", "zeros", NULL);
    node("Add", "zeros,one", "ones", NULL);
    INTS("axes", 0, 1);
    node("ReduceSum", "ones,axes", "sum", NULL);
    node("Add", "x,sum", "y", NULL);
}
static void limits(void)
{
    static float x[C * L];
    struct result r;
    expect(!make(large, x, true, &r));
    expectf(strstr(r.err.text, "node 'ones' (Add") && strstr(r.err.text, "VG_BIND_MAX_COMPUTED"), "%s", r.err.text);
    free(r.y);
}

int main(void)
{
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1}, &cpu, NULL);
    run(activations);
    run(norms);
    run(attention);
    run(moving);
    run(branches);
    run(limits);
    vgk_cpu.close(&cpu);
    return kit_done();
}
