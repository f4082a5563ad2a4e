// The best class of each pixel from maps of class logits [N, C, H, W]: of each cell, or of each
// pixel of the frame, for which the logits are interpolated first. Of equal classes the lowest; what
// is not a number is never the best.
//
// Reads C * H * W * sizeof(logits_t) bytes an image, writes a byte a pixel. Floor for 19 classes of
// 512 x 1024 in float32 and a frame of 1024 x 2048: 40 MB read, 2 MB written, 11 us at 4 TB/s. Where
// the frame is larger than the maps, reads from the cache stand before that: 2 to 4 a class and a
// pixel, fewer where neighbours lie between the same cells.
//
// A thread has 4 neighbouring pixels, which it writes in one access where the address allows; of
// cells it reads 16 bytes where their number and the address allow.
#include "../sampling.cuh"

constexpr int PER_THREAD = 4;
constexpr int THREADS = 128; // a block, as in the contract

using Labels = Pack<unsigned char, PER_THREAD>;
using Values = Pack<Args::logits_t, PER_THREAD>;

struct Choice // among the classes seen so far
{
    float score = __uint_as_float(0xff800000u); // -infinity
    int label = 0;
};

__device__ void choose(Choice& choice, float score, int label)
{
    if (score > choice.score) choice = {score, label};
}

__device__ Labels labels_of(const Args& args, const Choice (&choices)[PER_THREAD])
{
    Labels labels;
    for (int i = 0; i < PER_THREAD; ++i)
        labels.at[i] = Args::C == 1 ? choices[i].score > *args.threshold : choices[i].label;
    return labels;
}

// Of the cells from `first` on.
__device__ Labels labels_of_cells(const Args& args, const Args::logits_t* maps, int first)
{
    constexpr int CELLS = Args::H * Args::W;
    const auto* __restrict__ values = maps + first;
    Choice choices[PER_THREAD];
    if (CELLS % PER_THREAD == 0 && aligned_for<Values>(values)) {
#pragma unroll 8
        for (int label = 0; label < Args::C; ++label) {
            const auto four = *reinterpret_cast<const Values*>(values + 1ll * label * CELLS);
            for (int i = 0; i < PER_THREAD; ++i) choose(choices[i], to_float(four.at[i]), label);
        }
    } else {
        const int present = min(CELLS - first, PER_THREAD);
        for (int label = 0; label < Args::C; ++label)
            for (int i = 0; i < present; ++i)
                choose(choices[i], load(values + 1ll * label * CELLS + i), label);
    }
    return labels_of(args, choices);
}

// Of the frame's pixels from `first` on, row after row.
__device__ Labels labels_of_pixels(const Args& args, const Args::logits_t* maps, int first,
                                   int pixels, int width, const Axis& across, const Axis& down)
{
    Sample columns[PER_THREAD], rows[PER_THREAD];
    for (int i = 0; i < PER_THREAD; ++i) {
        const int pixel = min(first + i, pixels - 1);
        columns[i] = sample(across, pixel % width);
        rows[i] = sample(down, pixel / width);
    }
    Choice choices[PER_THREAD];
#pragma unroll 2
    for (int label = 0; label < Args::C; ++label) {
        const auto* __restrict__ map = maps + 1ll * label * args.H * args.W;
        float left = 0.0f, right = 0.0f;
#pragma unroll
        for (int i = 0; i < PER_THREAD; ++i) {
            const Sample &x = columns[i], &y = rows[i];
            const int before = i > 0 ? i - 1 : 0;
            const bool same = x.first == columns[before].first && y.first == rows[before].first &&
                              y.weight == rows[before].weight;
            if (i == 0 || !same) {
                const auto *upper = map + y.first * args.W, *lower = map + y.second * args.W;
                left = blend(load(upper + x.first), load(lower + x.first), y.weight);
                right = blend(load(upper + x.second), load(lower + x.second), y.weight);
            }
            choose(choices[i], blend(left, right, x.weight), label);
        }
    }
    return labels_of(args, choices);
}

extern "C" __global__ void segment_argmax(const __grid_constant__ Args args)
{
    const int image = blockIdx.y, thread = blockIdx.x * THREADS + threadIdx.x;
    const float* geometry = args.geometry + 6ull * image;
    int width = int(geometry[4]), height = int(geometry[5]);
    if (Args::size == Args::size_head && width > 0) width = args.W, height = args.H;
    const long long wanted = 1ll * width * height;
    const int pixels = wanted <= args.R ? int(wanted) : 0;
    if (thread == 0) {
        args.segmentation_sizes[2 * image] = height;
        args.segmentation_sizes[2 * image + 1] = width;
        args.segmentation_used[image] = pixels;
    }
    const Axis across = axis_x(args, image), down = axis_y(args, image);
    const auto* maps = args.logits + 1ull * image * args.C * args.H * args.W;
    const int step = gridDim.x * THREADS * PER_THREAD;
    for (int first = thread * PER_THREAD; first < pixels; first += step) {
        const Labels labels =
            Args::size == Args::size_head
                ? labels_of_cells(args, maps, first)
                : labels_of_pixels(args, maps, first, pixels, width, across, down);
        unsigned char* out = args.segmentation_classes + 1ull * image * args.R + first;
        if (first + PER_THREAD <= pixels && aligned_for<Labels>(out))
            *reinterpret_cast<Labels*>(out) = labels;
        else
            for (int i = 0; i < PER_THREAD && first + i < pixels; ++i) out[i] = labels.at[i];
    }
}
