/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A pipeline from a video file through the element vidgen into another file.  Sound is copied, or encoded anew where
 * the container cannot hold it; the picture's frames are counted on both ends.
 *
 *     Transcode *t = transcode_new(&settings, &error);
 *     gst_element_set_state(t->pipeline, GST_STATE_PLAYING);      EOS or ERROR on its bus ends it
 *     transcode_counts(t, &counts);                                at any time, from any thread
 *     transcode_free(t);
 *
 * Between decoder, model and encoder lie queues of FRAMES_AHEAD frames, so that the three work at the same time on a
 * bounded number of frames. */
#ifndef TRANSCODE_H
#define TRANSCODE_H

#include <gst/gst.h>

#define TRANSCODE_FRAMES_AHEAD 3

typedef struct {
    const char *uri;     /* what to read */
    const char *path;    /* what to write */
    const char *muxer;   /* transcode_muxer() */
    const char *encoder; /* a piece of pipeline as gst-launch-1.0 takes it */
} TranscodeSettings;

typedef struct {
    guint64 frames_in;  /* decoded */
    guint64 frames_done; /* out of the model */
    guint64 frames_out; /* encoded and in the muxer */
    GstClockTime position; /* running time of the last frame out of the model, or GST_CLOCK_TIME_NONE */
    int rate_num, rate_den; /* of the decoded video; 0 = varies or unknown */
} TranscodeCounts;

typedef struct {
    GstElement *pipeline; /* owned */
    GstElement *model;    /* the element vidgen in it, for its properties; owned by the pipeline */

    GMutex lock; /* the rest is private */
    TranscodeCounts counts;
    GstElement *video, *muxer;
    gboolean stopping;
    GstClockTime last; /* running time of the last frame in */
    GPtrArray *notes;
} Transcode;

/* The muxer for a path's extension, NULL when none is known. */
const char *transcode_muxer(const char *path);

/* NULL and error: an element is missing, or the encoder's text is wrong. */
Transcode *transcode_new(const TranscodeSettings *, GError **);
void transcode_free(Transcode *); /* NULL is fine; stops the pipeline first */

void transcode_counts(Transcode *, TranscodeCounts *);

/* No further frame goes in; those inside come out, then EOS: the file is whole up to there.  Any thread. */
void transcode_stop(Transcode *);

/* The next thing that was done to a stream and should be told ("sound: ... is encoded anew"), NULL when there is none,
 * or no picture has come yet: of what has none there is nothing to tell but that.  To be freed. */
char *transcode_note(Transcode *);

#endif
