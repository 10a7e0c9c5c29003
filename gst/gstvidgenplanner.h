/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a model element's other threads hand over to its streaming thread: the newest model, the parameters' values, and
 * plans for the grids that vidgenchunk was given.
 *
 * A model that is set while playing is loaded on the setter's thread.  The next plan is made with it, on vidgenchunk's
 * thread, while tiles of the old plan may still be on their way; the streaming thread goes over to a plan with the
 * first tile of its grid.  So a model changes between two frames, and nothing waits for it.
 *
 * Part of an element, which it posts its messages on.  All functions may be called from any thread; none holds the lock
 * while it loads, plans or posts. */
#ifndef GST_VIDGEN_PLANNER_H
#define GST_VIDGEN_PLANNER_H

#include "gstvidgencontext.h"
#include "gstvidgensizes.h"

G_BEGIN_DECLS

#define GST_VIDGEN_DEFAULT_MODEL "style3"

typedef enum
{
  GST_VIDGEN_SCENE_CUT_AUTO,
  GST_VIDGEN_SCENE_CUT_ON,
  GST_VIDGEN_SCENE_CUT_OFF,
} GstVidgenSceneCut;

typedef struct
{
  GstElement *element; /* not a reference */
  GstVidgenContext context;
  GMutex lock; /* of all below */

  gchar *model_file; /* NULL = GST_VIDGEN_DEFAULT_MODEL */
  guint threads;
  guint64 max_device_memory;
  gboolean exact_products;
  gint norm_mode; /* enum vg_norm_mode */
  guint norm_error_interval; /* frames, 0 = never */
  gint scene_cut; /* GstVidgenSceneCut */
  guint interpolate;
  gboolean reuse_static;
  gint precision; /* enum vg_precision */

  GstStructure *parameters;

  struct vg_model *model;         /* what the next plan is made with; NULL = not loaded */
  struct vg_model *planned_model; /* what the last good plan was made with: the fallback */
  gfloat *values;                 /* of model's parameters */
  guint serial;                   /* of values */

  GQueue planned; /* GstVidgenEngine for grids that no tile has come with yet, oldest first */
  struct vg_plan_request last_request;
  GstVidgenGrid *last_grid; /* the answer to last_request; NULL = none that holds */
  gint last_window, last_kept; /* frames of it, and what reuse-static would keep beside them */
  gboolean last_in_cuda, last_whole;
  gchar *plan, *device;     /* the last plan in words */
  gboolean failed;          /* an error was posted: nothing runs until the next start */
} GstVidgenPlanner;

void gst_vidgen_planner_init (GstVidgenPlanner *self, GstElement *element);
void gst_vidgen_planner_clear (GstVidgenPlanner *self);

/* FALSE: an error was posted. */
gboolean gst_vidgen_planner_load (GstVidgenPlanner *self);
void gst_vidgen_planner_unload (GstVidgenPlanner *self);

/* While nothing is loaded the name is all that is taken; else the file is loaded, TRUE: new plans are wanted.  What
 * fails is a warning and changes nothing. */
gboolean gst_vidgen_planner_set_model_file (GstVidgenPlanner *self, const gchar *name);
void gst_vidgen_planner_set_parameters (GstVidgenPlanner *self, const GstStructure *structure);

/* The engine and all plans from now on are the context's.  FALSE: an error was posted. */
gboolean gst_vidgen_planner_adopt (
    GstVidgenPlanner *self, GstVidgenEngine *engine, GstObject *context, const gint *stop);

/* The streaming thread starts and stops. */
void gst_vidgen_planner_start (GstVidgenPlanner *self);
void gst_vidgen_planner_stop (GstVidgenPlanner *self);

/* Posts the error, for once, and lets nothing run any more. */
GstFlowReturn gst_vidgen_planner_fail (GstVidgenPlanner *self, GError *error);

/* The frame's part of a request. */
void gst_vidgen_planner_request (struct vg_plan_request *request, const GstVideoInfo *info);
gboolean gst_vidgen_planner_same_request (const struct vg_plan_request *a, const struct vg_plan_request *b);

/* Plans with the newest model and announces the plan.  in_cuda: for frames in CUDA memory.  NULL: the error was posted,
 * once. */
GstVidgenEngine *gst_vidgen_planner_make (
    GstVidgenPlanner *self, const struct vg_plan_request *settings, gboolean in_cuda);

/* The "vidgen-plan" query (gstvidgenplan.h).  FALSE: not understood. */
gboolean gst_vidgen_planner_answer (GstVidgenPlanner *self, GstStructure *query);

/* The newest model's scale; FALSE while there is none. */
gboolean gst_vidgen_planner_scale (GstVidgenPlanner *self, GstVidgenScale *scale);

/* Must cuts be looked for with this engine? */
gboolean gst_vidgen_planner_wants_cuts (GstVidgenPlanner *self, const GstVidgenEngine *engine);

/* See the properties norm-error-interval and reuse-static. */
guint gst_vidgen_planner_error_interval (GstVidgenPlanner *self);
gboolean gst_vidgen_planner_reuses_static (GstVidgenPlanner *self);

gboolean gst_vidgen_planner_is_newest (GstVidgenPlanner *self, const GstVidgenEngine *engine);
gboolean gst_vidgen_planner_has_planned (GstVidgenPlanner *self);

/* The plan that made the grid, or else (grid NULL) the first for tiles of the size of info; those before it are
 * dropped.  NULL: there is none. */
GstVidgenEngine *gst_vidgen_planner_take (GstVidgenPlanner *self, const GstVidgenGrid *grid, const GstVideoInfo *info);

/* The engine stops running: its grid is no answer any more. */
void gst_vidgen_planner_retire (GstVidgenPlanner *self, GstVidgenEngine *engine);

/* TRUE: there are values that the engine does not have yet; copies them. */
gboolean gst_vidgen_planner_new_values (GstVidgenPlanner *self, GstVidgenEngine *engine, gfloat *values);

G_END_DECLS

#endif
