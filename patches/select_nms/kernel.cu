// Greedy non-maximum suppression, truly sequential in its outcome: by score from the highest, equal
// scores by anchor, a box is kept unless a kept box before it (of its class, if class_aware)
// overlaps it with IoU > iou_threshold. IoU as in torchvision: no + 1, float, rounded step by step;
// an empty union gives no overlap. Kept boxes go to frame pixels and are clipped there, at the end.
//
// Bytes, for K candidates and M places an image: reads 28 K, writes 24 M. Scratch: 4 bytes a
// candidate for the order, 1 bit (stored as 2) for the verdict; no matrix of overlaps, so memory
// grows with K alone. The floor is not memory but K * (kept boxes) overlaps, spread over the GPU.
//
// 1. rank: a candidate's place is the number of candidates before it. A warp counts for four.
// 2. suppress: blocks take tickets, so that a block waits only for blocks that already run. Each
//    decides 256 neighbours in the order: it tests them against the kept boxes of each chunk before
//    it, as soon as that chunk's verdict is out, then settles them among themselves and publishes
//    its own. A verdict is 32 bits of boxes and one bit that says so, stored as one word.

#include "../detections.cuh"

constexpr int CHUNK = 256;            // candidates a block decides, as in the contract
constexpr int WORDS = CHUNK / WARP;   // verdict words a chunk
constexpr int PARTS = 1024 / CHUNK;   // threads a candidate
constexpr unsigned long long DECIDED = 1ull << 32;

// ---- 1. The order.

extern "C" __global__ void select_nms_rank(const Args args)
{
    const int image = blockIdx.y, lane = threadIdx.x % WARP;
    const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    const int warps = gridDim.x * blockDim.x / WARP;
    const int count = candidates_of(args, image);
    const unsigned long long base = 1ull * image * args.A;

    for (int first = warp * RANKED; first < count; first += warps * RANKED) {
        int before[RANKED];
        rank(args, base, count, first, before);
        for (int i = 0; i < RANKED; ++i)
            if (lane == 0 && first + i < count) args.order[base + before[i]] = first + i;
    }
}

// ---- 2. The verdicts.

struct Ranked // a candidate at its place in the order
{
    Box box;
    int label;
};

__device__ float area_of(Box box) { return __fmul_rn(box.x2 - box.x1, box.y2 - box.y1); }

__device__ bool suppresses(const Ranked& better, const Ranked& one, float threshold)
{
    if (Args::class_aware && better.label != one.label) return false;
    const Box a = better.box, b = one.box;
    const float width = fminf(a.x2, b.x2) - fmaxf(a.x1, b.x1);
    const float height = fminf(a.y2, b.y2) - fmaxf(a.y1, b.y1);
    if (!(width > 0.0f && height > 0.0f)) return false;
    const float common = __fmul_rn(width, height);
    return common / (area_of(a) + area_of(b) - common) > threshold;
}

__device__ Ranked ranked_at(const Args& args, unsigned long long base, int place)
{
    const unsigned long long at = base + args.order[base + place];
    return {reinterpret_cast<const Box*>(args.candidates_boxes)[at], args.candidates_classes[at]};
}

__device__ unsigned int below(int lane) { return (1u << lane) - 1; }

// Waits until the 32 candidates of a verdict word are decided; says which are kept.
__device__ unsigned int await(const volatile unsigned long long* word)
{
    unsigned long long verdict;
    do verdict = *word;
    while (!(verdict & DECIDED));
    return static_cast<unsigned int>(verdict);
}

struct Chunk // in shared memory
{
    Ranked own[CHUNK];
    Ranked earlier[CHUNK];             // kept boxes of one chunk before, 32 places a word
    int earlier_count[WORDS];
    unsigned int rivals[WORDS][CHUNK]; // which of the word's candidates could suppress this one
    unsigned int dead[WORDS];          // suppressed by an earlier chunk
    unsigned int kept[WORDS];
    int ticket;
};

// Settles 32 candidates among themselves, one a lane. Each round keeps those that no open candidate
// before them could suppress, and closes those that a kept one does; the first open one is always
// among the former. Same outcome as one by one, in as many rounds as the longest chain of overlaps.
__device__ unsigned int settle(bool open, unsigned int rivals, int lane)
{
    unsigned int kept = 0, left = __ballot_sync(ALL, open);
    while (left) {
        const unsigned int won = __ballot_sync(ALL, open && !(rivals & left));
        kept |= won;
        open = open && !(won >> lane & 1) && !(rivals & won);
        left = __ballot_sync(ALL, open);
    }
    return kept;
}

// The first warp decides the chunk, word by word, and publishes each word.
__device__ void decide(Chunk& chunk, volatile unsigned long long* verdicts, int places, int lane)
{
    for (int word = 0; word < WORDS; ++word) {
        const int slot = word * WARP + lane;
        bool open = slot < places && !(chunk.dead[word] >> lane & 1);
        for (int w = 0; w < word; ++w) open = open && !(chunk.rivals[w][slot] & chunk.kept[w]);
        const unsigned int kept = settle(open, chunk.rivals[word][slot], lane);
        if (lane == 0) {
            chunk.kept[word] = kept;
            verdicts[word] = DECIDED | kept;
        }
        __syncwarp();
    }
}

extern "C" __global__ void select_nms_suppress(const Args args)
{
    __shared__ Chunk chunk;
    if (threadIdx.x == 0) chunk.ticket = atomicAdd(args.tickets, 1);
    __syncthreads();
    const int image = chunk.ticket % args.N, index = chunk.ticket / args.N;
    const int count = candidates_of(args, image), topk = *args.pre_nms_topk;
    const int looked_at = topk > 0 ? min(topk, count) : count;
    const int first = index * CHUNK, places = min(looked_at - first, CHUNK);
    if (index > 0 && places <= 0) return;

    const unsigned long long base = 1ull * image * args.A;
    volatile unsigned long long* verdicts = args.kept + 1ull * image * args.CHUNKS * WORDS;
    const float threshold = *args.iou_threshold;
    const int slot = threadIdx.x % CHUNK, part = threadIdx.x / CHUNK;
    const int word = slot / WARP, lane = slot % WARP;
    const bool present = slot < places;

    if (part == 0 && present) chunk.own[slot] = ranked_at(args, base, first + slot);
    if (threadIdx.x < WORDS) chunk.dead[threadIdx.x] = 0;
    __syncthreads();
    const Ranked own = present ? chunk.own[slot] : Ranked{};
    for (int w = part; w <= word; w += PARTS) {
        unsigned int rivals = 0;
        for (int i = 0; i < WARP && present && w * WARP + i < slot; ++i)
            if (suppresses(chunk.own[w * WARP + i], own, threshold)) rivals |= 1u << i;
        chunk.rivals[w][slot] = rivals;
    }

    int kept_before = 0;
    bool dead = false;
    for (int earlier = 0; earlier < index; ++earlier) {
        if (part == 0) {
            const Ranked one = ranked_at(args, base, earlier * CHUNK + slot);
            const unsigned int kept = await(verdicts + earlier * WORDS + word);
            if (kept >> lane & 1) chunk.earlier[word * WARP + __popc(kept & below(lane))] = one;
            if (lane == 0) chunk.earlier_count[word] = __popc(kept);
        }
        __syncthreads();
        for (int w = part; w < WORDS; w += PARTS)
            for (int i = 0; i < chunk.earlier_count[w] && present && !dead; ++i)
                dead = suppresses(chunk.earlier[w * WARP + i], own, threshold);
        for (int w = 0; w < WORDS; ++w) kept_before += chunk.earlier_count[w];
        __syncthreads();
    }
    const unsigned int died = __ballot_sync(ALL, dead);
    if (lane == 0 && died) atomicOr(&chunk.dead[word], died);
    __syncthreads();
    if (threadIdx.x < WARP) decide(chunk, verdicts + index * WORDS, places, lane);
    __syncthreads();

    const int room = min(*args.max_detections, args.M);
    int row = kept_before, total = kept_before;
    for (int w = 0; w < WORDS; ++w) {
        total += __popc(chunk.kept[w]);
        if (w < word) row += __popc(chunk.kept[w]);
    }
    row += __popc(chunk.kept[word] & below(lane));
    if (part == 0 && (chunk.kept[word] >> lane & 1) && row < room) {
        const unsigned long long at = base + args.order[base + first + slot];
        const Box box = to_frame(own.box, args.geometry + 6ull * image);
        write_row(args, image, row, box, args.candidates_scores[at], own.label,
                  args.candidates_anchors[at]);
    }
    if (first + CHUNK < looked_at) return;

    // The image's last chunk knows the totals and clears the rows that are left.
    const int found = min(total, room);
    for (int empty = found + threadIdx.x; empty < args.M; empty += blockDim.x)
        write_row(args, image, empty, Box{}, 0.0f, 0, -1);
    if (threadIdx.x == 0) {
        int* counters = args.detections_counters + 5ull * image;
        args.detections_count[image] = found;
        counters[0] = count;
        counters[1] = found;
        counters[2] = count - looked_at;
        counters[3] = total - found;
        counters[4] = args.candidates_nans[image];
    }
}
