// Soft non-maximum suppression (Bodla et al., 2017): the best candidate is taken and the scores of
// those that it overlaps decay, until none is above min_score or there is no more room. Then model
// pixels to frame pixels.
//
// Bytes, for K candidates and M places an image: reads 28 K, writes 24 M; scratch 4 K. The floor is
// not memory but M rounds one after the other: in each, a block lets K scores decay and finds the
// best of them.
#include "../detections.cuh"

constexpr int THREADS = 512; // as in the contract
constexpr int WARPS = THREADS / WARP;

// ---- The best of the scores that are left.

struct Pick
{
    unsigned long long key; // 0: none
    int slot;
};

__device__ unsigned long long key_of(float score, int anchor)
{
    return (1ull * __float_as_uint(score) << 32) | ~static_cast<unsigned int>(anchor);
}

__device__ void take_better(const Args& args, unsigned long long base, Pick& best, Pick other)
{
    const bool equals = other.key == best.key && other.key != 0 && other.slot != best.slot;
    if (other.key > best.key || (equals && first_of_equals(args, base, other.slot, best.slot)))
        best = other;
}

__device__ Pick best_of_warp(const Args& args, unsigned long long base, Pick best)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        const unsigned long long key = __shfl_xor_sync(ALL, best.key, distance);
        const int slot = __shfl_xor_sync(ALL, best.slot, distance);
        take_better(args, base, best, {key, slot});
    }
    return best;
}

// The whole block calls, and all threads get it.
__device__ Pick best_of_block(const Args& args, unsigned long long base, Pick best)
{
    __shared__ Pick of_warps[WARPS];
    best = best_of_warp(args, base, best);
    if (threadIdx.x % WARP == 0) of_warps[threadIdx.x / WARP] = best;
    __syncthreads();
    best = best_of_warp(args, base, of_warps[threadIdx.x % WARPS]);
    __syncthreads();
    return best;
}

// ---- The decay.

__device__ float decayed(const Args& args, float score, Box winner, Box box)
{
    const float common = common_area(winner, box);
    if (!(common > 0.0f)) return score;
    const float overlap = common / (area_of(winner) + area_of(box) - common);
    if (Args::method == Args::method_linear)
        return overlap > *args.iou_threshold ? score * (1.0f - overlap) : score;
    return score * expf(-(overlap * overlap) / *args.sigma);
}

extern "C" __global__ void __launch_bounds__(THREADS) select_soft_nms(const Args args)
{
    __shared__ int alive_of_block;
    const int image = blockIdx.x, count = candidates_of(args, image);
    const int room = min(*args.max_detections, args.M);
    const unsigned long long base = 1ull * image * args.A;
    const Box* __restrict__ boxes = reinterpret_cast<const Box*>(args.candidates_boxes) + base;
    const int* __restrict__ labels = args.candidates_classes + base;
    const int* __restrict__ anchors = args.candidates_anchors + base;
    float* scores = args.scores + base; // a thread reads and writes its own; 0 once taken

    if (threadIdx.x == 0) alive_of_block = 0;
    for (int i = threadIdx.x; i < count; i += THREADS) scores[i] = args.candidates_scores[base + i];

    int found = 0, alive;
    Pick winner{};
    for (;;) {
        const bool first = found == 0;
        const Box box = first ? Box{} : boxes[winner.slot];
        const int label = first ? 0 : labels[winner.slot];
        Pick best{};
        alive = 0;
        for (int i = threadIdx.x; i < count; i += THREADS) {
            float score = scores[i];
            if (!(score > *args.min_score)) continue;
            const bool reached = !first && (!Args::class_aware || labels[i] == label);
            if (!first && i == winner.slot) score = 0.0f;
            else if (reached) score = decayed(args, score, box, boxes[i]);
            scores[i] = score;
            if (!(score > *args.min_score)) continue;
            ++alive;
            take_better(args, base, best, {key_of(score, anchors[i]), i});
        }
        winner = best_of_block(args, base, best);
        if (winner.key == 0 || found == room) break;
        if (threadIdx.x == 0) {
            const float score = __uint_as_float(static_cast<unsigned int>(winner.key >> 32));
            const Box frame = to_frame(boxes[winner.slot], args.geometry + 6ull * image);
            write_row(args, image, found, frame, score, labels[winner.slot], anchors[winner.slot]);
        }
        ++found;
    }
    if (alive > 0) atomicAdd(&alive_of_block, alive);
    __syncthreads();

    for (int empty = found + threadIdx.x; empty < args.M; empty += THREADS)
        write_row(args, image, empty, Box{}, 0.0f, 0, -1);
    if (threadIdx.x == 0) {
        int* counters = args.detections_counters + 5ull * image;
        args.detections_count[image] = found;
        counters[0] = count;
        counters[1] = found;
        counters[2] = 0;
        counters[3] = alive_of_block;
        counters[4] = args.candidates_nans[image];
    }
}
