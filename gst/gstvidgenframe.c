/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgenframe.h"

#include "gstvidgencuda.h"

#include <string.h>

void
gst_vidgen_frame_from_video (const GstVideoFrame *video, struct vgk_frame *frame)
{
  const GstVideoFormatInfo *finfo = video->info.finfo;

  memset (frame, 0, sizeof *frame);
  frame->width = GST_VIDEO_FRAME_WIDTH (video);
  frame->height = GST_VIDEO_FRAME_HEIGHT (video);
  frame->alpha = -1;
  frame->device = gst_vidgen_frame_on_device (video);
  switch (GST_VIDEO_FORMAT_INFO_FORMAT (finfo)) {
    case GST_VIDEO_FORMAT_I420:
    case GST_VIDEO_FORMAT_NV12:
      frame->layout = GST_VIDEO_FORMAT_INFO_FORMAT (finfo) == GST_VIDEO_FORMAT_I420 ? VGK_FRAME_I420 : VGK_FRAME_NV12;
      for (guint i = 0; i < GST_VIDEO_FRAME_N_PLANES (video); i++) {
        frame->plane[i] = GST_VIDEO_FRAME_PLANE_DATA (video, i);
        frame->stride[i] = GST_VIDEO_FRAME_PLANE_STRIDE (video, i);
      }
      break;
    case GST_VIDEO_FORMAT_GBR:
      frame->layout = VGK_FRAME_PLANAR;
      for (guint i = 0; i < 3; i++) {
        frame->plane[i] = GST_VIDEO_FRAME_COMP_DATA (video, i);
        frame->stride[i] = GST_VIDEO_FRAME_COMP_STRIDE (video, i);
      }
      break;
    default:
      frame->layout = VGK_FRAME_PACKED;
      frame->plane[0] = GST_VIDEO_FRAME_PLANE_DATA (video, 0);
      frame->stride[0] = GST_VIDEO_FRAME_PLANE_STRIDE (video, 0);
      frame->step = GST_VIDEO_FORMAT_INFO_PSTRIDE (finfo, 0);
      for (guint i = 0; i < 3; i++)
        frame->offset[i] = GST_VIDEO_FORMAT_INFO_POFFSET (finfo, i);
      /* Of the bytes 0 to 3 it is the one that no colour has. */
      if (frame->step == 4)
        frame->alpha = 6 - frame->offset[0] - frame->offset[1] - frame->offset[2];
  }
}

void
gst_vidgen_frame_brightness (const GstVideoFrame *video, struct vgk_frame *frame)
{
  gboolean rgb = GST_VIDEO_INFO_IS_RGB (&video->info);

  memset (frame, 0, sizeof *frame);
  frame->width = GST_VIDEO_FRAME_WIDTH (video);
  frame->height = GST_VIDEO_FRAME_HEIGHT (video);
  frame->alpha = -1;
  frame->device = gst_vidgen_frame_on_device (video);
  frame->layout = rgb && GST_VIDEO_FRAME_N_PLANES (video) > 1 ? VGK_FRAME_PLANAR : VGK_FRAME_PACKED;
  frame->step = GST_VIDEO_FRAME_COMP_PSTRIDE (video, 0);
  for (guint i = 0; i < 3; i++) {
    guint c = rgb ? i : 0;

    frame->plane[i] = frame->layout == VGK_FRAME_PLANAR ? GST_VIDEO_FRAME_COMP_DATA (video, c)
                                                        : GST_VIDEO_FRAME_PLANE_DATA (video, 0);
    frame->stride[i] = GST_VIDEO_FRAME_COMP_STRIDE (video, c);
    frame->offset[i] = GST_VIDEO_FRAME_COMP_POFFSET (video, c);
  }
}

void
gst_vidgen_colour_from_info (const GstVideoInfo *info, struct vgk_colour *colour)
{
  GstVideoColorimetry c = info->colorimetry;

  memset (colour, 0, sizeof *colour);
  colour->full_range = TRUE;
  if (!GST_VIDEO_INFO_IS_YUV (info))
    return;
  if (!gst_video_color_matrix_get_Kr_Kb (c.matrix, &colour->kr, &colour->kb) ||
      c.range == GST_VIDEO_COLOR_RANGE_UNKNOWN) {
    GstVideoInfo usual;

    gst_video_info_set_format (
        &usual, GST_VIDEO_INFO_FORMAT (info), GST_VIDEO_INFO_WIDTH (info), GST_VIDEO_INFO_HEIGHT (info));
    if (colour->kr == 0)
      gst_video_color_matrix_get_Kr_Kb (usual.colorimetry.matrix, &colour->kr, &colour->kb);
    if (c.range == GST_VIDEO_COLOR_RANGE_UNKNOWN)
      c.range = usual.colorimetry.range;
  }
  colour->yuv = TRUE;
  colour->full_range = c.range == GST_VIDEO_COLOR_RANGE_0_255;
}

void
gst_vidgen_set_error (GError **error, enum vgk_status status, const struct vgk_error *err)
{
  GQuark domain = GST_RESOURCE_ERROR;
  gint code = GST_RESOURCE_ERROR_FAILED;

  switch (status) {
    case VGK_ERR_INVALID:
      code = GST_RESOURCE_ERROR_SETTINGS;
      break;
    case VGK_ERR_UNSUPPORTED:
      domain = GST_STREAM_ERROR;
      code = GST_STREAM_ERROR_CODEC_NOT_FOUND;
      break;
    case VGK_ERR_NOMEM:
      code = GST_RESOURCE_ERROR_NO_SPACE_LEFT;
      break;
    case VGK_ERR_FILE:
      code = GST_RESOURCE_ERROR_OPEN_READ;
      break;
    case VGK_ERR_DEVICE:
      domain = GST_LIBRARY_ERROR;
      code = GST_LIBRARY_ERROR_FAILED;
      break;
    case VGK_OK:
      break;
  }
  g_set_error_literal (error, domain, code, *err->text ? err->text : vgk_status_string (status));
}

GstFlowReturn
gst_vidgen_post (gpointer element, GstMessageType type, GError *error)
{
  gst_element_message_full (GST_ELEMENT (element), type, error->domain, error->code, g_strdup (error->message), NULL,
      __FILE__, GST_FUNCTION, __LINE__);
  g_error_free (error);
  return GST_FLOW_ERROR;
}

/* Tries directory/name and directory/name.onnx; notes the directory where neither is. */
static gchar *
look_in (const gchar *directory, const gchar *name, GString *tried)
{
  gchar *path = g_build_filename (directory, name, NULL);

  if (!g_str_has_suffix (name, ".onnx")) {
    gchar *plain = path;

    path = g_strconcat (plain, ".onnx", NULL);
    g_free (plain);
  }
  if (g_file_test (path, G_FILE_TEST_IS_REGULAR))
    return path;
  g_free (path);
  g_string_append_printf (tried, "%s%s", tried->len ? ", " : "", directory);
  return NULL;
}

static gchar *
look_in_data (const gchar *directory, const gchar *name, GString *tried)
{
  gchar *models = g_build_filename (directory, "vidgen", "models", NULL);
  gchar *path = look_in (models, name, tried);

  g_free (models);
  return path;
}

gchar *
gst_vidgen_find_model (const gchar *name, GError **error)
{
  const gchar *list = g_getenv ("VIDGEN_MODEL_PATH");
  const gchar *const *data = g_get_system_data_dirs ();
  GString *tried;
  gchar *path = NULL;

  if (strchr (name, G_DIR_SEPARATOR)) {
    if (g_file_test (name, G_FILE_TEST_IS_REGULAR))
      return g_strdup (name);
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
        "Model file \"%s\" %s. Give the path of an ONNX file in model-file.", name,
        g_file_test (name, G_FILE_TEST_EXISTS) ? "is no file" : "does not exist");
    return NULL;
  }

  tried = g_string_new (NULL);
  if (g_str_has_suffix (name, ".onnx"))
    path = look_in (".", name, tried);
  if (list) {
    gchar **directories = g_strsplit (list, G_SEARCHPATH_SEPARATOR_S, 0);

    for (gchar **d = directories; *d && !path; d++)
      if (**d)
        path = look_in (*d, name, tried);
    g_strfreev (directories);
  }
  if (!path)
    path = look_in_data (g_get_user_data_dir (), name, tried);
  for (; *data && !path; data++)
    path = look_in_data (*data, name, tried);
  if (!path)
    path = look_in (VIDGEN_MODEL_DIR, name, tried);
  if (!path)
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
        "No model \"%s\"; looked in %s. Give a path with a slash in model-file, or the directory of the models in the "
        "environment variable VIDGEN_MODEL_PATH.",
        name, tried->str);
  g_string_free (tried, TRUE);
  return path;
}
