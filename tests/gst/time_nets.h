/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Models made on the spot: of several frames, whose results are known to the byte; with a norm. */
#ifndef TIME_NETS_H
#define TIME_NETS_H

#include <glib.h>
#include <glib/gstdio.h>

#include "../support/onnx_write.h"

#define TIME_MAX 8 /* frames of a window */

/* Weights of a window's frames in its result k.  Their sum is odd, so that no mean of bytes lies between two. */
static inline gint
time_weight (gint window, gint k, gint i)
{
  gint sum = 0, weight = 1 + (3 * k + 2 * i) % 5;

  if (i > 0)
    return weight;
  for (gint j = 0; j < window; j++)
    sum += 1 + (3 * k + 2 * j) % 5;
  return weight + (sum % 2 == 0);
}

static inline guint8
time_mix (gint window, gint k, const guint8 *values)
{
  gint sum = 0, all = 0;

  for (gint i = 0; i < window; i++) {
    sum += time_weight (window, k, i) * values[i];
    all += time_weight (window, k, i);
  }
  return (2 * sum + all) / (2 * all);
}

/* Writes the model, into a directory of its own, and forgets it; its path. */
static inline gchar *
time_write (struct ow *m, const gchar *name)
{
  gchar *directory = g_dir_make_tmp ("vidgen-time-XXXXXX", NULL), *path;
  size_t size;
  uint8_t *data = ow_finish (m, &size);

  path = g_build_filename (directory, name, NULL);
  g_assert_true (g_file_set_contents (path, (gchar *) data, size, NULL));
  free (data);
  g_free (directory);
  return path;
}

/* Removes the model and frees its path. */
static inline void
time_remove (gchar *path)
{
  gchar *directory = g_path_get_dirname (path);

  g_unlink (path);
  g_rmdir (directory);
  g_free (directory);
  g_free (path);
}

/* [1,3*window,h,w] to [1,3*emit,h,w], each result a mean with weights; centre -2: as deduced. */
static inline gchar *
time_window_model (gint window, gint emit, gint centre)
{
  struct ow *m = ow_new (17);
  float *w = g_new0 (float, 9 * window * emit);
  gchar *dims = g_strdup_printf ("1,%d,h,w", 3 * window), *name, *path;

  for (gint k = 0; k < emit; k++)
    for (gint i = 0; i < window; i++)
      for (gint c = 0; c < 3; c++) {
        gint all = 0;

        for (gint j = 0; j < window; j++)
          all += time_weight (window, k, j);
        w[((3 * k + c) * window + i) * 3 + c] = (float) time_weight (window, k, i) / all;
      }
  ow_input (m, "x", 1, dims);
  ow_floats_tensor (m, "w", 4, (int64_t[]){3 * emit, 3 * window, 1, 1}, w);
  ow_add (m, ow_node ("Conv", "mix", "x,w", "y"));
  g_free (dims);
  dims = g_strdup_printf ("1,%d,h,w", 3 * emit);
  ow_output (m, "y", 1, dims);
  if (centre > -2) {
    gchar *text = g_strdup_printf ("%d", centre);

    ow_property (m, "vidgen.centre", text);
    g_free (text);
  }
  name = g_strdup_printf ("window%d-%d-%d.onnx", window, emit, centre);
  path = time_write (m, name);
  g_free (name);
  g_free (dims);
  g_free (w);
  return path;
}

/* Two pictures and a time in, the picture then out; twice: as large as they are, or twice that. */
static inline gchar *
time_between_model (gboolean twice)
{
  struct ow *m = ow_new (17);

  ow_input (m, "a", 1, "1,3,h,w");
  ow_input (m, "b", 1, "1,3,h,w");
  ow_input (m, "t", 1, "1");
  ow_add (m, ow_node ("Sub", "way", "b,a", "d"));
  ow_add (m, ow_node ("Mul", "part", "d,t", "e"));
  ow_add (m, ow_node ("Add", "there", "a,e", twice ? "z" : "y"));
  if (twice) {
    struct pb *resize = ow_node ("Resize", "twice", "z,,scales", "y");

    ow_string (resize, "mode", "nearest");
    ow_string (resize, "coordinate_transformation_mode", "asymmetric");
    ow_string (resize, "nearest_mode", "floor");
    ow_floats_tensor (m, "scales", 1, (int64_t[]){4}, (float[]){1, 1, 2, 2});
    ow_add (m, resize);
  }
  ow_output (m, "y", 1, twice ? "1,3,h2,w2" : "1,3,h,w");
  return time_write (m, "between.onnx");
}

/* A state of the frame's size: half the frame, half the 3 x 3 mean of the state before, zeros around.  That is what it
 * shows, too. */
static inline gchar *
time_state_model (void)
{
  struct ow *m = ow_new (17);
  float half = .5f, w[3 * 3 * 9] = {0};

  for (gint c = 0; c < 3; c++)
    for (gint i = 0; i < 9; i++)
      w[(c * 3 + c) * 9 + i] = .5f / 9;
  ow_input (m, "x", 1, "1,3,h,w");
  ow_input (m, "state_in", 1, "1,3,h,w");
  ow_floats_tensor (m, "w", 4, (int64_t[]){3, 3, 3, 3}, w);
  ow_floats_tensor (m, "half", 1, (int64_t[]){1}, &half);
  {
    struct pb *blur = ow_node ("Conv", "blur", "state_in,w", "before");

    ow_ints (blur, "pads", 4, (int64_t[]){1, 1, 1, 1});
    ow_add (m, blur);
  }
  ow_add (m, ow_node ("Mul", "new", "x,half", "now"));
  ow_add (m, ow_node ("Add", "sum", "before,now", "state_out"));
  ow_add (m, ow_node ("Relu", "show", "state_out", "y"));
  ow_output (m, "y", 1, "1,3,h,w");
  ow_output (m, "state_out", 1, "1,3,h,w");
  return time_write (m, "state.onnx");
}

/* A norm over the whole frame, of what a convolution makes. */
static inline gchar *
time_norm_model (void)
{
  struct ow *m = ow_new (17);

  ow_input (m, "x", 1, "1,3,h,w");
  ow_floats_tensor (m, "w", 4, (int64_t[]){3, 3, 1, 1}, (float[]){1, .5f, 0, 0, 1, .5f, .5f, 0, 1});
  ow_floats_tensor (m, "scale", 1, (int64_t[]){3}, (float[]){.2f, .2f, .2f});
  ow_floats_tensor (m, "offset", 1, (int64_t[]){3}, (float[]){.5f, .5f, .5f});
  ow_add (m, ow_node ("Conv", "mix", "x,w", "mixed"));
  ow_add (m, ow_node ("InstanceNormalization", "norm", "mixed,scale,offset", "y"));
  ow_output (m, "y", 1, "1,3,h,w");
  return time_write (m, "norm.onnx");
}

#endif
