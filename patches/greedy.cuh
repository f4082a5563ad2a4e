// Greedy suppression, truly sequential in its outcome: in the order of the candidates, one is kept
// unless a kept one before it suppresses it. What that means is the patch's own: its Rule has
//   Item                               what is compared: a shape and its label
//   item(args, at)                     the Item of the candidate in row `at`
//   Limit, limit(threshold)            what the tests compare with
//   could(better, one, limit)          a quick test that finds all that suppress and few others
//   suppresses(better, one, limit)     of those
//   write(args, image, row, at)        a detection, besides what every patch writes
//   clear(args, image, row)            the same of an empty row
//
// Blocks take tickets, so that a block waits only for blocks that already run. Each decides a
// chunk, CHUNK neighbours in the order. It finds out which of them suppress which, and which the
// chunk before could suppress; tests them against what earlier chunks have kept, as they come;
// waits for the verdict of the chunk before; and settles its own among themselves. A verdict goes
// out at once, as 32 bits of candidates and one that says so in a word; what was kept follows, in
// the order of the chunks. No matrix of overlaps is stored, so memory grows with the candidates.
//
// A contract that uses it has, besides what order.cuh asks for, the parameters iou_threshold,
// class_aware, class_iou_thresholds, max_detections and pre_nms_topk, and the scratch
//   verdicts: uint64 [N, 8 * CHUNKS], cleared     tickets: int32 [N], cleared
//   progress: uint64 [N], cleared                 survivors: int32 [N, A]
#include "chunk.cuh"

// ---- From chunk to chunk.

__device__ inline Progress progress_of(const Args& args, const Image& image)
{
    const volatile unsigned long long* word = args.progress + image.index;
    const unsigned long long progress = *word;
    return {static_cast<int>(progress >> 32), static_cast<int>(progress)};
}

// Lets later chunks have the survivors that this block has written, after those of earlier chunks.
__device__ inline void publish(const Args& args, const Image& image, Progress progress)
{
    __syncthreads();
    if (threadIdx.x > 0) return;
    while (progress_of(args, image).decided < progress.decided - 1) {}
    __threadfence();
    volatile unsigned long long* word = args.progress + image.index;
    *word = 1ull * progress.decided << 32 | static_cast<unsigned int>(progress.kept);
}

// Whether what earlier chunks have kept suppresses one, a share of it for each of its threads; goes
// on until so many chunks are decided. The whole block calls.
template <typename Rule, typename Item, typename Limit>
__device__ bool suppressed_before(const Args& args, const Image& image, int chunks,
                                  Chunk<Item>& chunk, bool present, const Item& one,
                                  const Limit& limit)
{
    constexpr int BATCH = PARTS * WARP;
    const int thread = threadIdx.x, part = thread / CHUNK;
    Progress seen{};
    bool dead = false;
    while (seen.decided < chunks) {
        if (thread == 0) {
            do chunk.before = progress_of(args, image);
            while (chunk.before.decided == seen.decided);
            __threadfence();
        }
        __syncthreads();
        const Progress now = chunk.before;
        for (; seen.kept < now.kept; seen.kept += BATCH) {
            const int batch = min(now.kept - seen.kept, BATCH), share = (batch + PARTS - 1) / PARTS;
            const int begin = part * share, count = min(batch - begin, share);
            if (thread < batch) {
                const int slot = args.survivors[image.base + seen.kept + thread];
                chunk.better[thread] = Rule::item(args, image.base + slot);
            }
            __syncthreads();
            if (present && !dead && count > 0)
                dead = suppressors<Rule>(chunk.better + begin, count, one, limit);
            __syncthreads();
        }
        seen = now;
        __syncthreads();
    }
    return dead;
}

// ---- The detections.

template <typename Rule>
__device__ void write_detection(const Args& args, const Image& image, int row, int slot)
{
    const unsigned long long at = image.base + slot;
    const Box box = reinterpret_cast<const Box*>(args.candidates_boxes)[at];
    write_row(args, image.index, row, to_frame(box, args.geometry + 6ull * image.index),
              args.candidates_scores[at], args.candidates_classes[at], args.candidates_anchors[at]);
    Rule::write(args, image.index, row, at);
}

// The image's last chunk knows the totals and clears the rows that are left.
template <typename Rule>
__device__ void finish(const Args& args, const Image& image, int total, int passed, int looked_at)
{
    const int found = min(total, image.room);
    for (int empty = found + threadIdx.x; empty < args.M; empty += blockDim.x) {
        write_row(args, image.index, empty, Box{}, 0.0f, 0, -1);
        Rule::clear(args, image.index, empty);
    }
    if (threadIdx.x > 0) return;
    int* counters = args.detections_counters + 5ull * image.index;
    args.detections_count[image.index] = found;
    counters[0] = passed;
    counters[1] = found;
    counters[2] = passed - looked_at;
    counters[3] = total - found;
    counters[4] = args.candidates_nans[image.index];
}

// ---- A chunk from its ticket to its detections.

// Suppresses the candidates of the image's next chunk; false when there is none left.
template <typename Rule> __device__ bool suppress_next(const Args& args, const Image& image)
{
    using Item = typename Rule::Item;
    __shared__ Chunk<Item> chunk;
    if (threadIdx.x == 0) {
        chunk.ticket = atomicAdd(&args.tickets[image.index], 1);
        chunk.before = progress_of(args, image);
    }
    __syncthreads();
    const int index = chunk.ticket, first = index * CHUNK;
    if (index > 0 && first >= image.count) return false;
    const int passed = fill_slots(args, image, index, chunk);
    const int looked_at = image.topk > 0 ? min(image.topk, passed) : passed;
    const int places = min(looked_at - first, CHUNK);
    if (index > 0 && places <= 0) return false;

    const int place = threadIdx.x % CHUNK, part = threadIdx.x / CHUNK;
    const int word = place / WARP, lane = place % WARP;
    const bool present = place < places, ahead = chunk.before.decided < index;
    if (part == 0 && present) chunk.own[place] = Rule::item(args, image.base + chunk.slots[place]);
    if (part == 1 && ahead) {
        const int slot = args.order[room_of(args, image.index) + first - CHUNK + place];
        chunk.better[place] = Rule::item(args, image.base + slot);
    }
    if (threadIdx.x < WORDS) chunk.dead[threadIdx.x] = 0;
    __syncthreads();
    find_rivals<Rule>(args, image, chunk, places);
    const Item own = present ? chunk.own[place] : Item{};
    const auto limit = Rule::limit(threshold_for(args, image, own.label));
    unsigned int rivals[WORDS / PARTS] = {}; // of the chunk before, for the words of this part
#pragma unroll
    for (int i = 0; i < WORDS / PARTS; ++i)
        if (ahead && present)
            rivals[i] =
                suppressors<Rule>(chunk.better + (part + i * PARTS) * WARP, WARP, own, limit);
    __syncthreads();

    volatile unsigned long long* verdicts =
        args.verdicts + (1ull * image.index * args.CHUNKS + index) * WORDS;
    bool dead = suppressed_before<Rule>(args, image, ahead ? index - 1 : index, chunk, present, own,
                                        limit);
    int kept_before = index > 0 ? chunk.before.kept : 0;
    if (chunk.before.decided < index) {
        const unsigned int kept = await(verdicts - WORDS + lane % WORDS);
#pragma unroll
        for (int i = 0; i < WORDS / PARTS; ++i)
            dead |= (rivals[i] & __shfl_sync(ALL, kept, part + i * PARTS)) != 0;
        int more = __popc(kept);
        for (int distance = WORDS / 2; distance > 0; distance /= 2)
            more += __shfl_xor_sync(ALL, more, distance);
        kept_before += more;
    }
    const unsigned int died = __ballot_sync(ALL, dead);
    if (lane == 0 && died) atomicOr(&chunk.dead[word], died);
    __syncthreads();
    if (threadIdx.x < WARP) decide(chunk, verdicts, places);
    __syncthreads();

    int row = kept_before, total = kept_before;
    for (int w = 0; w < WORDS; ++w) {
        total += __popc(chunk.kept[w]);
        if (w < word) row += __popc(chunk.kept[w]);
    }
    row += __popc(chunk.kept[word] & below(lane));
    const bool last = first + CHUNK >= looked_at;
    if (part == 0 && (chunk.kept[word] >> lane & 1)) {
        const int slot = chunk.slots[place];
        if (!last) args.survivors[image.base + row] = slot;
        if (row < image.room) write_detection<Rule>(args, image, row, slot);
    }
    if (!last) {
        publish(args, image, {index + 1, total});
        return true;
    }
    finish<Rule>(args, image, total, passed, looked_at);
    return false;
}

template <typename Rule> __device__ void select_greedily(const Args& args)
{
    const int index = blockIdx.x % args.N;
    const Image image = {index,
                         candidates_of(args, index),
                         *args.pre_nms_topk,
                         min(*args.max_detections, args.M),
                         *args.iou_threshold,
                         1ull * index * args.A};
    if (image.count > CHUNK) order_candidates(args, index, image.count);
    while (suppress_next<Rule>(args, image)) {}
}
