/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* vidgen IN -o OUT: a model over a video file, from the command line.  `vidgen plan`: see plan.c; `vidgen freeze`:
 * freeze.c.
 *
 * Messages and progress go to stderr, the closing line to stdout.  What is written lies in OUT.part until all frames
 * that went in have come out; then it gets its name.  Exit status: enum exit_code. */
#include <glib-unix.h>
#include <glib/gstdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "freeze.h"
#include "plan.h"
#include "transcode.h"

enum exit_code {
    EXIT_DONE = 0,
    EXIT_ERROR = 1,
    EXIT_USAGE = 2,
    EXIT_STOPPED = 4, /* by the user; the file is playable */
    EXIT_NO_ROOM = 5, /* memory, or the disk */
    EXIT_KILLED = 130, /* by the second signal */
};

#define DEFAULT_ENCODER "x264enc pass=qual quantizer=20 speed-preset=faster"
#define RATE_SECONDS 30 /* the rate shown is that of the last 30 s */

typedef struct {
    Transcode *transcode;
    GMainLoop *loop;
    const char *in, *out;
    char *part; /* OUT.part */
    gboolean quiet, verbose, terminal;
    int code; /* EXIT_DONE until something happens */
    gboolean stopped, line_open;
    double memory; /* bytes of the plan, 0 = not told yet */
    int rate;      /* frames that the model makes of one */

    GstClockTime duration; /* GST_CLOCK_TIME_NONE until known */
    gint64 started, first; /* monotonic us: start; the first frame seen out of the model, 0 = none yet */
    guint64 first_frames;
    struct {
        gint64 time;
        guint64 frames;
    } seconds[RATE_SECONDS]; /* a ring, one entry a second */
    guint n_seconds;
    gint64 said;       /* when the last plain line was printed */
    double said_percent;
} Run;

/* A line on stderr of its own, also when the progress line is on the screen. */
G_GNUC_PRINTF(2, 3) static void say(Run *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_printerr("%s%s\n", run->line_open ? "\r\033[K" : "", text);
    run->line_open = FALSE;
    g_free(text);
}

static void finish(Run *run, int code)
{
    if (run->code == EXIT_DONE)
        run->code = code;
    g_main_loop_quit(run->loop);
}

static char *clock_text(double seconds)
{
    int s = (int)(seconds + 0.5);
    return s >= 3600 ? g_strdup_printf("%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60)
                     : g_strdup_printf("%d:%02d", s / 60, s % 60);
}

/* Percent comes from timestamps; the number of all frames, from duration and rate, is a hint. */
static double percent_of(Run *run, const TranscodeCounts *c)
{
    gint64 duration;
    if (!GST_CLOCK_TIME_IS_VALID(run->duration) &&
        gst_element_query_duration(run->transcode->pipeline, GST_FORMAT_TIME, &duration) && duration > 0)
        run->duration = duration;
    if (!GST_CLOCK_TIME_IS_VALID(run->duration) || !GST_CLOCK_TIME_IS_VALID(c->position))
        return -1;
    double frame = c->rate_num > 0 ? (double)GST_SECOND * c->rate_den / c->rate_num : 0;
    return MIN(100.0, 100.0 * (c->position + frame) / run->duration);
}

static char *progress_text(Run *run, const TranscodeCounts *c, double percent)
{
    gint64 now = g_get_monotonic_time();
    GString *text = g_string_new(NULL);
    g_string_printf(text, "%" G_GUINT64_FORMAT, c->frames_done);
    if (percent >= 0) {
        guint64 all = c->rate_num > 0
                          ? gst_util_uint64_scale_round(run->duration, c->rate_num * (guint64)run->rate,
                                                        GST_SECOND * c->rate_den) : 0;
        if (all)
            g_string_append_printf(text, "/%" G_GUINT64_FORMAT, MAX(all, c->frames_done));
        g_string_append_printf(text, " %.0f%%", percent);
    }
    guint oldest = run->n_seconds > RATE_SECONDS ? run->n_seconds % RATE_SECONDS : 0;
    double span = run->n_seconds ? (now - run->seconds[oldest].time) / 1e6 : 0;
    if (span > 0.5)
        g_string_append_printf(text, " | %.1f fps", (c->frames_done - run->seconds[oldest].frames) / span);
    guint64 since = c->frames_done - run->first_frames;
    double seconds = (now - run->first) / 1e6;
    if (run->first && percent > 0 && since > 0 && seconds > 1) {
        double share = percent * since / c->frames_done; /* done since the first frame: loading does not count */
        char *left = clock_text(seconds * (100 - percent) / share);
        g_string_append_printf(text, " | %s left", left);
        g_free(left);
    }
    if (run->memory > 0)
        g_string_append_printf(text, " | memory %.1f MiB", run->memory / (1 << 20));
    return g_string_free(text, FALSE);
}

static void tell_notes(Run *run)
{
    char *text;
    while ((text = transcode_note(run->transcode))) {
        if (!run->quiet)
            say(run, "vidgen: %s: %s", run->in, text);
        g_free(text);
    }
}

/* Four times a second. */
static gboolean on_tick(gpointer user)
{
    Run *run = user;
    tell_notes(run);
    TranscodeCounts c;
    transcode_counts(run->transcode, &c);
    if (c.frames_done == 0)
        return G_SOURCE_CONTINUE;
    gint64 now = g_get_monotonic_time();
    if (!run->first) {
        run->first = run->said = now;
        run->first_frames = c.frames_done;
    }
    double percent = percent_of(run, &c);
    if (run->quiet)
        return G_SOURCE_CONTINUE;
    if (run->terminal) {
        char *text = progress_text(run, &c, percent);
        g_printerr("\r%s\033[K", text);
        run->line_open = TRUE;
        g_free(text);
    } else if (now - run->said >= 10 * G_USEC_PER_SEC || (percent >= run->said_percent + 10 && percent < 100)) {
        char *text = progress_text(run, &c, percent);
        say(run, "%s", text);
        g_free(text);
        run->said = now;
        run->said_percent = MAX(percent, 0);
    }
    if (!run->n_seconds || now - run->seconds[(run->n_seconds - 1) % RATE_SECONDS].time >= G_USEC_PER_SEC) {
        guint i = run->n_seconds++ % RATE_SECONDS;
        run->seconds[i].time = now;
        run->seconds[i].frames = c.frames_done;
    }
    return G_SOURCE_CONTINUE;
}

static gboolean on_signal(gpointer user)
{
    Run *run = user;
    if (run->stopped) {
        g_unlink(run->part);
        say(run, "vidgen: killed; %s is not written", run->out);
        _exit(EXIT_KILLED); /* threads may be in the middle of anything */
    }
    run->stopped = TRUE;
    say(run, "vidgen: stopping after the frames at work; once more kills");
    transcode_stop(run->transcode);
    return G_SOURCE_CONTINUE;
}

static void tell(Run *run, GstMessage *message, const char *kind, const char *text, const char *debug)
{
    say(run, "vidgen: %s: %s%s", run->in, kind, text);
    if (run->verbose && debug)
        say(run, "%s: %s", GST_OBJECT_NAME(GST_MESSAGE_SRC(message)), debug);
}

static void on_error(Run *run, GstMessage *message)
{
    GError *error = NULL;
    char *debug = NULL;
    gst_message_parse_error(message, &error, &debug);
    tell(run, message, "", error->message, debug);
    finish(run, g_error_matches(error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NO_SPACE_LEFT) ? EXIT_NO_ROOM
                                                                                             : EXIT_ERROR);
    g_error_free(error);
    g_free(debug);
}

static void on_warning(Run *run, GstMessage *message)
{
    GError *error = NULL;
    char *debug = NULL;
    gst_message_parse_warning(message, &error, &debug);
    /* A wrong parameter is one that the element goes on without; who asked for it here does not want that. */
    gboolean wrong = g_error_matches(error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS);
    if (wrong || !run->quiet)
        tell(run, message, wrong ? "" : "warning: ", error->message, debug);
    if (wrong)
        finish(run, EXIT_ERROR);
    g_error_free(error);
    g_free(debug);
}

/* The model has planned: its tiles and memory in a line, before any frame; with -v all that the plan says. */
static void on_plan(Run *run, const GstStructure *plan)
{
    const char *text = gst_structure_get_string(plan, "text");
    guint64 bytes;
    if (gst_structure_get_uint64(plan, "bytes", &bytes))
        run->memory = bytes;
    gst_structure_get_int(plan, "rate", &run->rate);
    if (run->quiet || !text)
        return;
    char **lines = g_strsplit(text, "\n", -1);
    GString *line = g_string_new(NULL);
    for (char **l = lines; *l; l++) {
        if (run->verbose && **l)
            say(run, "%s", *l);
        if (g_str_has_prefix(*l, "frame ") || g_str_has_prefix(*l, "memory "))
            g_string_append_printf(line, "%s%s", line->len ? "; " : "", g_strstrip(*l));
    }
    if (!run->verbose)
        say(run, "%s", line->str);
    g_string_free(line, TRUE);
    g_strfreev(lines);
}

static gboolean on_message(GstBus *bus, GstMessage *message, gpointer user)
{
    Run *run = user;
    switch (GST_MESSAGE_TYPE(message)) {
    case GST_MESSAGE_ERROR:
        on_error(run, message);
        break;
    case GST_MESSAGE_WARNING:
        on_warning(run, message);
        break;
    case GST_MESSAGE_ELEMENT:
        if (gst_message_has_name(message, "vidgen-plan"))
            on_plan(run, gst_message_get_structure(message));
        break;
    case GST_MESSAGE_EOS:
        finish(run, run->stopped ? EXIT_STOPPED : EXIT_DONE);
        break;
    default:
        break;
    }
    /* Whatever comes after an error follows from it. */
    return run->code != EXIT_ERROR && run->code != EXIT_NO_ROOM;
}

/* -p name=value: a number, numbers (0.2;0.8;0), or text that the model's parameter understands (3:0.5,12:0.5). */
static gboolean add_parameter(GstStructure *parameters, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return FALSE;
    GValue array = G_VALUE_INIT, number = G_VALUE_INIT;
    gst_value_array_init(&array, 1);
    g_value_init(&number, G_TYPE_DOUBLE);
    char *name = g_strndup(text, equals - text), **items = g_strsplit_set(equals + 1, ";,", -1);
    gboolean numbers = TRUE;
    for (char **item = items; *item && numbers; item++) {
        char *end;
        g_value_set_double(&number, g_ascii_strtod(*item, &end));
        numbers = end != *item && !*end;
        gst_value_array_append_value(&array, &number);
    }
    if (!numbers)
        gst_structure_set(parameters, name, G_TYPE_STRING, equals + 1, NULL);
    else
        gst_structure_set_value(parameters, name, items[1] ? &array : &number);
    g_strfreev(items);
    g_free(name);
    g_value_unset(&number);
    g_value_unset(&array);
    return TRUE;
}

/* 512M, 1.5G, 100000: bytes; 0 when it is none. */
guint64 parse_bytes(const char *text)
{
    char *end;
    double value = g_ascii_strtod(text, &end);
    static const char units[] = "KMGT";
    if (*end) {
        const char *unit = strchr(units, g_ascii_toupper(*end));
        if (!unit)
            return 0;
        value = ldexp(value, 10 * (int)(unit - units + 1));
        end++;
        if (*end == 'i')
            end++;
        if (*end == 'B')
            end++;
    }
    return *end || !(value >= 1 && value < 1e18) ? 0 : (guint64)value;
}

static gboolean same_file(const char *a, const char *b)
{
    struct stat sa, sb;
    return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* The file gets its name when the counts agree. */
static void close_file(Run *run)
{
    TranscodeCounts c;
    transcode_counts(run->transcode, &c);
    gst_element_set_state(run->transcode->pipeline, GST_STATE_NULL);
    if (run->line_open)
        g_printerr("\r\033[K");
    run->line_open = FALSE;
    if (run->code != EXIT_DONE && run->code != EXIT_STOPPED) {
        g_unlink(run->part);
        return;
    }
    if (c.frames_out != c.frames_in * (guint64)run->rate || c.frames_out == 0) {
        if (run->stopped && c.frames_out == 0)
            say(run, "vidgen: %s: stopped before the first frame; nothing is written", run->in);
        else
            say(run, "vidgen: %s: %" G_GUINT64_FORMAT " frames were decoded, but %" G_GUINT64_FORMAT
                     " came out, for %d each; %s is not written", run->in, c.frames_in, c.frames_out, run->rate,
                run->out);
        run->code = run->stopped && c.frames_out == 0 ? EXIT_STOPPED : EXIT_ERROR;
        g_unlink(run->part);
        return;
    }
    if (g_rename(run->part, run->out) != 0) {
        say(run, "vidgen: %s: cannot be named so: %s; the result is in %s", run->out, g_strerror(errno), run->part);
        run->code = EXIT_ERROR;
        return;
    }
    if (!run->quiet) {
        double seconds = (g_get_monotonic_time() - run->started) / 1e6;
        char *time = clock_text(seconds);
        g_print("%s: %s%" G_GUINT64_FORMAT " frames in %s (%.1f fps)\n", run->out,
                run->code == EXIT_STOPPED ? "stopped, playable, " : "", c.frames_out, time, c.frames_out / seconds);
        g_free(time);
    }
}

/* Properties of the element vidgen. */
typedef struct {
    char *model, *norms, *scene_cut; /* NULL = as it is by default */
    guint64 max_bytes;
    int tile_width, tile_height, window, hop, interpolate, threads;
    GstStructure *parameters;
} Settings;

static void set_properties(GstElement *element, const Settings *s)
{
    if (s->model)
        g_object_set(element, "model-file", s->model, NULL);
    if (s->norms)
        gst_util_set_object_arg(G_OBJECT(element), "norm-mode", s->norms);
    if (s->scene_cut)
        gst_util_set_object_arg(G_OBJECT(element), "scene-cut", s->scene_cut);
    if (gst_structure_n_fields(s->parameters))
        g_object_set(element, "parameters", s->parameters, NULL);
    if (s->max_bytes)
        g_object_set(element, "max-device-memory", s->max_bytes, NULL);
    g_object_set(element, "tile-width", s->tile_width, "tile-height", s->tile_height, "window", s->window, "hop",
                 s->hop, "interpolate", s->interpolate, "threads", s->threads, NULL);
}

static int run_file(Run *run, const char *encoder, const char *muxer, const Settings *element)
{
    GError *error = NULL;
    char *uri = gst_filename_to_uri(run->in, &error);
    TranscodeSettings settings = {.uri = uri, .path = run->part, .muxer = muxer, .encoder = encoder};
    if (uri)
        run->transcode = transcode_new(&settings, &error);
    g_free(uri);
    if (!run->transcode) {
        say(run, "vidgen: %s: %s", run->in, error->message);
        if (g_error_matches(error, GST_PARSE_ERROR, GST_PARSE_ERROR_NO_SUCH_ELEMENT))
            say(run, "vidgen: is its plugin installed, or its folder in GST_PLUGIN_PATH?");
        g_clear_error(&error);
        return EXIT_ERROR;
    }

    set_properties(run->transcode->model, element);
    run->loop = g_main_loop_new(NULL, FALSE);
    GstBus *bus = gst_element_get_bus(run->transcode->pipeline);
    guint sources[] = {
        gst_bus_add_watch(bus, on_message, run),
        g_unix_signal_add(SIGINT, on_signal, run),
        g_unix_signal_add(SIGTERM, on_signal, run),
        g_timeout_add(250, on_tick, run),
    };
    run->started = g_get_monotonic_time();
    /* A failure to start is on the bus too, with its reason. */
    gst_element_set_state(run->transcode->pipeline, GST_STATE_PLAYING);
    g_main_loop_run(run->loop);

    if (run->code == EXIT_DONE || run->code == EXIT_STOPPED)
        tell_notes(run);
    close_file(run);
    gst_bus_remove_watch(bus);
    for (size_t i = 1; i < G_N_ELEMENTS(sources); i++)
        g_source_remove(sources[i]);
    gst_object_unref(bus);
    g_main_loop_unref(run->loop);
    transcode_free(run->transcode);
    return run->code;
}

static int usage(const char *format, ...) G_GNUC_PRINTF(1, 2);
static int usage(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_printerr("vidgen: %s\nTry vidgen --help.\n", text);
    g_free(text);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "plan") == 0)
        return plan_main(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "freeze") == 0)
        return freeze_main(argc - 1, argv + 1);

    char *out = NULL, *memory = NULL, *encoder = NULL, **values = NULL, **inputs = NULL;
    Settings settings = {0};
    gboolean overwrite = FALSE, quiet = FALSE, verbose = FALSE, version = FALSE;
    const GOptionEntry entries[] = {
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &out, "what to write: .mp4, .m4v, .mov or .mkv", "OUT"},
        {"model", 'm', 0, G_OPTION_ARG_FILENAME, &settings.model,
         "the model, an ONNX file (without: a style comes along)", "FILE"},
        {"parameter", 'p', 0, G_OPTION_ARG_STRING_ARRAY, &values,
         "a value of the model's: style_weights=1:0.5,2:0.5", "NAME=VALUE"},
        {"max-device-memory", 0, 0, G_OPTION_ARG_STRING, &memory, "never take more for the model (512M, 4G)", "BYTES"},
        {"norm-mode", 0, 0, G_OPTION_ARG_STRING, &settings.norms,
         "whose statistics norms use: exact, previous, frozen, thumbnail, tile (auto)", "MODE"},
        {"tile-width", 0, 0, G_OPTION_ARG_INT, &settings.tile_width, "width of a tile in pixels (0 = by plan)", "N"},
        {"tile-height", 0, 0, G_OPTION_ARG_INT, &settings.tile_height, "height of a tile in pixels (0 = by plan)", "N"},
        {"window", 0, 0, G_OPTION_ARG_INT, &settings.window, "frames that the model sees at once (0 = by plan)", "N"},
        {"hop", 0, 0, G_OPTION_ARG_INT, &settings.hop, "frames that the window moves on by (0 = by plan)", "N"},
        {"interpolate", 0, 0, G_OPTION_ARG_INT, &settings.interpolate,
         "new frames between two, of a model that makes such (0 = as it says)", "N"},
        {"scene-cut", 0, 0, G_OPTION_ARG_STRING, &settings.scene_cut,
         "look for cuts, which windows must not reach across: auto, on or off", "WHEN"},
        {"threads", 0, 0, G_OPTION_ARG_INT, &settings.threads, "threads of the model (0 = as many as there are)", "N"},
        {"encoder", 0, 0, G_OPTION_ARG_STRING, &encoder, "a piece of pipeline (" DEFAULT_ENCODER ")", "TEXT"},
        {"overwrite", 'y', 0, G_OPTION_ARG_NONE, &overwrite, "write over OUT if it is there", NULL},
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "only errors", NULL},
        {"verbose", 'v', 0, G_OPTION_ARG_NONE, &verbose, "the whole plan, and where errors come from", NULL},
        {"version", 0, 0, G_OPTION_ARG_NONE, &version, "print the version", NULL},
        {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &inputs, NULL, "IN"},
        {NULL},
    };
    GOptionContext *context = g_option_context_new("- run a neural video model over a file");
    g_option_context_set_description(
        context, "Exit status: 0 done; 1 error; 2 usage; 4 stopped by a signal, OUT is playable;\n"
                 "5 does not fit in memory or on the disk; 130 killed by the second signal.\n\n"
                 "vidgen plan MODEL tells what a model needs, and how it would run: vidgen plan --help.\n"
                 "vidgen freeze MODEL CLIP measures its norms, for norm-mode=frozen: vidgen freeze --help.\n");
    g_option_context_add_main_entries(context, entries, NULL);
    g_option_context_add_group(context, gst_init_get_option_group());
    GError *error = NULL;
    gboolean parsed = g_option_context_parse(context, &argc, &argv, &error);
    g_option_context_free(context);
    Run run = {.rate = 1, .quiet = quiet, .verbose = verbose, .terminal = isatty(STDERR_FILENO),
               .duration = GST_CLOCK_TIME_NONE};
    settings.parameters = parsed ? gst_structure_new_empty("parameters") : NULL;
    const char *wrong = NULL;
    for (guint i = 0; parsed && values && values[i] && !wrong; i++)
        if (!add_parameter(settings.parameters, values[i]))
            wrong = values[i];
    settings.max_bytes = memory ? parse_bytes(memory) : 0;
    const char *const cuts[] = {"auto", "on", "off", NULL};
    struct stat st;
    int code;

    if (!parsed) {
        code = usage("%s", error->message);
    } else if (version) {
        g_print("vidgen %s\n", VIDGEN_VERSION);
        code = EXIT_DONE;
    } else if (!inputs || inputs[1]) {
        code = usage(inputs ? "one input at a time, please" : "which video? IN is missing");
    } else if (!out) {
        code = usage("where to? -o OUT is missing");
    } else if (!transcode_muxer(out)) {
        code = usage("%s: what kind of file is that? Known: .mp4, .m4v, .mov, .mkv", out);
    } else if (wrong) {
        code = usage("-p %s: expected name=value", wrong);
    } else if (memory && !settings.max_bytes) {
        code = usage("--max-device-memory %s: expected a size such as 512M", memory);
    } else if (settings.norms && parse_norm_mode(settings.norms) < 0) {
        code = usage("--norm-mode %s: expected exact, previous, frozen, thumbnail, tile or auto", settings.norms);
    } else if (settings.scene_cut && !g_strv_contains(cuts, settings.scene_cut)) {
        code = usage("--scene-cut %s: expected auto, on or off", settings.scene_cut);
    } else if (settings.tile_width < 0 || settings.tile_height < 0 || settings.window < 0 || settings.hop < 0 ||
               settings.interpolate < 0 || settings.threads < 0) {
        code = usage("sizes, frames and threads are 0 or more");
    } else if (stat(inputs[0], &st) != 0) {
        g_printerr("vidgen: %s: %s\n", inputs[0], g_strerror(errno));
        code = EXIT_ERROR;
    } else if (same_file(inputs[0], out)) {
        code = usage("%s is the input too: it would be lost", out);
    } else if (!overwrite && g_file_test(out, G_FILE_TEST_EXISTS)) {
        code = usage("%s is there already; -y writes over it", out);
    } else {
        run.in = inputs[0];
        run.out = out;
        run.part = g_strconcat(out, ".part", NULL);
        code = run_file(&run, encoder ? encoder : DEFAULT_ENCODER, transcode_muxer(out), &settings);
        g_free(run.part);
    }

    g_clear_error(&error);
    g_clear_pointer(&settings.parameters, gst_structure_free);
    g_strfreev(values);
    g_strfreev(inputs);
    g_free(out);
    g_free(settings.model);
    g_free(settings.scene_cut);
    g_free(memory);
    g_free(settings.norms);
    g_free(encoder);
    return code;
}
