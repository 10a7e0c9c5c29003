/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* vidgen freeze MODEL CLIP|PICTURE...: runs the model over some frames and writes the mean of its norms' statistics to
 * NAME.norms beside NAME.onnx (model/stored.h), where norm-mode=frozen finds them.
 *
 * A model with parameters has a set of statistics for its defaults, and one for each value of a parameter that has
 * several (a style) alone; for a parameter of one value, for both ends of its range. */
#include "freeze.h"

#include <gst/video/video.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_internal.h"
#include "model/run.h"
#include "model/statistics.h"

enum { DONE = 0, FAILED = 1, USAGE = 2, MOST_VARIED = 256 /* values of a parameter: more are no choice of styles */ };

typedef struct {
    int width, height; /* of all frames; 0 = not known yet */
    int longest;       /* pixels of the longer side */
    GPtrArray *frames; /* RGB, 3 * width * height bytes */
    /* of the input that plays */
    guint wanted, taken;
    GstClockTime next, step;
} Reel;

/* --- frames --- */

static void on_frame(GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer user)
{
    Reel *reel = user;
    GstClockTime time = GST_BUFFER_PTS(buffer);
    GstCaps *caps;
    GstVideoInfo info;
    GstVideoFrame frame;
    if (reel->taken == reel->wanted || (reel->taken && GST_CLOCK_TIME_IS_VALID(time) && time < reel->next))
        return;
    caps = gst_pad_get_current_caps(pad);
    if (!caps || !gst_video_info_from_caps(&info, caps) || !gst_video_frame_map(&frame, &info, buffer, GST_MAP_READ)) {
        gst_clear_caps(&caps);
        return;
    }
    gst_caps_unref(caps);
    gsize row = 3 * (gsize)reel->width;
    guint8 *copy = g_malloc(row * reel->height);
    for (int y = 0; y < reel->height; y++)
        memcpy(copy + y * row, (guint8 *)GST_VIDEO_FRAME_PLANE_DATA(&frame, 0) + y * GST_VIDEO_FRAME_PLANE_STRIDE(&frame, 0),
               row);
    gst_video_frame_unmap(&frame);
    g_ptr_array_add(reel->frames, copy);
    reel->next += reel->step;
    if (++reel->taken == reel->wanted)
        gst_element_post_message(sink, gst_message_new_application(GST_OBJECT(sink), gst_structure_new_empty("enough")));
}

/* The first input's size, reduced to `longest`, is that of all. */
static gboolean choose_size(Reel *reel, GstElement *pipeline)
{
    GstElement *in = gst_bin_get_by_name(GST_BIN(pipeline), "in");
    GstPad *pad = gst_element_get_static_pad(in, "sink");
    GstCaps *caps = gst_pad_get_current_caps(pad);
    GstVideoInfo info;
    gboolean ok = caps && gst_video_info_from_caps(&info, caps);
    if (ok && !reel->width) {
        int w = GST_VIDEO_INFO_WIDTH(&info), h = GST_VIDEO_INFO_HEIGHT(&info), longer = MAX(w, h);
        reel->width = longer > reel->longest ? MAX(1, w * reel->longest / longer) : w;
        reel->height = longer > reel->longest ? MAX(1, h * reel->longest / longer) : h;
    }
    gst_clear_caps(&caps);
    gst_object_unref(pad);
    gst_object_unref(in);
    return ok;
}

static gboolean wait_for(GstElement *pipeline, const char *path, GstMessageType until)
{
    GstBus *bus = gst_element_get_bus(pipeline);
    GstMessage *m = gst_bus_timed_pop_filtered(bus, GST_CLOCK_TIME_NONE, until | GST_MESSAGE_ERROR);
    gboolean ok = GST_MESSAGE_TYPE(m) != GST_MESSAGE_ERROR;
    if (!ok) {
        GError *error = NULL;
        gst_message_parse_error(m, &error, NULL);
        g_printerr("vidgen: %s: %s\n", path, error->message);
        g_error_free(error);
    }
    gst_message_unref(m);
    gst_object_unref(bus);
    return ok;
}

static GstElement *open_file(const char *path, const char *rest)
{
    GError *error = NULL;
    GstElement *pipeline = NULL;
    char *uri = gst_uri_is_valid(path) ? g_strdup(path) : gst_filename_to_uri(path, &error);
    char *text = g_strdup_printf("uridecodebin name=file ! videoconvert name=in ! %s", rest);
    if (uri && (pipeline = gst_parse_launch(text, &error))) {
        GstElement *file = gst_bin_get_by_name(GST_BIN(pipeline), "file");
        g_object_set(file, "uri", uri, NULL);
        gst_object_unref(file);
    } else {
        g_printerr("vidgen: %s: %s\n", path, error->message);
    }
    g_clear_error(&error);
    g_free(text);
    g_free(uri);
    return pipeline;
}

static void close_file(GstElement *pipeline)
{
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(pipeline);
}

/* Takes up to `wanted` frames, spread over the clip. */
static gboolean read_frames(Reel *reel, const char *path, guint wanted)
{
    GstElement *pipeline = open_file(path, "fakesink");
    gint64 duration = 0;
    if (!pipeline)
        return FALSE;
    gst_element_set_state(pipeline, GST_STATE_PAUSED);
    gboolean ok = wait_for(pipeline, path, GST_MESSAGE_ASYNC_DONE) && choose_size(reel, pipeline);
    gst_element_query_duration(pipeline, GST_FORMAT_TIME, &duration);
    close_file(pipeline);
    if (!ok)
        return FALSE;
    char *rest = g_strdup_printf("videoscale ! video/x-raw,format=RGB,width=%d,height=%d,pixel-aspect-ratio=1/1 ! fakesink "
                                 "name=out signal-handoffs=true", reel->width, reel->height);
    pipeline = open_file(path, rest);
    g_free(rest);
    if (!pipeline)
        return FALSE;
    GstElement *out = gst_bin_get_by_name(GST_BIN(pipeline), "out");
    reel->wanted = wanted;
    reel->taken = 0;
    reel->next = reel->step = duration > 0 ? (GstClockTime)duration / wanted : 0;
    g_signal_connect(out, "handoff", G_CALLBACK(on_frame), reel);
    gst_object_unref(out);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    ok = wait_for(pipeline, path, GST_MESSAGE_EOS | GST_MESSAGE_APPLICATION);
    close_file(pipeline);
    return ok;
}

/* --- sets --- */

static void add_set(GPtrArray *sets, const float *values, int n)
{
    for (guint i = 0; i < sets->len; i++)
        if (!memcmp(g_ptr_array_index(sets, i), values, n * sizeof *values))
            return;
    g_ptr_array_add(sets, g_memdup2(values, MAX(n, 1) * sizeof *values));
}

static GPtrArray *sets_of(const struct vg_summary *m, int *n)
{
    GPtrArray *sets = g_ptr_array_new_with_free_func(g_free);
    int count = 0, at = 0;
    for (int i = 0; i < m->n_parameters; i++)
        count += m->parameters[i].count;
    float *values = g_new0(float, count + 1);
    for (int i = 0; i < m->n_parameters; at += m->parameters[i++].count)
        memcpy(values + at, m->parameters[i].defaults, m->parameters[i].count * sizeof *values);
    add_set(sets, values, count);
    at = 0;
    for (int i = 0; i < m->n_parameters; at += m->parameters[i++].count) {
        const struct vg_parameter *p = &m->parameters[i];
        for (int k = 0; k < p->count && p->count > 1 && p->count <= MOST_VARIED; k++) {
            memset(values + at, 0, p->count * sizeof *values);
            values[at + k] = 1;
            add_set(sets, values, count);
        }
        for (int k = 0; k < 2 && p->count == 1 && p->low < p->high; k++) {
            values[at] = k ? p->high : p->low;
            add_set(sets, values, count);
        }
        memcpy(values + at, p->defaults, p->count * sizeof *values);
    }
    g_free(values);
    *n = count;
    return sets;
}

static enum vgk_status run_frames(struct vg_run *run, const struct vg_summary *m, const float *values, const Reel *reel,
                                  guint8 *out, struct vgk_error *err)
{
    enum vgk_status s = VGK_OK;
    struct vgk_colour colour = {.full_range = true};
    struct vgk_frame in = {VGK_FRAME_PACKED, reel->width, reel->height, {NULL}, {3 * reel->width}, 3, {0, 1, 2}, -1};
    struct vgk_frame to = in;
    to.width = MAX(1, reel->width * m->scale_num / m->scale_den);
    to.height = MAX(1, reel->height * m->scale_num / m->scale_den);
    to.plane[0] = out;
    to.stride[0] = 3 * to.width;
    for (int i = 0; i < m->n_parameters && !s; values += m->parameters[i++].count)
        s = vg_run_set_parameter(run, i, values, err);
    for (guint i = 0; i < reel->frames->len && !s; i++) {
        in.plane[0] = g_ptr_array_index(reel->frames, i);
        s = vg_run_tile(run, 0, 0, &in, &colour, &to, err);
    }
    return s ? s : vg_run_begin(run, &in, &colour, NULL, err); /* the next frame would go by their mean */
}

static enum vgk_status measure(struct vg_model *model, const Reel *reel, int threads, const char *path, struct vgk_error *err)
{
    const struct vg_summary *m = vg_model_summary(model);
    struct vg_plan_request request = {.width = reel->width, .height = reel->height, .tile_width = reel->width,
                                      .tile_height = reel->height, .overlap_x = -1, .overlap_y = -1,
                                      .norm_mode = VG_NORM_FROZEN, .norm_frames = (int)reel->frames->len,
                                      .norm_measure = true};
    struct vgk_device *device = NULL;
    struct vg_plan *plan = NULL;
    struct vg_run *run = NULL;
    struct vg_stored stored = {0};
    int n_parameters;
    GPtrArray *sets = sets_of(m, &n_parameters);
    guint8 *out = g_malloc(4 * (gsize)(reel->width * m->scale_num / m->scale_den + 1) *
                           (gsize)(reel->height * m->scale_num / m->scale_den + 1));
    enum vgk_status s = vgk_cpu.open(&(struct vgk_device_options){.threads = threads}, &device, err);
    if (!s)
        s = vg_plan_make(model, &vgk_cpu, device, &request, &plan, err);
    if (!s && vg_plan_info(plan)->norm_mode != VG_NORM_FROZEN)
        s = vgk_fail(err, VGK_ERR_UNSUPPORTED, "%s has no norms, and no means, over the whole frame: there is nothing to "
                     "freeze%s%s", m->path, m->global ? "; what depends on the whole frame is " : "",
                     m->global ? m->global_why : "");
    if (!s)
        s = vg_run_open(plan, &run, err);
    for (guint i = 0; i < sets->len && !s; i++) {
        const struct vg_statistics *st = vg_run_statistics(run);
        int64_t *counts = g_new(int64_t, st->n + 1);
        for (int k = 0; k < st->n; k++)
            counts[k] = st->parts[k].count;
        if (!i && !vg_stored_make(&stored, (int)sets->len, st->n, n_parameters, counts))
            s = vgk_fail(err, VGK_ERR_NOMEM, "no memory");
        g_free(counts);
        const float *values = g_ptr_array_index(sets, i);
        if (!s)
            s = run_frames(run, m, values, reel, out, err);
        for (int k = 0; k < n_parameters && !s; k++)
            stored.parameters[(gsize)i * n_parameters + k] = (double)values[k];
        if (!s)
            memcpy(stored.values + i * stored.total, st->kept, stored.total * sizeof *st->kept);
    }
    if (!s)
        s = vg_stored_write(path, model->graph, &stored, err);
    if (!s) {
        g_print("%s: %d norms and means of %s, %u frames of %dx%d, %d set%s\n", path, stored.n_parts, m->name,
                reel->frames->len, reel->width, reel->height, stored.n_sets, stored.n_sets == 1 ? "" : "s");
        if (vg_plan_info(plan)->global_why)
            g_print("It still depends on the whole frame, and will not be cut into tiles: %s\n",
                    vg_plan_info(plan)->global_why);
    }
    vg_stored_clear(&stored);
    vg_run_close(&run);
    vg_plan_free(&plan);
    vgk_cpu.close(&device);
    g_ptr_array_unref(sets);
    g_free(out);
    return s;
}

/* --- the command --- */

static int freeze(char **names, guint frames, int longest, int threads, const char *output)
{
    Reel reel = {.longest = longest, .frames = g_ptr_array_new_with_free_func(g_free)};
    struct vgk_error err = {{0}};
    struct vg_model *model = NULL;
    guint inputs = g_strv_length(names) - 1;
    char *path = vg_model_beside(names[0], ".norms");
    enum vgk_status s = vg_model_load(names[0], &model, &err);
    gboolean ok = s == VGK_OK;
    for (guint i = 0; i < inputs && ok; i++)
        ok = read_frames(&reel, names[1 + i], MAX(1, (frames + inputs - 1) / inputs));
    if (ok && !reel.frames->len) {
        g_printerr("vidgen: no frame came in\n");
        ok = FALSE;
    }
    if (ok)
        s = measure(model, &reel, threads, output ? output : path, &err);
    if (s)
        g_printerr("vidgen: %s\n", err.text);
    vg_model_unref(&model);
    free(path);
    g_ptr_array_unref(reel.frames);
    return ok && !s ? DONE : FAILED;
}

static int usage(const char *text)
{
    g_printerr("vidgen: freeze: %s\nTry vidgen freeze --help.\n", text);
    return USAGE;
}

int freeze_main(int argc, char **argv)
{
    char *output = NULL, **names = NULL;
    int frames = 16, longest = 640, threads = 0;
    const GOptionEntry entries[] = {
        {"frames", 'n', 0, G_OPTION_ARG_INT, &frames, "how many frames, over all inputs (16)", "N"},
        {"size", 's', 0, G_OPTION_ARG_INT, &longest, "longer side of the frames, which are reduced to it (640)", "PIXELS"},
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output, "what to write (MODEL with the ending .norms)", "FILE"},
        {"threads", 0, 0, G_OPTION_ARG_INT, &threads, "threads of the model (0 = as many as there are)", "N"},
        {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &names, NULL, "MODEL.onnx CLIP|PICTURE..."},
        {NULL},
    };
    GOptionContext *context = g_option_context_new("- measure a model's norms, for norm-mode=frozen");
    GError *error = NULL;
    int code;
    g_option_context_add_main_entries(context, entries, NULL);
    g_option_context_add_group(context, gst_init_get_option_group());
    gboolean parsed = g_option_context_parse(context, &argc, &argv, &error);
    g_option_context_free(context);
    if (!parsed)
        code = usage(error->message);
    else if (!names || !names[1])
        code = usage(names ? "on what? A clip, or pictures, are missing" : "which model?");
    else if (frames < 1 || longest < 16 || threads < 0)
        code = usage("--frames is 1 or more, --size 16 or more");
    else
        code = freeze(names, (guint)frames, longest, threads, output);
    g_clear_error(&error);
    g_strfreev(names);
    g_free(output);
    return code;
}
