/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Norms by constants, by a reduced frame, by tiles; what lies beside a model; what the modes' errors are. */

#include <unistd.h>

#include "kit.h"
#include "model/statistics.h"
#include "model/stored.h"
#include "nets.h"

static struct vgk_device *cpu;

/* --- nets and plans --- */

enum { NORMS, MEANS, WRITTEN_OUT, WITH_PARAMETER, KINDS };

/* path: where to leave its file; NULL = nowhere. */
static struct vg_model *make_net(int kind, const char *path)
{
    struct vgk_error err = {{0}};
    struct nets n;
    kit_seed((uint64_t)kind + 11);
    nets_begin(&n, 3);
    int a = nets_conv(&n, 0, (struct nets_conv){.out = 12, .kernel = 5, .pad = NETS_PAD_REFLECT}), b;
    switch (kind) {
    case NORMS: /* behind convolutions with and without bias, behind a sum, with residual and activation */
        a = nets_unary(&n, nets_norm(&n, a, 0), "Relu");
        b = nets_conv(&n, a, (struct nets_conv){.out = 12, .kernel = 3, .no_bias = true});
        a = nets_binary(&n, "Add", a, nets_norm(&n, b, 4));
        a = nets_norm(&n, a, 3);
        break;
    case MEANS: { /* squeeze and excite */
        int s = nets_mean(&n, a);
        s = nets_unary(&n, nets_conv(&n, s, (struct nets_conv){.out = 12, .kernel = 1}), "Sigmoid");
        a = nets_binary(&n, "Mul", a, s);
        break;
    }
    case WRITTEN_OUT: a = nets_adain(&n, a); break;
    case WITH_PARAMETER:
        a = nets_norm(&n, a, 0);
        a = nets_binary(&n, "Mul", a, nets_parameter(&n, "gain", 12));
        a = nets_norm(&n, nets_conv(&n, a, (struct nets_conv){.out = 12, .kernel = 3}), 0);
        break;
    }
    a = nets_unary(&n, nets_conv(&n, a, (struct nets_conv){.out = 3, .kernel = 3}), "Sigmoid");
    struct vg_model *m = path ? nets_save(&n, a, path, &err) : nets_end(&n, a, &err);
    expectf(m, "kind %d: %s", kind, err.text);
    return m;
}

static struct vg_plan_request request(int w, int h, enum vg_norm_mode mode)
{
    return (struct vg_plan_request){.width = w, .height = h, .overlap_x = -1, .overlap_y = -1, .norm_mode = mode};
}

struct off {
    int worst;
    double mean;
};

static struct off compare(const struct nets_picture *a, const struct nets_picture *b)
{
    struct off o = {0, 0};
    for (size_t i = 0; i < a->bytes; i++) {
        int d = abs(a->data[i] - b->data[i]);
        o.worst = d > o.worst ? d : o.worst;
        o.mean += d;
    }
    o.mean /= (double)a->bytes;
    return o;
}

/* A soft picture with noise. */
static void paint(struct nets_picture *p, int frame)
{
    kit_seed((uint64_t)frame * 7 + 3);
    for (int y = 0; y < p->f.height; y++)
        for (int x = 0; x < p->f.width; x++)
            for (int k = 0; k < 3; k++)
                p->data[3 * (y * p->f.width + x) + k] =
                    (uint8_t)(128 + 60 * sin(0.1 * (x + 3 * frame) + k) + 30 * cos(0.07 * y) + kit_int(-9, 9));
}

static int count_ops(const struct vg_program *p, enum vgk_kind kind)
{
    int n = 0;
    for (int i = 0; i < p->net->n_ops; i++)
        n += !p->net->ops[i].dead && p->net->ops[i].op.kind == kind;
    return n;
}

/* --- frozen --- */

/* The first frames are exact, what follows goes by their mean, whatever comes; tiles are the whole, and need no norms. */
static void measured(void)
{
    enum { W = 96, H = 80 };
    for (int kind = 0; kind < KINDS; kind++) {
        struct vg_model *m = make_net(kind, NULL);
        struct vg_plan_request e = request(W, H, VG_NORM_EXACT), f = request(W, H, VG_NORM_FROZEN), t = f;
        struct nets_player exact, frozen, tiles;
        struct nets_picture in = nets_picture(VGK_FRAME_PACKED, W, H, true);
        t.tile_width = 48;
        t.tile_height = 56;
        if (!m || !nets_start(&exact, m, cpu, &e) || !nets_start(&frozen, m, cpu, &f) || !nets_start(&tiles, m, cpu, &t))
            return;
        expectf(tiles.plan->grid.x.n > 1 && vg_plan_info(tiles.plan)->exact && !vg_plan_info(tiles.plan)->global_why,
                "kind %d", kind);
        expect(vg_plan_info(frozen.plan)->norm_mode == VG_NORM_FROZEN && vg_plan_info(frozen.plan)->norm_count > 0);
        for (int i = 0; i < 14; i++) {
            struct vg_run_info info;
            paint(&in, i < 8 ? 0 : i); /* the mean is that of frame 0 */
            nets_play(&exact, &in);
            nets_play(&frozen, &in);
            nets_play(&tiles, &in);
            vg_run_info(frozen.run, &info);
            struct off d = compare(&exact.out, &frozen.out), seam = compare(&frozen.out, &tiles.out);
            expectf(info.frozen == (i >= 8), "frame %d", i);
            expectf(i >= 8 || d.worst == 0, "kind %d, frame %d: %d off", kind, i, d.worst);
            /* Measured frames in tiles have the very statistics, but arithmetic as it is for constants. */
            expectf(seam.worst <= (i < 8), "kind %d, frame %d: tiles %d off", kind, i, seam.worst);
            expectf(i < 9 || d.worst > 0, "kind %d, frame %d is exact, so nothing is frozen", kind, i);
        }
        paint(&in, 0);
        nets_play(&exact, &in);
        nets_play(&frozen, &in);
        expectf(compare(&exact.out, &frozen.out).worst <= 1, "kind %d", kind);
        /* The means' values are constants; norms behind convolutions are gone, one behind a sum is applied. */
        const struct vg_program *p = frozen.plan->program;
        expectf(count_ops(p, VGK_OP_MOMENTS) == 0 && count_ops(p, VGK_OP_REDUCE) == 0 && count_ops(p, VGK_OP_NORM) == 0 &&
                count_ops(p, VGK_OP_NORMALISE) == (kind == NORMS), "kind %d: %d", kind, count_ops(p, VGK_OP_NORMALISE));
        expect(p->levels == 1);
        nets_stop(&exact);
        nets_stop(&frozen);
        nets_stop(&tiles);
        free(in.data);
        vg_model_unref(&m);
    }
}

/* New parameters are measured again; the same ones are not. */
static void parameters(void)
{
    enum { W = 64, H = 48 };
    struct vg_model *m = make_net(WITH_PARAMETER, NULL);
    struct vg_plan_request e = request(W, H, VG_NORM_EXACT), f = request(W, H, VG_NORM_FROZEN);
    struct nets_picture in = nets_picture(VGK_FRAME_PACKED, W, H, true);
    struct nets_player exact, frozen;
    struct vgk_error err;
    float values[12];
    f.norm_frames = 3;
    if (!m || !nets_start(&exact, m, cpu, &e) || !nets_start(&frozen, m, cpu, &f))
        return;
    for (int i = 0; i < 12; i++) {
        struct vg_run_info info;
        for (int k = 0; k < 12; k++)
            values[k] = i < 6 ? 1 : 0.5f + 0.2f * (float)k;
        vg_run_set_parameter(exact.run, 0, values, &err);
        vg_run_set_parameter(frozen.run, 0, values, &err);
        paint(&in, i);
        uint64_t version;
        vg_run_info(exact.run, &info);
        version = info.version;
        nets_play(&exact, &in);
        vg_run_info(exact.run, &info);
        expectf(info.version == version && version == (uint64_t)i + 2, "frame %d: version %d", i, (int)version);
        nets_play(&frozen, &in);
        vg_run_info(frozen.run, &info);
        bool measures = i % 6 < 3;
        int d = compare(&exact.out, &frozen.out).worst;
        expectf(info.frozen == !measures && (measures ? d == 0 : d > 0 && d < 60), "frame %d: %d off", i, d);
    }
    nets_stop(&exact);
    nets_stop(&frozen);
    free(in.data);
    vg_model_unref(&m);
}

/* What is left when norms are constants is named, and the frame is not cut because of it. */
static void stopped(void)
{
    struct vgk_error err = {{0}};
    struct nets n;
    nets_begin(&n, 3);
    int a = nets_norm(&n, nets_conv(&n, 0, (struct nets_conv){.out = 8, .kernel = 3}), 0);
    a = nets_unary(&n, a, "Softmax"); /* along rows of the frame */
    struct vg_model *m = nets_end(&n, nets_conv(&n, a, (struct nets_conv){.out = 3, .kernel = 3}), &err);
    struct vg_plan_request f = request(64, 48, VG_NORM_FROZEN);
    struct vg_plan *p = NULL;
    expectf(m, "%s", err.text);
    if (!m)
        return;
    expectf(vg_plan_make(m, &vgk_cpu, cpu, &f, &p, &err) == VGK_OK, "%s", err.text);
    expect(p && vg_plan_info(p)->global_why && strstr(vg_plan_info(p)->global_why, "Softmax"));
    vg_plan_free(&p);
    f.tile_width = 32;
    expectf(vg_plan_make(m, &vgk_cpu, cpu, &f, &p, &err) == VGK_OK, "%s", err.text);
    expect(p && !vg_plan_info(p)->exact && strstr(vg_plan_info(p)->warning, "Softmax"));
    vg_plan_free(&p);
    vg_model_unref(&m);
}

/* --- thumbnail, tile, auto --- */

/* A frame that is not reduced has its own statistics; a larger one those of a picture that looks alike. */
static void thumbnail(void)
{
    struct vg_model *m = make_net(NORMS, NULL);
    for (int large = 0; m && large < 2; large++) {
        int w = large ? 1280 : 320, h = large ? 96 : 80;
        struct vg_plan_request e = request(w, h, VG_NORM_EXACT), t = request(w, h, VG_NORM_THUMBNAIL);
        struct nets_picture in = nets_picture(VGK_FRAME_PACKED, w, h, true);
        struct nets_player exact, small, tiles;
        if (!nets_start(&exact, m, cpu, &e) || !nets_start(&small, m, cpu, &t))
            return;
        t.tile_width = 200;
        if (!nets_start(&tiles, m, cpu, &t))
            return;
        for (int i = 0; i < 3; i++) {
            for (size_t k = 0; k < in.bytes; k++) /* no noise: reducing would take it away */
                in.data[k] = (uint8_t)(128 + 90 * sin(0.002 * (double)(k % (size_t)(3 * w)) + i + (double)(k % 3)));
            nets_play(&exact, &in);
            nets_play(&small, &in);
            nets_play(&tiles, &in);
            struct off d = compare(&exact.out, &small.out);
            expectf(large ? d.mean < 3 : d.worst <= 1, "%dx%d, frame %d: mean %g, worst %d", w, h, i, d.mean, d.worst);
            expectf(compare(&tiles.out, &small.out).worst == 0, "%dx%d, frame %d in tiles", w, h, i);
        }
        nets_stop(&exact);
        nets_stop(&small);
        nets_stop(&tiles);
        free(in.data);
    }
    vg_model_unref(&m);
}

static void automatic(void)
{
    struct vg_model *m = make_net(NORMS, NULL);
    for (int live = 0; m && live < 2; live++) {
        struct vg_plan_request r = request(64, 48, VG_NORM_AUTO);
        struct vg_plan *p = NULL;
        r.live = live;
        expect(vg_plan_make(m, &vgk_cpu, cpu, &r, &p, NULL) == VGK_OK);
        expect(p && vg_plan_info(p)->norm_mode == (live ? VG_NORM_PREVIOUS : VG_NORM_EXACT));
        vg_plan_free(&p);
    }
    vg_model_unref(&m);
}

/* A budget that whole frames do not fit: mode tile takes tiles, frozen takes tiles that are exact, exact refuses. */
static void budgets(void)
{
    enum { W = 400, H = 64 };
    struct vg_model *m = make_net(NORMS, NULL);
    struct vg_plan_request r = request(W, H, VG_NORM_EXACT);
    struct vgk_error err = {{0}};
    struct vg_plan *p = NULL;
    if (!m)
        return;
    r.max_bytes = 1;
    expect(vg_plan_make(m, &vgk_cpu, cpu, &r, &p, &err) == VGK_ERR_NOMEM);
    char *at = strstr(err.text, "at least ");
    expectf(at, "%s", err.text);
    size_t least = at ? strtoull(at + 9, NULL, 10) : 0;
    r.max_bytes = least - 1;
    expect(vg_plan_make(m, &vgk_cpu, cpu, &r, &p, &err) == VGK_ERR_NOMEM);
    r.norm_mode = VG_NORM_TILE;
    expectf(vg_plan_make(m, &vgk_cpu, cpu, &r, &p, &err) == VGK_OK, "%s", err.text);
    expect(p && vg_plan_info(p)->arena_bytes < least && !vg_plan_info(p)->exact && !vg_plan_info(p)->warning);
    vg_plan_free(&p);
    /* What compares is left out where it does not fit. */
    r.norm_mode = VG_NORM_PREVIOUS;
    r.norm_errors = true;
    r.max_bytes = 0;
    expect(vg_plan_make(m, &vgk_cpu, cpu, &r, &p, &err) == VGK_OK);
    expect(p && vg_plan_info(p)->norm_errors);
    size_t with = p ? vg_plan_info(p)->arena_bytes : 0;
    vg_plan_free(&p);
    r.norm_errors = false;
    expect(vg_plan_make(m, &vgk_cpu, cpu, &r, &p, &err) == VGK_OK);
    expect(p && vg_plan_info(p)->arena_bytes < with);
    vg_plan_free(&p);
    r.norm_errors = true;
    for (size_t most = with; most > with / 4; most = most * 7 / 8) { /* and nothing is taken over the cap */
        r.max_bytes = most;
        if (vg_plan_make(m, &vgk_cpu, cpu, &r, &p, &err) == VGK_OK)
            expectf(vg_plan_info(p)->arena_bytes <= most, "%zu of %zu", vg_plan_info(p)->arena_bytes, most);
        vg_plan_free(&p);
    }
    vg_model_unref(&m);
}

/* --- errors --- */

/* What the run says about its error is what comparing with another run says. */
static void errors(void)
{
    enum { W = 90, H = 62 };
    static const enum vg_norm_mode modes[] = {VG_NORM_PREVIOUS, VG_NORM_FROZEN, VG_NORM_FROZEN, VG_NORM_TILE};
    struct vg_model *m = make_net(NORMS, NULL);
    for (int k = 0; m && k < 4; k++) {
        struct vg_plan_request e = request(W, H, VG_NORM_EXACT), r = request(W, H, modes[k]);
        struct nets_picture in = nets_picture(VGK_FRAME_PACKED, W, H, true);
        struct nets_player exact, other;
        struct vg_run_info info;
        r.norm_errors = true;
        r.norm_frames = 2;
        r.tile_width = k >= 2 ? 48 : 0;
        if (!nets_start(&exact, m, cpu, &e) || !nets_start(&other, m, cpu, &r))
            return;
        expect(vg_plan_info(other.plan)->norm_errors);
        double sum = 0;
        int worst = 0, frames = 0;
        for (int i = 0; i < 6; i++) {
            paint(&in, 2 * i);
            nets_play(&exact, &in);
            nets_play(&other, &in);
            if (modes[k] == VG_NORM_FROZEN && i < 2)
                continue; /* measured, not compared */
            struct off d = compare(&exact.out, &other.out);
            sum += d.mean;
            worst = d.worst > worst ? d.worst : worst;
            frames++;
        }
        vg_run_info(other.run, &info);
        expectf(info.errors_frames == (uint64_t)frames, "mode %d: %d frames", modes[k], (int)info.errors_frames);
        expect_near(info.error_mean, sum / frames, 1e-9);
        expectf(info.error_worst == worst && worst > 0, "mode %d: %d, expected %d", modes[k], info.error_worst, worst);
        nets_stop(&exact);
        nets_stop(&other);
        free(in.data);
    }
    if (m)
        vg_model_unref(&m);
}

/* --- beside the model --- */

static void mixes(void)
{
    struct vg_stored s;
    float v[4];
    /* Three styles, and two sets that differ in the other parameter only. */
    expect(vg_stored_make(&s, 3, 2, 3, (int64_t[]){3, 1}));
    for (int k = 0; k < 3; k++) {
        s.parameters[3 * k + k] = 1;
        for (int i = 0; i < 4; i++)
            s.values[4 * k + i] = (float)(10 * k + i);
    }
    vg_stored_mix(&s, (float[]){0, 1, 0}, v);
    expect(v[0] == 10 && v[3] == 13);
    vg_stored_mix(&s, (float[]){0.25f, 0, 0.75f}, v);
    expect_near(v[0], 15, 1e-3);
    vg_stored_mix(&s, (float[]){0, 0.5f, 0.5f}, v);
    expect_near(v[1], 16, 1e-3);
    vg_stored_clear(&s);
    /* A strength. */
    expect(vg_stored_make(&s, 2, 1, 1, (int64_t[]){1}));
    s.parameters[1] = 1;
    s.values[1] = 100;
    vg_stored_mix(&s, (float[]){0.3f}, v);
    expect_near(v[0], 30, 1e-3);
    vg_stored_mix(&s, (float[]){0}, v);
    expect(v[0] == 0);
    vg_stored_clear(&s);
}

static void put(const char *path, const char *text, long size)
{
    FILE *f = fopen(path, "wb");
    expect(f && fwrite(text, 1, (size_t)size, f) == (size_t)size);
    if (f)
        fclose(f);
}

static char *get(const char *path, long *size)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 4 << 20);
    *size = f ? (long)fread(text, 1, (4 << 20) - 1, f) : 0;
    if (f)
        fclose(f);
    return text;
}

/* Written, read, used: the same bits as measured.  What is broken, or another model's, is refused where it is wanted. */
static void beside(void)
{
    enum { W = 64, H = 48 };
    struct vgk_error err = {{0}};
    char dir[] = "/tmp/vidgen-frozen-XXXXXX", path[64], onnx[64];
    struct vg_model *m, *again = NULL;
    struct vg_plan_request f = request(W, H, VG_NORM_FROZEN);
    struct nets_picture in = nets_picture(VGK_FRAME_PACKED, W, H, true);
    struct nets_player measured_player, stored_player;
    struct vg_stored s;
    long size;
    if (!mkdtemp(dir))
        return;
    snprintf(path, sizeof path, "%s/net.norms", dir);
    snprintf(onnx, sizeof onnx, "%s/net.onnx", dir);
    if (!(m = make_net(NORMS, onnx)))
        return;
    f.norm_frames = 2;
    if (!nets_start(&measured_player, m, cpu, &f))
        return;
    for (int i = 0; i < 3; i++) {
        paint(&in, i);
        nets_play(&measured_player, &in);
    }
    const struct vg_statistics *st = vg_run_statistics(measured_player.run);
    int64_t counts[8];
    for (int i = 0; i < st->n; i++)
        counts[i] = st->parts[i].count;
    expect(vg_stored_make(&s, 1, st->n, 0, counts));
    memcpy(s.values, st->kept, (size_t)s.total * sizeof *s.values);
    expectf(vg_stored_write(path, m->graph, &s, &err) == VGK_OK, "%s", err.text);
    vg_stored_clear(&s);

    expectf(vg_model_load(onnx, &again, &err) == VGK_OK, "%s", err.text);
    if (again && nets_start(&stored_player, again, cpu, &f)) {
        expect(vg_plan_info(stored_player.plan)->norm_stored && !stored_player.plan->exact);
        expect(vg_plan_info(stored_player.plan)->arena_bytes < vg_plan_info(measured_player.plan)->arena_bytes);
        nets_play(&stored_player, &in);
        expect(compare(&measured_player.out, &stored_player.out).worst == 0);
        nets_stop(&stored_player);
        struct vg_plan_request live = request(W, H, VG_NORM_AUTO);
        struct vg_plan *p = NULL;
        live.live = true;
        expect(vg_plan_make(again, &vgk_cpu, cpu, &live, &p, NULL) == VGK_OK);
        expect(p && vg_plan_info(p)->norm_mode == VG_NORM_FROZEN && vg_plan_info(p)->norm_stored);
        vg_plan_free(&p);
    }
    if (again)
        vg_model_unref(&again);

    char *good = get(path, &size);
    for (int i = 0; i < 60; i++) { /* the last: a line too many is no harm */
        char *bad = malloc((size_t)size + 64);
        long n = size;
        memcpy(bad, good, (size_t)size);
        if (i < 50)
            n = kit_int(0, (int)size - 2);
        else if (i < 59)
            bad[kit_int(80, (int)size / 2)] = '?';
        else
            n += sprintf(bad + size, "[more]\nx=1\n");
        put(path, bad, n);
        again = NULL;
        struct vg_plan *p = NULL;
        expectf(vg_model_load(onnx, &again, &err) == VGK_OK, "%s", err.text);
        if (again) {
            struct vg_plan_request e = request(W, H, VG_NORM_EXACT);
            expect(vg_plan_make(again, &vgk_cpu, cpu, &e, &p, &err) == VGK_OK);
            vg_plan_free(&p);
            err.text[0] = 0;
            enum vgk_status status = vg_plan_make(again, &vgk_cpu, cpu, &f, &p, &err);
            /* A number that lost its tail is still a number. */
            expectf(i == 59 ? !status : status == VGK_OK || (status == VGK_ERR_INVALID && *err.text), "%d: %s", i, err.text);
            expectf(status == VGK_OK || i < 59, "%d", i);
            vg_plan_free(&p);
            vg_model_unref(&again);
        }
        free(bad);
    }
    char *other = strstr(good, "model=");
    other[6] = other[6] == '0' ? '1' : '0';
    put(path, good, size);
    if (vg_model_load(onnx, &again, &err) == VGK_OK) {
        struct vg_plan *p = NULL;
        expect(vg_plan_make(again, &vgk_cpu, cpu, &f, &p, &err) == VGK_ERR_INVALID && strstr(err.text, "vidgen freeze"));
        f.norm_measure = true;
        expect(vg_plan_make(again, &vgk_cpu, cpu, &f, &p, &err) == VGK_OK);
        vg_plan_free(&p);
        vg_model_unref(&again);
    }
    free(good);
    nets_stop(&measured_player);
    vg_model_unref(&m);
    free(in.data);
    unlink(path);
    unlink(onnx);
    rmdir(dir);
}


int main(void)
{
    /* Direct products: tiles of any size are then the whole, to the bit. */
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1, .exact_products = true}, &cpu, NULL);
    run(measured);
    run(parameters);
    run(stopped);
    run(thumbnail);
    run(automatic);
    run(budgets);
    run(errors);
    run(mixes);
    run(beside);
    vgk_cpu.close(&cpu);
    return kit_done();
}
