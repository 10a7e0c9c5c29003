/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-vidgen
 * @title: vidgen
 * @short_description: Runs a neural network (ONNX) over video, tile by tile, in bounded memory
 * @see_also: vidgenchunk, vidgenmodel, vidgenstitch
 *
 * Styles, upscales or restores video with an ONNX image model.  Frames are cut into overlapping tiles, the model runs
 * on each, and the result is put together again as if the model had seen the whole frame: how much tiles must overlap
 * is read off the model's graph.  The memory that this takes is known, and announced on the bus, before the first
 * frame, and max-device-memory caps it.
 *
 * It runs on any machine, with a model that comes with it, and takes what decoders give (I420, NV12, RGB of all
 * orders).  Timestamps, flags and metas of the frames are kept.  Without a model-file video is painted in a style; the
 * weights of the three styles can be changed while it plays, and so can the model.
 *
 * Models may take single frames or several; one that makes new frames between two raises the frame rate.
 *
 * Every frame is made, however late, unless qos is set: then frames that the sink is past are dropped whole, before any
 * work is done on them.
 *
 * With device=cuda frames may be in CUDA memory where they come in, where they leave, or both: see #vidgenmodel.
 *
 * This is a bin of #vidgenchunk ! #vidgenmodel ! #vidgenstitch and has all their properties.  Use the three when
 * something else is to happen to the tiles, or queues are wanted between them.
 *
 * ## Examples
 * |[
 * gst-launch-1.0 filesrc location=in.mp4 ! decodebin ! videoconvert ! vidgen ! videoconvert ! autovideosink
 * ]| Plays a film, painted.
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=50 ! video/x-raw,width=320,height=240 ! vidgen parameters="p,style_weights=<0.0,0.0,1.0>" ! videoconvert ! autovideosink
 * ]| Paints a test picture in the third style, pastel.
 * |[
 * gst-launch-1.0 filesrc location=in.mp4 ! decodebin ! videoconvert ! vidgen model-file=upscale2x max-device-memory=100000000 ! videoconvert ! x264enc ! mp4mux ! filesink location=out.mp4
 * ]| Doubles width and height of a film, in no more than 100 MB.
 *
 * Since: 0.1
 */
#include "gstvidgenbin.h"

#include <string.h>

#include "gstvidgenchunk.h"
#include "gstvidgenframe.h"
#include "gstvidgenmodel.h"
#include "gstvidgenstitch.h"

enum
{
  CHUNK,
  MODEL,
  STITCH,
  N_CHILDREN
};

struct _GstVidgenBin
{
  GstBin parent;

  GstElement *children[N_CHILDREN];
};

#define gst_vidgen_bin_parent_class parent_class
G_DEFINE_TYPE (GstVidgenBin, gst_vidgen_bin, GST_TYPE_BIN);
GST_ELEMENT_REGISTER_DEFINE (vidgen, "vidgen", GST_RANK_NONE, GST_TYPE_VIDGEN_BIN);

/* The class' properties are its children's: property id i is that of children[owners->data[i - 1]]. */
static GArray *owners;

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
    GST_STATIC_CAPS (GST_VIDGEN_MODEL_SINK_CAPS));
static GstStaticPadTemplate src_template =
GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_VIDGEN_MODEL_SRC_CAPS));

static GstElement *
owner_of (GObject *object, guint id)
{
  return GST_VIDGEN_BIN (object)->children[g_array_index (owners, guint, id - 1)];
}

static void
gst_vidgen_bin_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  g_object_set_property (G_OBJECT (owner_of (object, id)), pspec->name, value);
}

static void
gst_vidgen_bin_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  g_object_get_property (G_OBJECT (owner_of (object, id)), pspec->name, value);
}

static void
forward_notify (GObject *bin, GParamSpec *pspec, GObject *child)
{
  if (pspec->owner_type == G_OBJECT_TYPE (child))
    g_object_notify (bin, pspec->name);
}

/* A copy of a child's property of whatever type, for a class of ours: the same name, words, flags, range and default.
 * Shares what the original points to, which lives as long as its class, and that is for ever. */
static GParamSpec *
copy_property (GParamSpec *original)
{
  GParamSpec *copy = g_param_spec_internal (G_PARAM_SPEC_TYPE (original), original->name,
      g_param_spec_get_nick (original), g_param_spec_get_blurb (original), original->flags);
  GTypeQuery type;

  g_type_query (G_PARAM_SPEC_TYPE (original), &type);
  memcpy (copy + 1, original + 1, type.instance_size - sizeof *copy);
  copy->value_type = original->value_type;
  return copy;
}

/* The properties that the child's own class has, not those of its bases ("name", "qos"). */
static void
install_properties_of (GObjectClass *klass, GType child, guint index)
{
  GObjectClass *child_class = g_type_class_ref (child); /* kept: see copy_property */
  GParamSpec **list;
  guint n;

  list = g_object_class_list_properties (child_class, &n);
  for (guint i = 0; i < n; i++) {
    if (list[i]->owner_type != child)
      continue;
    g_array_append_val (owners, index);
    g_object_class_install_property (klass, owners->len, copy_property (list[i]));
  }
  g_free (list);
}

static void
add_ghost_pad (GstVidgenBin *self, const gchar *name, GstElement *child)
{
  GstPad *target = gst_element_get_static_pad (child, name);
  GstPadTemplate *template = gst_element_class_get_pad_template (GST_ELEMENT_GET_CLASS (self), name);

  gst_element_add_pad (GST_ELEMENT (self), gst_ghost_pad_new_from_template (name, target, template));
  gst_object_unref (target);
}

static void
gst_vidgen_bin_class_init (GstVidgenBinClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  object_class->set_property = gst_vidgen_bin_set_property;
  object_class->get_property = gst_vidgen_bin_get_property;
  owners = g_array_new (FALSE, FALSE, sizeof (guint));
  install_properties_of (object_class, GST_TYPE_VIDGEN_MODEL, MODEL);
  install_properties_of (object_class, GST_TYPE_VIDGEN_CHUNK, CHUNK);
  install_properties_of (object_class, GST_TYPE_VIDGEN_STITCH, STITCH);

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "Neural video", "Filter/Effect/Video",
      "Styles, upscales or restores video with an ONNX model, tile by tile, in bounded memory", "the vidgen authors");
}

static void
gst_vidgen_bin_init (GstVidgenBin *self)
{
  self->children[CHUNK] = g_object_new (GST_TYPE_VIDGEN_CHUNK, "name", "chunk", NULL);
  self->children[MODEL] = g_object_new (GST_TYPE_VIDGEN_MODEL, "name", "model", NULL);
  self->children[STITCH] = g_object_new (GST_TYPE_VIDGEN_STITCH, "name", "stitch", NULL);
  for (guint i = 0; i < N_CHILDREN; i++) {
    gst_bin_add (GST_BIN (self), self->children[i]);
    g_signal_connect_object (self->children[i], "notify", G_CALLBACK (forward_notify), self, G_CONNECT_SWAPPED);
  }
  gst_element_link_many (self->children[CHUNK], self->children[MODEL], self->children[STITCH], NULL);
  add_ghost_pad (self, "sink", self->children[CHUNK]);
  add_ghost_pad (self, "src", self->children[STITCH]);
}
