/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "transcode.h"

#include <string.h>

static const struct {
    const char *extension, *muxer;
} muxers[] = {{".mp4", "mp4mux"}, {".m4v", "mp4mux"}, {".mov", "qtmux"}, {".mkv", "matroskamux"}};

const char *transcode_muxer(const char *path)
{
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < G_N_ELEMENTS(muxers); i++)
        if (g_ascii_strcasecmp(dot, muxers[i].extension) == 0)
            return muxers[i].muxer;
    return NULL;
}

G_GNUC_PRINTF(2, 3) static void note(Transcode *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_mutex_lock(&t->lock);
    g_ptr_array_add(t->notes, text);
    g_mutex_unlock(&t->lock);
}

char *transcode_note(Transcode *t)
{
    g_mutex_lock(&t->lock);
    char *text = t->notes->len && t->counts.frames_in ? g_ptr_array_steal_index(t->notes, 0) : NULL;
    g_mutex_unlock(&t->lock);
    return text;
}

static GstClockTime running_time(GstPad *pad, GstBuffer *buffer)
{
    GstEvent *event = gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0);
    if (!event)
        return GST_CLOCK_TIME_NONE;
    const GstSegment *segment;
    gst_event_parse_segment(event, &segment);
    GstClockTime time = gst_segment_to_running_time(segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
    gst_event_unref(event);
    return time;
}

/* Ends a stream where it is: EOS to those below, and to the one above that asks for the next buffer. */
static GstPadProbeReturn end_stream(GstPad *pad, GstPadProbeInfo *info)
{
    gst_pad_push_event(pad, gst_event_new_eos());
    gst_buffer_unref(GST_PAD_PROBE_INFO_BUFFER(info));
    GST_PAD_PROBE_INFO_FLOW_RETURN(info) = GST_FLOW_EOS;
    return GST_PAD_PROBE_HANDLED;
}

static GstPadProbeReturn on_frame_in(GstPad *pad, GstPadProbeInfo *info, gpointer user)
{
    Transcode *t = user;
    GstClockTime time = running_time(pad, GST_PAD_PROBE_INFO_BUFFER(info));
    g_mutex_lock(&t->lock);
    gboolean stopping = t->stopping;
    if (!stopping) {
        t->counts.frames_in++;
        if (GST_CLOCK_TIME_IS_VALID(time))
            t->last = time;
    }
    g_mutex_unlock(&t->lock);
    return stopping ? end_stream(pad, info) : GST_PAD_PROBE_OK;
}

static GstPadProbeReturn on_frame_done(GstPad *pad, GstPadProbeInfo *info, gpointer user)
{
    Transcode *t = user;
    GstClockTime time = running_time(pad, GST_PAD_PROBE_INFO_BUFFER(info));
    g_mutex_lock(&t->lock);
    t->counts.frames_done++;
    if (GST_CLOCK_TIME_IS_VALID(time))
        t->counts.position = time;
    g_mutex_unlock(&t->lock);
    return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn on_frame_out(GstPad *pad, GstPadProbeInfo *info, gpointer user)
{
    Transcode *t = user;
    GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    if (GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_HEADER) && !GST_BUFFER_PTS_IS_VALID(buffer))
        return GST_PAD_PROBE_OK; /* a codec's header, no frame */
    g_mutex_lock(&t->lock);
    t->counts.frames_out++;
    g_mutex_unlock(&t->lock);
    return GST_PAD_PROBE_OK;
}

/* After a stop, sound ends with the last frame.  This is behind the sound's queue, where the muxer keeps it in step
 * with the picture. */
static GstPadProbeReturn on_sound(GstPad *pad, GstPadProbeInfo *info, gpointer user)
{
    Transcode *t = user;
    GstClockTime time = running_time(pad, GST_PAD_PROBE_INFO_BUFFER(info));
    g_mutex_lock(&t->lock);
    gboolean over = t->stopping && GST_CLOCK_TIME_IS_VALID(t->last) && GST_CLOCK_TIME_IS_VALID(time) && time > t->last;
    g_mutex_unlock(&t->lock);
    return over ? end_stream(pad, info) : GST_PAD_PROBE_OK;
}

/* Where the encoder leaves a choice: 4:2:0, which every player can show; but in most encoders that has no odd sizes:
 * there full chroma. */
static GstPadProbeReturn on_encoder_caps(GstPad *pad, GstPadProbeInfo *info, gpointer filter)
{
    GstEvent *event = GST_PAD_PROBE_INFO_EVENT(info);
    if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS)
        return GST_PAD_PROBE_OK;
    GstCaps *caps;
    gst_event_parse_caps(event, &caps);
    int width = 0, height = 0;
    gst_structure_get(gst_caps_get_structure(caps, 0), "width", G_TYPE_INT, &width, "height", G_TYPE_INT, &height, NULL);
    GstPad *src = gst_element_get_static_pad(filter, "src");
    GstCaps *taken = gst_pad_peer_query_caps(src, NULL);
    caps = gst_caps_from_string(width % 2 || height % 2 ? "video/x-raw, format = { Y444, GBR, RGB, BGR }"
                                                        : "video/x-raw, format = I420");
    if (!gst_caps_can_intersect(taken, caps))
        gst_caps_replace(&caps, GST_CAPS_ANY);
    g_object_set(filter, "caps", caps, NULL);
    gst_caps_unref(caps);
    gst_caps_unref(taken);
    gst_object_unref(src);
    return GST_PAD_PROBE_OK;
}

static void on_rate(GstPad *pad, GParamSpec *spec, gpointer user)
{
    Transcode *t = user;
    GstCaps *caps = gst_pad_get_current_caps(pad);
    int num = 0, den = 1;
    if (caps)
        gst_structure_get_fraction(gst_caps_get_structure(caps, 0), "framerate", &num, &den);
    g_mutex_lock(&t->lock);
    t->counts.rate_num = num;
    t->counts.rate_den = den;
    g_mutex_unlock(&t->lock);
    gst_clear_caps(&caps);
}

static void add_probe(GstElement *element, const char *name, GstPadProbeType type, GstPadProbeCallback callback,
                      gpointer user)
{
    GstPad *pad = gst_element_get_static_pad(element, name);
    gst_pad_add_probe(pad, type, callback, user, NULL);
    gst_object_unref(pad);
}

/* Adds an element behind what is being linked; takes the floating reference. */
static void extend(Transcode *t, GstElement *element, GstPad **end)
{
    gst_bin_add(GST_BIN(t->pipeline), element);
    GstPad *sink = gst_element_get_static_pad(element, "sink");
    gst_pad_link(*end, sink);
    gst_object_unref(sink);
    gst_object_unref(*end);
    *end = gst_element_get_static_pad(element, "src");
    gst_element_sync_state_with_parent(element);
}

/* Whether the muxer takes sound of this kind, whatever its framing: parsers see to that. */
static gboolean muxer_takes(GstElement *muxer, const GstStructure *sound)
{
    static const char *const kind[] = {"mpegversion", "layer"};
    GstStructure *bare = gst_structure_new_empty(gst_structure_get_name(sound));
    for (size_t i = 0; i < G_N_ELEMENTS(kind); i++)
        if (gst_structure_has_field(sound, kind[i]))
            gst_structure_set_value(bare, kind[i], gst_structure_get_value(sound, kind[i]));
    GstCaps *caps = gst_caps_new_full(bare, NULL);
    GstPadTemplate *template = gst_element_get_pad_template(muxer, "audio_%u");
    GstCaps *taken = template ? gst_pad_template_get_caps(template) : gst_caps_new_empty();
    gboolean takes = gst_caps_can_intersect(taken, caps);
    gst_caps_unref(taken);
    gst_caps_unref(caps);
    return takes;
}

/* Sound that the muxer takes is not decoded. */
static gboolean on_autoplug(GstElement *source, GstPad *pad, GstCaps *caps, gpointer user)
{
    Transcode *t = user;
    const GstStructure *s = gst_caps_get_structure(caps, 0);
    return !g_str_has_prefix(gst_structure_get_name(s), "audio/") || !muxer_takes(t->muxer, s);
}

static GstElement *make_parser(GstCaps *caps)
{
    GList *all = gst_element_factory_list_get_elements(GST_ELEMENT_FACTORY_TYPE_PARSER, GST_RANK_MARGINAL);
    GList *fit = gst_element_factory_list_filter(all, caps, GST_PAD_SINK, FALSE);
    fit = g_list_sort(fit, gst_plugin_feature_rank_compare_func);
    GstElement *parser = fit ? gst_element_factory_create(fit->data, NULL) : NULL;
    gst_plugin_feature_list_free(fit);
    gst_plugin_feature_list_free(all);
    return parser;
}

static void link_sound(Transcode *t, GstPad *pad, GstCaps *caps)
{
    const GstStructure *s = gst_caps_get_structure(caps, 0);
    GstPad *end = gst_object_ref(pad);
    if (muxer_takes(t->muxer, s)) {
        GstElement *parser = make_parser(caps);
        if (parser)
            extend(t, parser, &end);
    } else {
        GError *error = NULL;
        GstElement *encoder = gst_parse_bin_from_description_full(
            "audioconvert ! audioresample ! avenc_aac bitrate=192000 ! aacparse", TRUE, NULL,
            GST_PARSE_FLAG_FATAL_ERRORS, &error);
        if (!encoder) {
            note(t, "sound is left out: this kind of file cannot hold it as it is, and there is no AAC encoder: %s",
                 error->message);
            g_clear_error(&error);
            encoder = gst_element_factory_make("fakesink", NULL);
            g_object_set(encoder, "sync", FALSE, "async", FALSE, NULL);
            extend(t, encoder, &end);
            return;
        }
        note(t, "this kind of file cannot hold the sound as it is; encoded as AAC");
        extend(t, encoder, &end);
    }
    /* Sound waits here for the picture, which is many frames late behind model and encoder.  It is small, and how far
     * it is ahead is bounded by the queues of the picture: a limit here could only lock the two against each other. */
    GstElement *queue = gst_element_factory_make("queue", NULL);
    g_object_set(queue, "max-size-buffers", 0, "max-size-bytes", 0, "max-size-time", (guint64)0, NULL);
    extend(t, queue, &end);
    gst_pad_add_probe(end, GST_PAD_PROBE_TYPE_BUFFER, on_sound, t, NULL);
    GstPad *sink = gst_element_request_pad_simple(t->muxer, "audio_%u");
    if (!sink || GST_PAD_LINK_FAILED(gst_pad_link(end, sink)))
        GST_ELEMENT_ERROR(t->pipeline, STREAM, MUX, ("The sound cannot be put into this kind of file; try .mkv"),
                          ("%" GST_PTR_FORMAT, caps));
    g_clear_object(&sink);
    gst_object_unref(end);
}

static void on_stream(GstElement *source, GstPad *pad, gpointer user)
{
    Transcode *t = user;
    GstCaps *caps = gst_pad_get_current_caps(pad);
    if (!caps)
        caps = gst_pad_query_caps(pad, NULL);
    const char *name = gst_structure_get_name(gst_caps_get_structure(caps, 0));
    GstPad *sink = gst_element_get_static_pad(t->video, "sink");
    if (g_str_has_prefix(name, "audio/")) {
        link_sound(t, pad, caps);
    } else if (g_str_has_prefix(name, "video/") && !gst_pad_is_linked(sink)) {
        gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_frame_in, t, NULL);
        g_signal_connect(pad, "notify::caps", G_CALLBACK(on_rate), t);
        on_rate(pad, NULL, t);
        gst_pad_link(pad, sink);
    } else {
        note(t, "%s: left out, not handled yet", name);
        GstElement *end = gst_element_factory_make("fakesink", NULL);
        g_object_set(end, "sync", FALSE, "async", FALSE, NULL);
        GstPad *from = gst_object_ref(pad);
        extend(t, end, &from);
    }
    gst_object_unref(sink);
    gst_caps_unref(caps);
}

static void on_all_streams(GstElement *source, gpointer user)
{
    Transcode *t = user;
    GstPad *sink = gst_element_get_static_pad(t->video, "sink");
    if (!gst_pad_is_linked(sink))
        GST_ELEMENT_ERROR(t->pipeline, STREAM, TYPE_NOT_FOUND, ("There is no video in it that can be decoded"), (NULL));
    gst_object_unref(sink);
}

Transcode *transcode_new(const TranscodeSettings *settings, GError **error)
{
    char *fixed = g_strdup_printf(
        "uridecodebin name=source "
        "queue name=video max-size-buffers=%d max-size-bytes=0 max-size-time=0 ! videoconvert ! vidgen name=model ! "
        "queue max-size-buffers=%d max-size-bytes=0 max-size-time=0 ! videoconvert name=convert ! capsfilter name=caps "
        "%s name=muxer ! filesink name=file async=false",
        TRANSCODE_FRAMES_AHEAD, TRANSCODE_FRAMES_AHEAD, settings->muxer);
    GstElement *pipeline = gst_parse_launch_full(fixed, NULL, GST_PARSE_FLAG_FATAL_ERRORS, error);
    g_free(fixed);
    if (!pipeline)
        return NULL;
    GstElement *encoder = gst_parse_bin_from_description_full(settings->encoder, TRUE, NULL,
                                                              GST_PARSE_FLAG_FATAL_ERRORS, error);
    if (!encoder) {
        gst_object_unref(pipeline);
        return NULL;
    }

    Transcode *t = g_new0(Transcode, 1);
    g_mutex_init(&t->lock);
    t->pipeline = pipeline;
    t->notes = g_ptr_array_new_with_free_func(g_free);
    t->counts.position = t->last = GST_CLOCK_TIME_NONE;

    GstBin *bin = GST_BIN(pipeline);
    gst_bin_add(bin, encoder);
    GstElement *source = gst_bin_get_by_name(bin, "source"), *file = gst_bin_get_by_name(bin, "file");
    GstElement *convert = gst_bin_get_by_name(bin, "convert"), *filter = gst_bin_get_by_name(bin, "caps");
    t->model = gst_bin_get_by_name(bin, "model");
    t->video = gst_bin_get_by_name(bin, "video");
    t->muxer = gst_bin_get_by_name(bin, "muxer");

    GstPad *sink = gst_element_request_pad_simple(t->muxer, "video_%u");
    GstPad *coded = gst_element_get_static_pad(encoder, "src");
    gboolean linked = gst_element_link(filter, encoder) && coded && sink && !GST_PAD_LINK_FAILED(gst_pad_link(coded, sink));
    if (linked) {
        g_object_set(source, "uri", settings->uri, NULL);
        g_signal_connect(source, "autoplug-continue", G_CALLBACK(on_autoplug), t);
        g_object_set(file, "location", settings->path, NULL);
        g_signal_connect(source, "pad-added", G_CALLBACK(on_stream), t);
        g_signal_connect(source, "no-more-pads", G_CALLBACK(on_all_streams), t);
        add_probe(t->model, "src", GST_PAD_PROBE_TYPE_BUFFER, on_frame_done, t);
        add_probe(convert, "sink", GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, on_encoder_caps, filter);
        gst_pad_add_probe(sink, GST_PAD_PROBE_TYPE_BUFFER, on_frame_out, t, NULL);
    } else {
        g_set_error(error, GST_CORE_ERROR, GST_CORE_ERROR_NEGOTIATION,
                    "\"%s\" does not take raw video and give what %s takes; a parser may be missing "
                    "(x265enc ! h265parse)", settings->encoder, settings->muxer);
    }
    gst_clear_object(&coded);
    gst_clear_object(&sink);
    /* The pipeline keeps them all for as long as t lives. */
    gst_object_unref(source);
    gst_object_unref(file);
    gst_object_unref(convert);
    gst_object_unref(filter);
    gst_object_unref(t->model);
    gst_object_unref(t->video);
    gst_object_unref(t->muxer);
    if (!linked) {
        transcode_free(t);
        return NULL;
    }
    return t;
}

void transcode_free(Transcode *t)
{
    if (!t)
        return;
    gst_element_set_state(t->pipeline, GST_STATE_NULL);
    gst_object_unref(t->pipeline);
    g_ptr_array_unref(t->notes);
    g_mutex_clear(&t->lock);
    g_free(t);
}

void transcode_counts(Transcode *t, TranscodeCounts *counts)
{
    g_mutex_lock(&t->lock);
    *counts = t->counts;
    g_mutex_unlock(&t->lock);
}

void transcode_stop(Transcode *t)
{
    g_mutex_lock(&t->lock);
    t->stopping = TRUE;
    g_mutex_unlock(&t->lock);
}
