# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes the pictures with the product: sh docs/make-pictures.sh BUILD
# before-after.jpg: a frame of the demo's clip, as it is, and in two of the styles of the model that comes along.
# norm-difference.jpg: the 26-style model on the clip's last frame, and what norm modes previous and frozen differ by, 16
# times; their figures are printed.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
. "$root/pipelines/install.sh"
export GST_PLUGIN_PATH="$build/gst" VIDGEN_MODEL_PATH="$root/pipelines/models"
fetch_clip
# multifilesink writes every frame over the one before: the last one stays.
gst-launch-1.0 -q filesrc location="$CACHE/bigbuckbunny.mp4" ! decodebin ! videoconvert ! videoscale ! \
    video/x-raw,format=I420,width=440,height=248,pixel-aspect-ratio=1/1 ! identity eos-after=101 ! tee name=t \
    compositor name=c sink_1::xpos=440 sink_2::xpos=880 ! videoconvert ! jpegenc quality=88 ! \
    multifilesink location="$root/docs/before-after.jpg" \
    t. ! queue ! c.sink_0 \
    t. ! queue ! vidgen ! c.sink_1 \
    t. ! queue ! vidgen 'parameters=p,style_weights=(string)"starry:1"' ! c.sink_2 </dev/null
say "docs/before-after.jpg: $(wc -c <"$root/docs/before-after.jpg") bytes"

fetch_multistyle26
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp "$CACHE/multistyle26.onnx" "$dir"
# Stored statistics of all styles, by 8 frames of the clip: those of style 12 are used.
"$build/pipelines/vidgen" freeze --frames 8 "$dir/multistyle26.onnx" "$CACHE/bigbuckbunny.mp4"
ffmpeg -v error -i "$CACHE/bigbuckbunny.mp4" -vf scale=640:360 -f rawvideo -pix_fmt rgb24 - </dev/null |
    "$build/tests/bench/norm-modes" "$dir/multistyle26.onnx" 640 360 "${FRAMES:-1000}" "$dir/difference.ppm" 12
ffmpeg -v error -y -i "$dir/difference.ppm" -vf scale=1320:-1:flags=area -q:v 5 "$root/docs/norm-difference.jpg" </dev/null
say "docs/norm-difference.jpg: $(wc -c <"$root/docs/norm-difference.jpg") bytes"
