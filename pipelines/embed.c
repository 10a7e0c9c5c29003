/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* vidgen inside an application that has its pictures in memory, and wants them back there.
 *
 * appsrc and appsink are the two doors: pictures go in at one and come out, styled, at the other, in order and with the
 * timestamps that they went in with.  Here ten pictures of a moving bar, painted in the default style.
 *
 *     cc embed.c $(pkg-config --cflags --libs gstreamer-app-1.0) -o embed && ./embed */
#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <gst/gst.h>

enum { WIDTH = 320, HEIGHT = 240, FRAMES = 10, FPS = 25 };

/* caps say what the bytes are.  format=time: buffers carry timestamps.  block: a push waits while the pipeline is busy,
 * so pictures do not pile up in memory.  sync=false: take each as soon as it is made, not when it would be shown. */
static const char description[] =
    "appsrc name=in format=time block=true max-buffers=2 caps=video/x-raw,format=RGB,width=320,height=240,framerate=25/1 "
    "! vidgen parameters=\"p,style_weights=<0.0,1.0,0.0>\" ! appsink name=out sync=false max-buffers=2";

/* Picture i: white with a black bar.  Rows of RGB are padded to a multiple of four bytes; 320 * 3 is one already. */
static GstBuffer *make_picture(int i)
{
    gsize size = WIDTH * HEIGHT * 3;
    guint8 *bytes = g_malloc(size);
    for (gsize k = 0; k < size; k++)
        bytes[k] = k / 3 % WIDTH / 20 == (gsize)i ? 0 : 255;
    GstBuffer *buffer = gst_buffer_new_wrapped(bytes, size); /* the buffer frees them */
    GST_BUFFER_PTS(buffer) = gst_util_uint64_scale(i, GST_SECOND, FPS);
    GST_BUFFER_DURATION(buffer) = GST_SECOND / FPS;
    return buffer;
}

/* appsrc takes pictures on a thread of its own, so that this one can wait for what comes out. */
static gpointer push_pictures(gpointer source)
{
    for (int i = 0; i < FRAMES; i++)
        if (gst_app_src_push_buffer(source, make_picture(i)) != GST_FLOW_OK) /* takes the buffer */
            break;
    gst_app_src_end_of_stream(source);
    return NULL;
}

/* Returns how many pictures came back; NULL from the sink is the end, be it good or bad. */
static int pull_pictures(GstAppSink *sink)
{
    int n = 0;
    for (GstSample *sample; (sample = gst_app_sink_pull_sample(sink)); n++) {
        GstBuffer *buffer = gst_sample_get_buffer(sample);
        GstMapInfo map;
        guint64 sum = 0;
        if (gst_buffer_map(buffer, &map, GST_MAP_READ)) {
            for (gsize k = 0; k < map.size; k++)
                sum += map.data[k];
            g_print("%" GST_TIME_FORMAT ": %zu bytes, mean %.1f\n", GST_TIME_ARGS(GST_BUFFER_PTS(buffer)), map.size,
                    (double)sum / map.size);
            gst_buffer_unmap(buffer, &map);
        }
        gst_sample_unref(sample);
    }
    return n;
}

int main(int argc, char **argv)
{
    GError *error = NULL;
    gst_init(&argc, &argv);
    GstElement *pipeline = gst_parse_launch(description, &error);
    if (!pipeline || error) { /* error with a pipeline: an element is missing */
        g_printerr("%s\n", error->message);
        return 1;
    }
    GstElement *in = gst_bin_get_by_name(GST_BIN(pipeline), "in");
    GstElement *out = gst_bin_get_by_name(GST_BIN(pipeline), "out");
    /* The model is loaded here: without one this fails, and the bus tells why. */
    gboolean playing = gst_element_set_state(pipeline, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE;
    GThread *pusher = playing ? g_thread_new("push", push_pictures, in) : NULL;
    int n = playing ? pull_pictures(GST_APP_SINK(out)) : 0;

    GstBus *bus = gst_element_get_bus(pipeline);
    GstMessage *message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
    if (message) {
        gst_message_parse_error(message, &error, NULL);
        g_printerr("%s\n", error->message);
        g_error_free(error);
        gst_message_unref(message);
    }
    gst_element_set_state(pipeline, GST_STATE_NULL); /* also ends a push that waits */
    if (pusher)
        g_thread_join(pusher);
    gst_object_unref(bus);
    gst_object_unref(in);
    gst_object_unref(out);
    gst_object_unref(pipeline);
    g_print("%d of %d pictures came back\n", n, FRAMES);
    return n == FRAMES ? 0 : 1;
}
