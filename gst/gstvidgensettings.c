/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgensettings.h"

#define MAX_THREADS 256

GType
gst_vidgen_norm_mode_get_type (void)
{
  static GType type;
  static const GEnumValue values[] = {
    {VG_NORM_EXACT, "Each frame's own statistics", "exact"},
    {VG_NORM_PREVIOUS, "Those of the frames before, smoothed: one pass; the first frame and cuts are exact", "previous"},
    {VG_NORM_FROZEN, "Constants, stored beside the model or measured on the first frames: one pass, tiles are exact",
          "frozen"},
    {VG_NORM_THUMBNAIL, "Those of the frame reduced to 512 pixels, which runs first: tiles are exact", "thumbnail"},
    {VG_NORM_TILE, "Each tile's own: tiles can be seen", "tile"},
    {VG_NORM_AUTO, "exact; for live streams frozen if stored beside the model, else previous", "auto"},
    {0, NULL, NULL},
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GstVidgenNormMode", values));
  return type;
}

GType
gst_vidgen_scene_cut_get_type (void)
{
  static GType type;
  static const GEnumValue values[] = {
    {GST_VIDGEN_SCENE_CUT_AUTO, "Where the model looks at more than one frame", "auto"},
    {GST_VIDGEN_SCENE_CUT_ON, "Always", "on"},
    {GST_VIDGEN_SCENE_CUT_OFF, "Never", "off"},
    {0, NULL, NULL},
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GstVidgenSceneCut", values));
  return type;
}

GType
gst_vidgen_precision_get_type (void)
{
  static GType type;
  static const GEnumValue values[] = {
    {VG_PRECISION_AUTO, "fp16 on CUDA, fp32 on the CPU", "auto"},
    {VG_PRECISION_FP32, "All in single precision", "fp32"},
    {VG_PRECISION_FP16, "Activations in half, sums in single; tiles that overflow are run again in single", "fp16"},
    {VG_PRECISION_BF16, "Products of bf16 with sums in single, on a CPU with AVX512-BF16 or AMX", "bf16"},
    {0, NULL, NULL},
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GstVidgenPrecision", values));
  return type;
}

GType
gst_vidgen_device_get_type (void)
{
  static GType type;
  static const GEnumValue values[] = {
    {GST_VIDGEN_DEVICE_AUTO, "CUDA if there is a GPU for it, else the CPU (the log and active-device tell)", "auto"},
    {GST_VIDGEN_DEVICE_CPU, "The CPU", "cpu"},
    {GST_VIDGEN_DEVICE_CUDA, "An NVIDIA GPU; an error where there is none", "cuda"},
    {0, NULL, NULL},
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GstVidgenDevice", values));
  return type;
}

void
gst_vidgen_settings_install (GObjectClass *klass)
{
  /**
   * GstVidgenModel:model-file:
   *
   * Set while playing, the file is loaded at once and takes over between two frames; if it cannot be used, what runs
   * goes on, and a warning tells why.
   */
  g_object_class_install_property (klass, GST_VIDGEN_SETTING_MODEL_FILE,
      g_param_spec_string ("model-file", "Model file",
          "The model: path of an ONNX file, or the name of one of the models that were installed (style3, upscale2x) "
          "or that lie in VIDGEN_MODEL_PATH",
          GST_VIDGEN_DEFAULT_MODEL, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING));
  g_object_class_install_property (klass, GST_VIDGEN_SETTING_THREADS,
      g_param_spec_uint ("threads", "Threads", "Threads that compute (0 = as many as this process may use)", 0,
          MAX_THREADS, 0, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (klass, GST_VIDGEN_SETTING_MAX_DEVICE_MEMORY,
      g_param_spec_uint64 ("max-device-memory", "Max device memory",
          "Hard cap in bytes on the memory that the model takes; what does not fit is refused before the first frame, "
          "with the least that would do (0 = no cap but half of what is free)",
          0, G_MAXUINT64, 0, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY));
  /**
   * GstVidgenModel:exact-products:
   *
   * The fast way to the products of a convolution (Winograd's) works in blocks of pixels.  Tiles that hold such blocks
   * whole equal the untiled frame bit for bit; smaller ones take the direct way (the plan tells: "direct-products"),
   * and then differ from the untiled frame by rounding: one step of 255 in a few values of a million.  With this
   * property all goes the direct way, and tiles of any size equal the untiled frame of the same setting.
   */
  g_object_class_install_property (klass, GST_VIDGEN_SETTING_EXACT_PRODUCTS,
      g_param_spec_boolean ("exact-products", "Exact products",
          "Convolutions by direct products only, three to four times slower: tiles of any size then equal the whole "
          "frame bit for bit (else small tiles differ from it by rounding: one 8-bit step in a few values of a "
          "million)",
          FALSE, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY));
  /**
   * GstVidgenModel:norm-mode:
   *
   * Models with instance or group norms stretch every frame by its own statistics, which are known only when the whole
   * frame has come that far.
   *
   * "previous" takes those of the frames before, smoothed, while this frame's are measured on the way: in bounded memory
   * that is one pass instead of one for each norm.  How far the statistics were off is in `stats` ("norm-drift", in
   * deviations; above 0.8 the frame is a cut, "norm-cuts", and done exactly).
   *
   * "frozen" uses the same statistics for all frames, so that norms are constants in the convolutions: as fast as a model
   * without norms, tiles are exact, nothing flickers, but colours follow the scene's own brightness.  `vidgen freeze`
   * measures them and stores them beside the model (NAME.norms); else they are the mean of the first 8 frames, which are
   * done exactly, and measured again when the parameters change.
   *
   * "auto" is "exact", but for live streams, which have no time for it, "frozen" where statistics are stored, else
   * "previous".
   *
   * All the same for models that have no such norms.  What else looks at a whole frame (attention) is not touched by
   * this: the plan names it.
   */
  g_object_class_install_property (klass, GST_VIDGEN_SETTING_NORM_MODE,
      g_param_spec_enum ("norm-mode", "Norm mode", "Whose statistics norms over the whole frame use",
          GST_TYPE_VIDGEN_NORM_MODE, VG_NORM_AUTO,
          G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY));
  gst_type_mark_as_plugin_api (GST_TYPE_VIDGEN_NORM_MODE, 0);
  g_object_class_install_property (klass, GST_VIDGEN_SETTING_DEVICE,
      g_param_spec_enum ("device", "Device", "What the model runs on", GST_TYPE_VIDGEN_DEVICE, GST_VIDGEN_DEVICE_AUTO,
          G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY));
  gst_type_mark_as_plugin_api (GST_TYPE_VIDGEN_DEVICE, 0);
  g_object_class_install_property (klass, GST_VIDGEN_SETTING_PRECISION,
      g_param_spec_enum ("precision", "Precision", "What activations are stored in, and products computed in",
          GST_TYPE_VIDGEN_PRECISION, VG_PRECISION_AUTO, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY));
  gst_type_mark_as_plugin_api (GST_TYPE_VIDGEN_PRECISION, 0);
  g_object_class_install_property (klass, GST_VIDGEN_SETTING_CUDA_DEVICE_ID,
      g_param_spec_int ("cuda-device-id", "CUDA device",
          "Which GPU, as CUDA counts them (-1 = that of frames in CUDA memory, else the first)", -1, G_MAXINT, -1,
          G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY));
  /**
   * GstVidgenModel:norm-error-interval:
   *
   * In modes other than "exact" every so many frames one is done exactly, too, and compared: `stats` then has
   * "norm-error-mean" and "norm-error-max" (in 8-bit steps, over all frames compared), "norm-error-frames" and
   * "norm-error-time" (ns that a comparison takes).  In live pipelines only when there is time for it.  The memory for it
   * is in the plan; where that would not fit max-device-memory there is no comparison.
   */
  g_object_class_install_property (klass, GST_VIDGEN_SETTING_NORM_ERROR_INTERVAL,
      g_param_spec_uint ("norm-error-interval", "Norm error interval",
          "One frame of so many is done with exact norms, too, and compared (0 = none; see norm-mode)", 0, G_MAXUINT, 64,
          G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY));
  /**
   * GstVidgenModel:scene-cut:
   *
   * What a model knows of a scene must not reach into the next one.  Where a cut is found, windows of frames end with
   * the scene's last frame and begin again with the next one's first, interpolated frames are those of the nearer side,
   * and states and norm statistics are forgotten.  A frame begins a scene when its coarse picture hardly correlates
   * with the last one's, whatever the brightness (a flash is no cut) and at any shift of up to a tenth of the width (a
   * pan is no cut).
   */
  g_object_class_install_property (klass, GST_VIDGEN_SETTING_SCENE_CUT,
      g_param_spec_enum ("scene-cut", "Scene cut", "When to look for scene cuts, which windows, states and statistics "
          "must not reach across",
          GST_TYPE_VIDGEN_SCENE_CUT, GST_VIDGEN_SCENE_CUT_AUTO,
          G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING));
  gst_type_mark_as_plugin_api (GST_TYPE_VIDGEN_SCENE_CUT, 0);
  /**
   * GstVidgenModel:interpolate:
   *
   * For models that make frames between two, and are told where: with 3 the frame rate is four times the source's.
   */
  g_object_class_install_property (klass, GST_VIDGEN_SETTING_INTERPOLATE,
      g_param_spec_uint ("interpolate", "Interpolate",
          "New frames between two of the source, of a model that makes such (0 = as the model says)", 0,
          VG_MAX_WINDOW, 0, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY));
  /**
   * GstVidgenModel:reuse-static:
   *
   * For screens, cameras that look at a street, slides: a tile that shows what it showed before, byte for byte with
   * all that surrounds it, is not computed again, its last result is copied.  What comes out is the same as without.  The
   * smaller the tiles (tile-width, tile-height of #vidgenchunk), the less a small motion costs; without tiles it is
   * the frame that must stand still.  `stats` counts such tiles ("tiles-reused").
   *
   * It holds the last frame, one buffer more of the pool that frames come from, and copies of its results, a frame's worth of
   * what leaves; where everything moves those are copied for nothing.  So it is off by default.
   *
   * A model of several frames is not run where all frames of its window are those of the window before.  Models with
   * states are always run.  New parameters, another model, a flush, a gap and new caps begin anew.  With norms by the
   * frame's own statistics (norm-mode=exact) tiles that were asked for have their own.  With norm-mode=thumbnail a tile
   * is run when anything in the frame has moved, because the statistics have; with "frozen" while they are measured;
   * with "previous" until the smoothed ones stand still, too, to the last bit.  A frame that is compared
   * (norm-error-interval) is run.
   */
  g_object_class_install_property (klass, GST_VIDGEN_SETTING_REUSE_STATIC,
      g_param_spec_boolean ("reuse-static", "Reuse static tiles",
          "Tiles whose input is the same as last time, byte for byte, are not run again: their last result is given, for "
          "a frame more of memory on both sides",
          FALSE, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING));
  /**
   * GstVidgenModel:parameters:
   *
   * A field for each of the model's inputs that is not a picture: an array of floats, a number, or a string of
   * place:value pairs with all others 0, a place being an index or the value's label:
   *
   *     parameters="p,style_weights=<0.0,0.5,0.5>"
   *     parameters="p,style_weights=(string)\"starry:0.3,2:0.7\""
   *
   * What is not named has the model's default.  Changes take effect between two frames.  What the model does not take
   * is a warning that tells what it takes.
   */
  g_object_class_install_property (klass, GST_VIDGEN_SETTING_PARAMETERS,
      g_param_spec_boxed ("parameters", "Parameters",
          "Values of the model's further inputs, for instance \"p,style_weights=<0.0,0.5,0.5>\", or as place:value "
          "pairs \"p,style_weights=(string)\\\"1:0.5,2:0.5\\\"\"",
          GST_TYPE_STRUCTURE, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING));
  g_object_class_install_property (klass, GST_VIDGEN_SETTING_PLAN,
      g_param_spec_string ("plan", "Plan",
          "The plan in use as JSON: tiles, operations, and where every byte lies (NULL before the caps are known)",
          NULL, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
  g_object_class_install_property (klass, GST_VIDGEN_SETTING_STATS,
      g_param_spec_boxed ("stats", "Statistics",
          "Counters: frames, tiles (that were run), tiles-reused (see reuse-static), tiles-rescued (see precision), "
          "dropped (frames that came too late), cuts (scenes that ended, see scene-cut), fps (of the last second), "
          "mean-time (ns of computing for a frame) and max-time (for a run), device-memory and device-memory-peak (bytes), norm-drift and norm-cuts (see norm-mode), norm-frozen, norm-error-mean, "
          "norm-error-max, norm-error-frames and norm-error-time (see norm-error-interval)",
          GST_TYPE_STRUCTURE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
  g_object_class_install_property (klass, GST_VIDGEN_SETTING_ACTIVE_DEVICE,
      g_param_spec_string ("active-device", "Active device",
          "What the model runs on, with instruction set and threads (NULL before the caps are known)", NULL,
          G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
}

gboolean
gst_vidgen_settings_set (GstVidgenPlanner *planner, guint id, const GValue *value, gboolean *replan)
{
  switch (id) {
    case GST_VIDGEN_SETTING_MODEL_FILE:
      *replan = gst_vidgen_planner_set_model_file (planner, g_value_get_string (value));
      return TRUE;
    case GST_VIDGEN_SETTING_PARAMETERS:
      gst_vidgen_planner_set_parameters (planner, gst_value_get_structure (value));
      return TRUE;
    default:
      break;
  }
  g_mutex_lock (&planner->lock);
  switch (id) {
    case GST_VIDGEN_SETTING_THREADS:
      planner->threads = g_value_get_uint (value);
      break;
    case GST_VIDGEN_SETTING_MAX_DEVICE_MEMORY:
      planner->max_device_memory = g_value_get_uint64 (value);
      break;
    case GST_VIDGEN_SETTING_EXACT_PRODUCTS:
      planner->exact_products = g_value_get_boolean (value);
      break;
    case GST_VIDGEN_SETTING_NORM_MODE:
      planner->norm_mode = g_value_get_enum (value);
      break;
    case GST_VIDGEN_SETTING_NORM_ERROR_INTERVAL:
      planner->norm_error_interval = g_value_get_uint (value);
      break;
    case GST_VIDGEN_SETTING_SCENE_CUT:
      planner->scene_cut = g_value_get_enum (value);
      break;
    case GST_VIDGEN_SETTING_INTERPOLATE:
      planner->interpolate = g_value_get_uint (value);
      break;
    case GST_VIDGEN_SETTING_REUSE_STATIC:
      *replan = planner->reuse_static != g_value_get_boolean (value); /* pools are to be asked for other numbers */
      planner->reuse_static = g_value_get_boolean (value);
      break;
    case GST_VIDGEN_SETTING_DEVICE:
      g_atomic_int_set (&planner->context.device, g_value_get_enum (value));
      break;
    case GST_VIDGEN_SETTING_PRECISION:
      planner->precision = g_value_get_enum (value);
      break;
    case GST_VIDGEN_SETTING_CUDA_DEVICE_ID:
      g_atomic_int_set (&planner->context.cuda_device_id, g_value_get_int (value));
      break;
    default:
      id = GST_VIDGEN_SETTING_0;
  }
  g_mutex_unlock (&planner->lock);
  return id != GST_VIDGEN_SETTING_0;
}

gboolean
gst_vidgen_settings_get (GstVidgenPlanner *planner, guint id, GValue *value)
{
  g_mutex_lock (&planner->lock);
  switch (id) {
    case GST_VIDGEN_SETTING_MODEL_FILE:
      g_value_set_string (value, planner->model_file ? planner->model_file : GST_VIDGEN_DEFAULT_MODEL);
      break;
    case GST_VIDGEN_SETTING_THREADS:
      g_value_set_uint (value, planner->threads);
      break;
    case GST_VIDGEN_SETTING_MAX_DEVICE_MEMORY:
      g_value_set_uint64 (value, planner->max_device_memory);
      break;
    case GST_VIDGEN_SETTING_EXACT_PRODUCTS:
      g_value_set_boolean (value, planner->exact_products);
      break;
    case GST_VIDGEN_SETTING_NORM_MODE:
      g_value_set_enum (value, planner->norm_mode);
      break;
    case GST_VIDGEN_SETTING_NORM_ERROR_INTERVAL:
      g_value_set_uint (value, planner->norm_error_interval);
      break;
    case GST_VIDGEN_SETTING_SCENE_CUT:
      g_value_set_enum (value, planner->scene_cut);
      break;
    case GST_VIDGEN_SETTING_INTERPOLATE:
      g_value_set_uint (value, planner->interpolate);
      break;
    case GST_VIDGEN_SETTING_REUSE_STATIC:
      g_value_set_boolean (value, planner->reuse_static);
      break;
    case GST_VIDGEN_SETTING_DEVICE:
      g_value_set_enum (value, g_atomic_int_get (&planner->context.device));
      break;
    case GST_VIDGEN_SETTING_PRECISION:
      g_value_set_enum (value, planner->precision);
      break;
    case GST_VIDGEN_SETTING_CUDA_DEVICE_ID:
      g_value_set_int (value, g_atomic_int_get (&planner->context.cuda_device_id));
      break;
    case GST_VIDGEN_SETTING_PARAMETERS:
      gst_value_set_structure (value, planner->parameters);
      break;
    case GST_VIDGEN_SETTING_PLAN:
      g_value_set_string (value, planner->plan);
      break;
    case GST_VIDGEN_SETTING_ACTIVE_DEVICE:
      g_value_set_string (value, planner->device);
      break;
    default:
      id = GST_VIDGEN_SETTING_0;
  }
  g_mutex_unlock (&planner->lock);
  return id != GST_VIDGEN_SETTING_0;
}
