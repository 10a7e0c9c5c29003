#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""vidgen inside a Python program: pictures as bytes in, pictures as bytes out.  embed.c has the same with more words.

Needs PyGObject and GStreamer's typelibs (Debian: python3-gi gir1.2-gstreamer-1.0 gir1.2-gst-plugins-base-1.0)."""
import sys
import threading

try:
    import gi
    gi.require_version("Gst", "1.0")
    gi.require_version("GstApp", "1.0")
    from gi.repository import Gst, GstApp  # noqa: F401  GstApp gives appsrc and appsink their methods
except (ImportError, ValueError) as error:
    print("skipped:", error)
    sys.exit(77)

WIDTH, HEIGHT, FRAMES, FPS = 320, 240, 10, 25


def picture(i):
    """Picture i: white with a black bar, RGB."""
    row = b"".join((b"\0" if x // 20 == i else b"\xff") * 3 for x in range(WIDTH))
    buffer = Gst.Buffer.new_wrapped(row * HEIGHT)
    buffer.pts = i * Gst.SECOND // FPS
    buffer.duration = Gst.SECOND // FPS
    return buffer


def push(source):
    for i in range(FRAMES):
        if source.push_buffer(picture(i)) != Gst.FlowReturn.OK:
            break
    source.end_of_stream()


Gst.init(None)
pipeline = Gst.parse_launch(
    "appsrc name=in format=time block=true max-buffers=2 "
    f"caps=video/x-raw,format=RGB,width={WIDTH},height={HEIGHT},framerate={FPS}/1 "
    "! vidgen name=model ! appsink name=out sync=false max-buffers=2")
# The third style, pastel; the fields are the names of the inputs of the model (gst-inspect-1.0 vidgen).
pipeline.get_by_name("model").set_property("parameters", Gst.Structure.from_string("p,style_weights=<0.0,0.0,1.0>")[0])
# The model is loaded here: without one this fails, and the bus tells why.
playing = pipeline.set_state(Gst.State.PLAYING) != Gst.StateChangeReturn.FAILURE
pusher = threading.Thread(target=push, args=(pipeline.get_by_name("in"),))
n = 0
if playing:
    pusher.start()
    # No sample is the end, be it good or bad.
    while sample := pipeline.get_by_name("out").pull_sample():
        buffer = sample.get_buffer()
        pixels = buffer.extract_dup(0, buffer.get_size())
        print(f"{buffer.pts / Gst.SECOND:.2f} s: {len(pixels)} bytes, mean {sum(pixels) / len(pixels):.1f}")
        n += 1
message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
if message:
    print(message.parse_error()[0].message, file=sys.stderr)
pipeline.set_state(Gst.State.NULL)  # also ends a push that waits
if playing:
    pusher.join()
print(f"{n} of {FRAMES} pictures came back")
sys.exit(0 if n == FRAMES else 1)
