/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A driver that drives nothing: it takes the place of libcuda.so.1, so that cuDNN finalises plans whose kernels are
 * compiled at run time where there is no GPU.  NVRTC compiles for the capability of the device's description; "loading"
 * the result only looks at its header.
 *
 * cuDNN finds it when the program is linked to it (same soname).  Nothing can be executed: what a device would have to
 * do answers CUDA_ERROR_STUB_LIBRARY, as the toolkit's own stub does. */
#ifndef FAKEDRIVER_H
#define FAKEDRIVER_H

struct fakedriver {
    int loads;      /* kernels' images that were loaded */
    int capability; /* of the last one, 86 */
};
struct fakedriver fakedriver_state(void);

#endif
