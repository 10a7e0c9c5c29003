# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes the README's picture with the product: sh docs/make-pictures.sh BUILD
# A frame of the demo's clip, as it is, and in two of the styles of the model that comes along.
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
