/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One recurrent net written in f32, f16 and bf16, its numbers exact in all three: bound, they are the same ops on f32, with
 * weights as the file has them, and give the same bits.  What would overflow or be rounded in the file's type is not. */
#include "kit.h"
#include "nets.h"
#include "onnx_write.h"

enum { F32 = 1, F16 = 10, BF16 = 16, WIDTH = 40, HEIGHT = 24, C = 8 };

static struct ow *file;
static int type; /* of the file's floats */

/* Multiples of 1/64 up to 1 are numbers of all three types, and so are powers of two. */
static void numbers(const char *name, int rank, const int64_t *dim, const float *given)
{
    size_t n = ow_count(rank, dim), each = type == F32 ? 4 : 2;
    char *data = malloc(n * each);
    for (size_t i = 0; i < n; i++) {
        float x = given ? given[i] : (float)kit_int(-16, 16) / 64;
        _Float16 half = (_Float16)x;
        uint32_t bits;
        memcpy(&bits, &x, 4);
        uint16_t upper = (uint16_t)(bits >> 16);
        memcpy(data + i * each, type == F32 ? (void *)&x : type == F16 ? (void *)&half : (void *)&upper, each);
    }
    ow_initializer(file, ow_raw(name, type, rank, dim, data, n * each));
    free(data);
}
#define NUMBERS(name, ...) numbers(name, (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]){__VA_ARGS__}, NULL)

static void number(const char *name, float x) { numbers(name, 0, NULL, &x); }

static void node(const char *op, const char *in, const char *out) { ow_add(file, ow_node(op, out, in, out)); }

static void cast(const char *in, const char *out, int to)
{
    struct pb *n = ow_node("Cast", out, in, out);
    ow_int(n, "to", to);
    ow_add(file, n);
}

static void joined(const char *in, const char *out)
{
    struct pb *n = ow_node("Concat", out, in, out);
    ow_int(n, "axis", 1);
    ow_add(file, n);
}

static void conv(const char *in, const char *weights, const char *out)
{
    char ins[64];
    snprintf(ins, sizeof ins, "%s,%s", in, weights);
    struct pb *n = ow_node("Conv", out, ins, out);
    ow_ints(n, "pads", 4, (int64_t[]){1, 1, 1, 1});
    ow_add(file, n);
}

static struct vg_model *load(int of_type)
{
    struct vgk_error err = {{0}};
    type = of_type;
    kit_seed(11);
    file = ow_new(18);
    ow_input(file, "x", type, "1,3,h,w");
    ow_input(file, "h_in", type, "1,8,h,w");
    ow_property(file, "vidgen.state", "h_in:h_out");
    NUMBERS("w1", C, 3, 3, 3);
    NUMBERS("w2", C, 2 * C + 1, 3, 3);
    NUMBERS("w3", 3, C, 3, 3);
    NUMBERS("slope", C, 1, 1);
    NUMBERS("gain", C);
    NUMBERS("shift", C);
    NUMBERS("table", 1, 2 * C, 1, 1);
    conv("x", "w1", "a");
    node("PRelu", "a,slope", "b");
    node("InstanceNormalization", "b,gain,shift", "c"); /* parameters of a norm */
    number("low", type == BF16 ? -65536 : -65504);      /* bounds that nothing reaches */
    number("high", type == BF16 ? 65536 : 65504);
    node("Clip", "c,low,high", "d");
    number("large", 1024);
    node("Mul", "d,large", "e1"); /* beyond f16 between the two, and back */
    node("Mul", "e1,large", "e2");
    node("Div", "e2,large", "e3");
    node("Div", "e3,large", "e");
    cast("e", "f", F32); /* these do nothing */
    cast("f", "g", type);
    number("zero", 0);
    number("never", -INFINITY);
    node("Less", "g,zero", "masked");
    node("Where", "masked,never,g", "m");
    struct pb *n = ow_node("Softmax", "s", "m", "s");
    ow_int(n, "axis", 1);
    ow_add(file, n);
    ow_ints_tensor(file, "from", 1, (int64_t[]){1}, (int64_t[]){-1}); /* every other one of the table, from its end */
    ow_ints_tensor(file, "to", 1, (int64_t[]){1}, (int64_t[]){INT64_MIN});
    ow_ints_tensor(file, "axis", 1, (int64_t[]){1}, (int64_t[]){1});
    ow_ints_tensor(file, "step", 1, (int64_t[]){1}, (int64_t[]){-2});
    node("Slice", "table,from,to,axis,step", "back");
    node("Add", "s,back", "t");
    joined("t,h_in", "u0");
    n = ow_node("ReduceMean", "mean", "t,axis", "mean"); /* over channels */
    ow_add(file, n);
    joined("u0,mean", "u");
    conv("u", "w2", "v");
    node("Tanh", "v", "h_out");
    conv("h_out", "w3", "p");
    node("Add", "p,x", "y");
    ow_output(file, "y", type, "1,3,h,w");
    ow_output(file, "h_out", type, "1,8,h,w");
    struct vg_model *m = nets_finish(file, &err);
    expectf(m != NULL, "%s", err.text);
    return m;
}

/* Of the ops that are left; weights are seen in the file's type, all else as numbers is f32. */
static void same_ops(const struct vg_net *net, const struct vg_net *single)
{
    expectf(net->n_ops == single->n_ops, "%d ops, %d in f32", net->n_ops, single->n_ops);
    for (int i = 0; i < net->n_ops && i < single->n_ops; i++) {
        const struct vg_net_op *a = &net->ops[i], *b = &single->ops[i];
        expectf(a->op.kind == b->op.kind && a->n_in == b->n_in && a->view == b->view, "op %d: %s, %s in f32", i,
                vgk_kind_name(a->op.kind), vgk_kind_name(b->op.kind));
        for (int k = -1; k < a->n_in && k < b->n_in; k++) {
            const struct vgk_tensor *ta = k < 0 ? &a->out.t : &a->in[k].t, *tb = k < 0 ? &b->out.t : &b->in[k].t;
            bool weights = a->op.kind == VGK_OP_CONV && k == 1;
            expectf(ta->type == (weights && type == F16 ? VGK_F16 : weights && type == BF16 ? VGK_BF16 : tb->type),
                    "%s: operand %d is %s, %s in f32", a->node, k, vgk_type_name(ta->type), vgk_type_name(tb->type));
            expectf(!memcmp(ta->stride, tb->stride, (size_t)ta->rank * sizeof *ta->stride),
                    "%s: operand %d lies otherwise", a->node, k);
        }
    }
}

enum { FRAMES = 3 };

struct result {
    struct nets_planned p;
    struct vg_model *model;
    struct nets_picture out[FRAMES];
    float values[3 * HEIGHT * WIDTH], state[C * HEIGHT * WIDTH];
};

static void play(struct result *r, int of_type, const struct nets_picture *frames, struct vgk_device *cpu)
{
    struct vgk_error err = {{0}};
    r->model = load(of_type);
    struct vg_plan_request request = {.width = WIDTH, .height = HEIGHT};
    expectf(!nets_plan(&r->p, r->model, &vgk_cpu, cpu, request, &err), "%s", err.text);
    expect(r->p.bytes == vg_plan_info(r->p.plan)->arena_bytes);
    for (int i = 0; i < FRAMES; i++) { /* the state goes on */
        r->out[i] = nets_picture(VGK_FRAME_PACKED, WIDTH, HEIGHT, false);
        expectf(!nets_frame(r->p.run, vg_plan_info(r->p.plan)->grid, &frames[i], &r->out[i], &err), "%s", err.text);
    }
    /* Callers give and take f32, whatever the file says. */
    static float x[3 * HEIGHT * WIDTH], h[C * HEIGHT * WIDTH];
    for (int i = 0; i < C * HEIGHT * WIDTH; i++) {
        x[i % (3 * HEIGHT * WIDTH)] = (float)kit_real(0, 1);
        h[i] = (float)kit_real(-1, 1);
    }
    struct vgk_tensor in[] = {vgk_tensor_make(VGK_F32, 4, (int64_t[]){1, 3, HEIGHT, WIDTH}, VGK_ROW_MAJOR),
                              vgk_tensor_make(VGK_F32, 4, (int64_t[]){1, C, HEIGHT, WIDTH}, VGK_ROW_MAJOR)};
    struct vgk_tensor out[] = {in[0], in[1]};
    in[0].data = x, in[1].data = h, out[0].data = r->values, out[1].data = r->state;
    expectf(!vg_run_tensors(r->p.run, in, 2, out, 2, &err), "%s", err.text);
}

static void end(struct result *r)
{
    nets_unplan(&r->p);
    vg_model_unref(&r->model);
    for (int i = 0; i < FRAMES; i++)
        free(r->out[i].data);
}

int main(void)
{
    struct vgk_device *cpu = NULL;
    static struct result single, other;
    struct nets_picture frames[FRAMES];
    for (int i = 0; i < FRAMES; i++)
        frames[i] = nets_picture(VGK_FRAME_PACKED, WIDTH, HEIGHT, true);
    vgk_cpu.open(&(struct vgk_device_options){.threads = 2}, &cpu, NULL);
    play(&single, F32, frames, cpu);
    float largest = 0;
    for (int i = 0; i < 3 * HEIGHT * WIDTH; i++)
        largest = fmaxf(largest, fabsf(single.values[i]));
    expect(largest > 0.5f && largest < 100); /* the test is of something */
    for (int of_type = F16; of_type <= BF16; of_type += BF16 - F16) {
        play(&other, of_type, frames, cpu);
        same_ops(other.p.plan->program->net, single.p.plan->program->net);
        expect(!memcmp(other.values, single.values, sizeof single.values));
        expect(!memcmp(other.state, single.state, sizeof single.state));
        for (int i = 0; i < FRAMES; i++)
            expectf(!nets_difference(&other.out[i], &single.out[i], NULL), "frame %d of type %d", i, of_type);
        expect(other.p.plan->states.bytes == single.p.plan->states.bytes);
        end(&other);
    }
    end(&single);
    for (int i = 0; i < FRAMES; i++)
        free(frames[i].data);
    vgk_cpu.close(&cpu);
    return kit_done();
}
