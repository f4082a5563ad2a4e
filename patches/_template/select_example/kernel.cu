// The best M candidates, by score from the highest, equal scores by anchor, then by class. A thread
// has a candidate; its place is the number of candidates that come before it.

// Candidates come in any order, so nothing may depend on where one lies.
__device__ bool comes_before(const Args& args, unsigned long long one, unsigned long long other)
{
    const float a = args.candidates_scores[one], b = args.candidates_scores[other];
    if (a != b) return a > b;
    const int first = args.candidates_anchors[one], second = args.candidates_anchors[other];
    if (first != second) return first < second;
    return args.candidates_classes[one] < args.candidates_classes[other];
}

__device__ float to_frame(float model_px, float start, float scale, float end)
{
    return fminf(fmaxf((model_px - start) * scale, 0.0f), end);
}

__device__ void write(const Args& args, int image, int row, Box box, float score, int label, int anchor)
{
    const unsigned long long at = 1ull * image * args.M + row;
    reinterpret_cast<Box*>(args.detections_boxes)[at] = box;
    args.detections_scores[at] = score;
    args.detections_classes[at] = label;
    args.detections_anchors[at] = anchor;
}

extern "C" __global__ void select_example(const __grid_constant__ Args args)
{
    const int image = blockIdx.y, slot = blockIdx.x * blockDim.x + threadIdx.x;
    if (slot >= args.A) return; // the last block has threads past the end
    const int count = min(args.candidates_count[image], args.A), found = min(count, args.M);
    const unsigned long long base = 1ull * image * args.A;

    if (slot < count) {
        int row = 0;
        for (int other = 0; other < count; ++other) row += comes_before(args, base + other, base + slot);
        if (row < found) {
            const Box box = reinterpret_cast<const Box*>(args.candidates_boxes)[base + slot];
            const float* g = args.geometry + 6ull * image; // scale x y, left, top, width, height
            const Box in_frame = {to_frame(box.x1, g[2], g[0], g[4]), to_frame(box.y1, g[3], g[1], g[5]),
                                  to_frame(box.x2, g[2], g[0], g[4]), to_frame(box.y2, g[3], g[1], g[5])};
            write(args, image, row, in_frame, args.candidates_scores[base + slot],
                  args.candidates_classes[base + slot], args.candidates_anchors[base + slot]);
        }
    }
    if (slot >= found && slot < args.M) write(args, image, slot, Box{}, 0.0f, 0, -1); // rows left over
    if (slot > 0) return;
    int* counters = args.detections_counters + 5ull * image;
    args.detections_count[image] = found;
    counters[0] = count;
    counters[1] = found;
    counters[2] = 0;
    counters[3] = count - found;
    counters[4] = args.candidates_nans[image];
}
