// Scores of a classifier from its logits [N, C], and its K best classes: by logit from the highest,
// equal ones by number. What is not a number ranks as -infinity, and leaves no softmax a number.
//
// Reads C * sizeof(logits_t) bytes an image from memory once, then from the cache; writes 8 K bytes.
// Floor: a launch and 2 + K meetings of a block; 1000 classes are 4 kB.
//
// A block has an image. For each place its threads look for the best class behind the last one.

constexpr int THREADS = 256; // a block, as in the contract
constexpr int WARP = 32;
constexpr int WARPS = THREADS / WARP;
constexpr unsigned int ALL = 0xffffffffu;

__device__ float lowest() { return __uint_as_float(0xff800000u); } // -infinity

// Calls visit(value, index) for each value of a row, spread over the block's threads.
template <typename T, typename Visit> __device__ void for_each(const T* row, Visit visit)
{
    constexpr int SIZE = Wide<T>::size;
    if (Args::C % SIZE == 0 && aligned_for<Wide<T>>(row)) {
        for (int first = threadIdx.x * SIZE; first < Args::C; first += THREADS * SIZE) {
            const auto values = *reinterpret_cast<const Wide<T>*>(row + first);
            for (int i = 0; i < SIZE; ++i) visit(to_float(values.at[i]), first + i);
        }
    } else {
        for (int at = threadIdx.x; at < Args::C; at += THREADS) visit(load(row + at), at);
    }
}

struct Meeting // in shared memory: what each warp brings
{
    float scores[WARPS];
    int indices[WARPS];
};

// The sum of what each thread brings; always added in the same order. Every thread gets it.
__device__ float sum_of_block(float value, Meeting& shared)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        value += __shfl_xor_sync(ALL, value, distance);
    __syncthreads();
    if (threadIdx.x % WARP == 0) shared.scores[threadIdx.x / WARP] = value;
    __syncthreads();
    float sum = 0.0f;
    for (int warp = 0; warp < WARPS; ++warp) sum += shared.scores[warp];
    return sum;
}

// The best of what each thread brings. Every thread gets it.
__device__ Best best_of_block(Best best, Meeting& shared)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        const float score = __shfl_xor_sync(ALL, best.score, distance);
        const int index = __shfl_xor_sync(ALL, best.index, distance);
        merge(best, {score, index});
    }
    __syncthreads();
    if (threadIdx.x % WARP == 0) {
        shared.scores[threadIdx.x / WARP] = best.score;
        shared.indices[threadIdx.x / WARP] = best.index;
    }
    __syncthreads();
    for (int warp = 0; warp < WARPS; ++warp)
        merge(best, {shared.scores[warp], shared.indices[warp]});
    return best;
}

// The best value that comes after another in the order; C where there is none.
template <typename T> __device__ Best best_after(Best last, const T* row, Meeting& shared)
{
    Best best{lowest(), Args::C};
    for_each(row, [&](float value, int index) {
        const float score = is_nan(value) ? lowest() : value;
        const bool after = score < last.score || (score == last.score && index > last.index);
        if (after) merge(best, {score, index});
    });
    return best_of_block(best, shared);
}

extern "C" __global__ void classify_topk(const __grid_constant__ Args args)
{
    __shared__ Meeting shared;
    const int image = blockIdx.x;
    const auto* row = args.logits + 1ull * image * args.C;
    Best last{-lowest(), -1};
    float largest = 0.0f, sum = 1.0f;
    for (int place = 0; place < args.K; ++place) {
        last = best_after(last, row, shared);
        if (place == 0 && args.activation == args.activation_softmax) {
            largest = last.score;
            float part = 0.0f;
            for_each(row, [&](float value, int) { part += expf(value - largest); });
            sum = sum_of_block(part, shared);
        }
        if (threadIdx.x > 0) continue;
        float score = load(row + last.index);
        if (args.activation == args.activation_softmax) score = expf(score - largest) / sum;
        if (args.activation == args.activation_sigmoid) score = 1.0f / (1.0f + expf(-score));
        args.classification_scores[1ull * image * args.K + place] = score;
        args.classification_classes[1ull * image * args.K + place] = last.index;
    }
}
