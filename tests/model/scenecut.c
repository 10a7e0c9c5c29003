/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A made clip with cuts, flashes, pans, zooms and fades: every cut is found, and nothing else. */
#include "kit.h"
#include "model/scenecut.h"

#define W 320
#define H 180
#define SIDE 512 /* of a scene's texture, which repeats */

/* A scene: noise of all sizes, the smaller the weaker, as pictures are. */
static float texture[SIDE][SIDE];

static void make_scene(int seed, double roughness, double light, double contrast)
{
    static float grid[128][128];
    kit_seed((uint64_t)seed);
    memset(texture, 0, sizeof texture);
    double weight = 1, power = 0;
    for (int n = 4; n <= 128; n *= 2, weight *= roughness) {
        for (int y = 0; y < n; y++)
            for (int x = 0; x < n; x++)
                grid[y][x] = (float)(weight * kit_real(-1, 1));
        power += weight * weight / 7;
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                double gy = (double)y * n / SIDE, gx = (double)x * n / SIDE;
                int y0 = (int)gy, x0 = (int)gx, y1 = (y0 + 1) % n, x1 = (x0 + 1) % n;
                double fy = gy - y0, fx = gx - x0;
                texture[y][x] += (float)((1 - fy) * ((1 - fx) * grid[y0][x0] + fx * grid[y0][x1]) +
                                         fy * ((1 - fx) * grid[y1][x0] + fx * grid[y1][x1]));
            }
    }
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            texture[y][x] = (float)(light + contrast * texture[y][x] / sqrt(power));
}

struct look {
    double x, y, zoom, gain, offset, noise;
};

static uint8_t pixels[3 * W * H];

static struct vgk_frame frame_of(bool rgb)
{
    struct vgk_frame f = {.layout = rgb ? VGK_FRAME_PACKED : VGK_FRAME_I420, .width = W, .height = H, .alpha = -1};
    f.plane[0] = pixels;
    f.stride[0] = rgb ? 3 * W : W;
    f.step = 3;
    f.offset[1] = 1;
    f.offset[2] = 2;
    f.plane[1] = pixels + W * H;
    f.plane[2] = pixels + W * H * 5 / 4;
    f.stride[1] = f.stride[2] = W / 2;
    return f;
}

static void draw(const struct look *l, bool rgb)
{
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            int tx = (int)floor(l->x + (x - W / 2) / l->zoom) & (SIDE - 1);
            int ty = (int)floor(l->y + (y - H / 2) / l->zoom) & (SIDE - 1);
            double v = texture[ty][tx] * l->gain + l->offset + l->noise * kit_real(-1, 1);
            uint8_t byte = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
            if (rgb)
                memset(pixels + 3 * (y * W + x), byte, 3);
            else
                pixels[y * W + x] = byte;
        }
}

enum kind { STILL, PAN, TILT, ZOOM, FLASH, WHITE, FADE, NOISY, N_KINDS };
static const char *const kind_names[] = {"still", "pan", "tilt", "zoom", "flash", "white", "fade", "noisy"};
#define FRAMES 16

/* The look of frame i of a scene. */
static struct look look_at(enum kind kind, int i, double speed, double strength)
{
    struct look l = {.x = 400, .y = 300, .zoom = 1, .gain = 1, .noise = 2};
    switch (kind) {
    case PAN:
        l.x += speed * i;
        break;
    case TILT:
        l.y += speed / 2 * i;
        break;
    case ZOOM:
        l.zoom = pow(1.03, i);
        break;
    case FLASH: /* a camera's, of one to three frames, twice */
        if (i == 5 || (i >= 9 && i < 12)) {
            l.gain = 1 + strength / 2;
            l.offset = 50 * strength;
        }
        break;
    case WHITE:
        if (i >= 6 && i < 8)
            l.offset = 500;
        break;
    case FADE:
        l.gain = abs(i - FRAMES / 2) / (FRAMES / 2.0);
        break;
    case NOISY:
        l.noise = 25;
        break;
    default:
        break;
    }
    return l;
}

static void made_clip(bool rgb)
{
    struct vg_scenecut cut = {0};
    int cuts = 0, missed = 0, wrong = 0, frames = 0;
    double least_within = 1, most_across = -1;
    for (int scene = 0; scene < 48; scene++) {
        enum kind kind = scene % N_KINDS;
        double roughness = (double[]){.45, .6, .8}[scene / 3 % 3], speed = 4 + 4 * (scene / N_KINDS);
        double strength = (double[]){.4, 1, 2}[scene / N_KINDS % 3], light = 90 + 17 * (scene % 5);
        make_scene(scene + 1, roughness, light, 30 + 5 * (scene % 3));
        for (int i = 0; i < FRAMES; i++, frames++) {
            struct look l = look_at(kind, i, speed, strength);
            bool first = i == 0 && scene > 0;
            draw(&l, rgb);
            struct vgk_frame f = frame_of(rgb);
            bool found = vg_scenecut_next(&cut, &f);
            if (first)
                most_across = fmax(most_across, cut.correlation);
            else if (frames)
                least_within = fmin(least_within, cut.correlation);
            cuts += first;
            missed += first && !found;
            wrong += found && !first;
            expectf(found == first, "scene %d (%s), frame %d: correlation %.2f", scene, kind_names[kind], i,
                    (double)cut.correlation);
        }
    }
    printf("%s: %d frames, %d cuts: %d missed, %d wrong; correlation in scenes %.2f and more, across %.2f and less\n",
           rgb ? "RGB" : "I420", frames, cuts, missed, wrong, least_within, most_across);
}

static void in_rgb(void) { made_clip(true); }
static void in_i420(void) { made_clip(false); }

/* A flash that ends in another scene is a cut, at that scene's first frame; so is a cut through black. */
static void cut_behind_white_and_black(void)
{
    for (int white = 0; white < 2; white++) {
        struct vg_scenecut cut = {0};
        struct vgk_frame f = frame_of(false);
        struct look plain = {.x = 9, .y = 9, .zoom = 1, .gain = 1}, flat = plain;
        flat.gain = 0;
        flat.offset = white ? 255 : 0;
        make_scene(1, .6, 128, 40);
        draw(&plain, false);
        expect(!vg_scenecut_next(&cut, &f));
        draw(&flat, false);
        expect(!vg_scenecut_next(&cut, &f));
        draw(&plain, false);
        expect(!vg_scenecut_next(&cut, &f));
        draw(&flat, false);
        expect(!vg_scenecut_next(&cut, &f));
        make_scene(2, .6, 128, 40);
        draw(&plain, false);
        expect(vg_scenecut_next(&cut, &f));
    }
}

/* Nothing is known of the first frame, and of the one behind a reset; the smallest frames can be looked at. */
static void first_frames(void)
{
    struct vg_scenecut cut = {0};
    struct vgk_frame f = frame_of(true);
    struct look plain = {.x = 9, .y = 9, .zoom = 1, .gain = 1};
    for (int seed = 1; seed < 4; seed++) {
        make_scene(seed, .6, 128, 40);
        draw(&plain, true);
        expect(!vg_scenecut_next(&cut, &f));
        vg_scenecut_reset(&cut);
    }
    f.width = f.height = 1;
    expect(!vg_scenecut_next(&cut, &f));
}

int main(void)
{
    run(in_rgb);
    run(in_i420);
    run(cut_behind_white_and_black);
    run(first_frames);
    return kit_done();
}
