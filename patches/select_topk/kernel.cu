// The best M candidates, by score from the highest, equal scores by anchor; nothing is suppressed.
// Boxes go to frame pixels and are clipped there.
//
// Bytes, for K candidates and M places an image: reads 28 K, writes 28 M; no scratch. The floor is
// not memory but K * K comparisons, spread over the GPU: a candidate's place is the number of
// candidates before it. A warp counts for four, and writes those that have a place.
#include "../detections.cuh"

extern "C" __global__ void select_topk(const Args args)
{
    const int image = blockIdx.y, lane = threadIdx.x % WARP;
    const int thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    const int count = candidates_of(args, image);
    const int found = min(count, min(*args.max_detections, args.M));
    const unsigned long long base = 1ull * image * args.A;

    for (int first = thread / WARP * RANKED; first < count; first += threads / WARP * RANKED) {
        int before[RANKED], row = found;
        rank(args, base, count, first, before);
        for (int i = 0; i < RANKED; ++i)
            if (lane == i && first + i < count) row = before[i];
        if (row >= found) continue;
        const unsigned long long at = base + first + lane;
        const Box box = reinterpret_cast<const Box*>(args.candidates_boxes)[at];
        write_row(args, image, row, to_frame(box, args.geometry + 6ull * image),
                  args.candidates_scores[at], args.candidates_classes[at],
                  args.candidates_anchors[at]);
    }
    for (int empty = found + thread; empty < args.M; empty += threads)
        write_row(args, image, empty, Box{}, 0.0f, 0, -1);
    if (thread == 0) {
        int* counters = args.detections_counters + 5ull * image;
        args.detections_count[image] = found;
        counters[0] = count;
        counters[1] = found;
        counters[2] = 0;
        counters[3] = count - found;
        counters[4] = args.candidates_nans[image];
    }
}
