/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Operators that are refused by name, and what to do instead. */
#include "bind.h"

#include <string.h>

#define DATA "the size of its result depends on data, which no plan can know; "
#define LOOP "it is a loop, whose number of steps no plan can know; "
#define INTEGER "integer arithmetic is run as QuantizeLinear and DequantizeLinear around float operators; "
#define RANDOM "it gives other numbers in every run; make the noise an input of the model"
#define RECURRENT "recurrence over a sequence within one frame; write a step of it, with the state as input and output"
#define TRAINING "it is for training; export the model in evaluation mode (model.eval())"

static const struct {
    const char *type, *why;
} refused[] = {
    {"NonZero", DATA "use Where on a mask"},
    {"Compress", DATA "use Where on a mask"},
    {"Unique", DATA "it has no place in a model of pictures"},
    {"NonMaxSuppression", DATA "cut the graph before it"},
    {"Loop", LOOP "export one step of it, with its state as input and output, or unroll it"},
    {"Scan", LOOP "export one step of it, with its state as input and output, or unroll it"},
    {"Einsum", "write it as MatMul, Mul and ReduceSum (torch.einsum as matmul)"},
    {"TopK", "it sorts the data; cut the graph before it"},
    {"ArgMax", "it picks a class, and is no part of a picture's way; cut the graph before it"},
    {"ArgMin", "it picks a class, and is no part of a picture's way; cut the graph before it"},
    {"Hardmax", "it picks a class, and is no part of a picture's way; cut the graph before it"},
    {"LSTM", RECURRENT},
    {"GRU", RECURRENT},
    {"RNN", RECURRENT},
    {"DynamicQuantizeLinear", INTEGER "quantise statically"},
    {"QLinearConv", INTEGER "quantise in the QDQ format"},
    {"QLinearMatMul", INTEGER "quantise in the QDQ format"},
    {"ConvInteger", INTEGER "quantise in the QDQ format"},
    {"MatMulInteger", INTEGER "quantise in the QDQ format"},
    {"RandomNormal", RANDOM},
    {"RandomNormalLike", RANDOM},
    {"RandomUniform", RANDOM},
    {"RandomUniformLike", RANDOM},
    {"Bernoulli", RANDOM},
    {"Multinomial", RANDOM},
    {"SoftmaxCrossEntropyLoss", TRAINING},
    {"NegativeLogLikelihoodLoss", TRAINING},
    {"DeformConv", "rare in models of pictures; not written yet"},
    {"DFT", "rare in models of pictures; not written yet"},
    {"STFT", "rare in models of pictures; not written yet"},
    {"Col2Im", "rare in models of pictures; not written yet"},
    {"RoiAlign", "rare in models of pictures; not written yet"},
    {"MaxUnpool", "rare in models of pictures; not written yet"},
    {"LRN", "rare in models of pictures; not written yet"},
};

const char *vg_bind_refused(int i)
{
    return i < (int)(sizeof refused / sizeof *refused) ? refused[i].type : NULL;
}

const char *vg_bind_refusal(const char *operator)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (!strcmp(refused[i].type, operator))
            return refused[i].why;
    return NULL;
}
