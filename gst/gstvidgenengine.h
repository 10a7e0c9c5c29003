/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A model planned for one frame size, and the device that it runs on.
 *
 * Each has a device of its own, so that the next one can be planned on vidgenchunk's thread while tiles of this one
 * still run on another: no lock is held while a tile runs.  The device's memory is taken by open and not before.
 *
 * With a context (gstvidgencuda.h) the device is that context's, and frames in its memory are read and written where
 * they lie. */
#ifndef GST_VIDGEN_ENGINE_H
#define GST_VIDGEN_ENGINE_H

#include "gstvidgensizes.h"
#include "gstvidgentilemeta.h"

#include "../model/run.h"

G_BEGIN_DECLS

typedef struct
{
  struct vg_model *model; /* a reference */
  const struct vgk_backend *backend;
  struct vg_plan_request request;
  struct vgk_device_options options;
  GstObject *context; /* a reference, NULL = none */
  struct vgk_device *device;
  struct vg_plan *plan;
  struct vg_run *run;    /* NULL until opened */
  GstVidgenGrid *grid;   /* what vidgenchunk cuts frames by */
  gboolean whole;        /* a buffer is a frame: nobody asked for the grid */
  guint serial;          /* of the parameters that the run has, 0 = its defaults */
  GstVideoFrame *mapped; /* room for a window's frames, in and out */
  struct vgk_frame *frames;
  struct
  {
    GstBuffer **buffers;   /* references, of what the device still reads or writes or what is to be copied */
    GstVideoFrame *mapped; /* they stay mapped: in and out */
    struct vgk_frame *frames;
  } flight[VGK_FLIGHTS];
  gint landing; /* the flight that is waited for next */
  GstBuffer **fetched;   /* room for a window's frames on the host, where they are needed there */
} GstVidgenEngine;

typedef enum
{
  GST_VIDGEN_DEVICE_AUTO, /* CUDA if it can be had, else the CPU; a log tells why */
  GST_VIDGEN_DEVICE_CPU,
  GST_VIDGEN_DEVICE_CUDA,
} GstVidgenDevice;

/* Plans; NULL with the error of vg_plan_make or of the device.  context, or NULL: where to, if it is CUDA. */
GstVidgenEngine *gst_vidgen_engine_new (struct vg_model *model, GstVidgenDevice device,
    const struct vgk_device_options *options, GstObject *context, const struct vg_plan_request *request,
    GError **error);
/* The same for frames in CUDA memory: only CUDA will do, in that context. */
GstVidgenEngine *gst_vidgen_engine_new_in_cuda (struct vg_model *model, GstVidgenDevice device,
    const struct vgk_device_options *options, GstObject *context, const struct vg_plan_request *request,
    GError **error);
/* What runs ends early, with an error, when *stop is set (atomically, by any thread). */
gboolean gst_vidgen_engine_open (GstVidgenEngine *engine, const gint *stop, GError **error);
void gst_vidgen_engine_free (GstVidgenEngine *engine); /* NULL is fine */

/* The same again in another context, opened, with the model's default parameters.  FALSE: nothing is open any more. */
gboolean gst_vidgen_engine_move (GstVidgenEngine *engine, GstObject *context, const gint *stop, GError **error);

/* What the model does to sizes and rates; emit: new frames of an interpolator, 0 = as the model says. */
GstVidgenScale gst_vidgen_engine_scale (const struct vg_model *model, gint emit);

/* The size of the buffers that it runs on. */
gboolean gst_vidgen_engine_takes (const GstVidgenEngine *engine, const GstVideoInfo *info);

/* All parameters' values, one behind the other. */
gboolean gst_vidgen_engine_set_parameters (GstVidgenEngine *engine, const gfloat *values, GError **error);

/* Frames of a run: window in and emit out; how far it moves on; which frame the result stands for. */
#define gst_vidgen_engine_info(engine) vg_plan_info ((engine)->plan)

/* Before a frame's first tile, or before the buffer where that is a frame: what norms want of it; see vg_run_begin.
 * compare: and does it exactly, to compare. */
gboolean gst_vidgen_engine_begin (GstVidgenEngine *engine, const GstVideoInfo *in_info, GstBuffer *const *in,
    const GstVideoInfo *out_info, const struct vgk_colour *colour, gboolean compare, GError **error);

/* Runs the model on a window of buffers, in[window] to out[emit], which are a tile's (its meta) or frames (tile NULL).
 * Of a tile that hangs over its frame, only what lies in the frame is run, as it is without tiles: chroma's last
 * samples are then the mean of the frame's pixels alone.  What hangs over repeats the edge, in as well as out. */
gboolean gst_vidgen_engine_run (GstVidgenEngine *engine, const GstVidgenTileMeta *tile, const GstVideoInfo *in_info,
    GstBuffer *const *in, const GstVideoInfo *out_info, GstBuffer *const *out, const struct vgk_colour *colour,
    GError **error);

/* The same in two steps, where the run flies (vg_run_start): when start returns, buffers of the window that lie on the host
 * may be changed; the others are kept until they are waited for, and so are those that go out.  numbers: of the window's frames,
 * not 0, the same for all tiles of a frame.  wait: for what was started first; wanted FALSE: nobody wants it. */
gboolean gst_vidgen_engine_start (GstVidgenEngine *engine, const GstVidgenTileMeta *tile, const GstVideoInfo *in_info,
    GstBuffer *const *in, const guint64 *numbers, const GstVideoInfo *out_info, GstBuffer *const *out,
    const struct vgk_colour *colour, GError **error);
gboolean gst_vidgen_engine_wait (GstVidgenEngine *engine, gboolean wanted, GError **error);

G_END_DECLS

#endif
