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
// Blocks take tickets, so that a block waits only for blocks that already run. Each decides CHUNK
// neighbours in the order: it tests them against the kept ones of each chunk before it, as soon as
// that chunk's verdict is out, then settles them among themselves and publishes its own. A verdict
// is 32 bits of candidates and one bit that says so, stored as one word. No matrix of overlaps is
// stored, so memory grows with the candidates alone.
//
// A contract that uses it has, besides what order.cuh asks for, the parameters iou_threshold,
// class_aware, class_iou_thresholds, max_detections and pre_nms_topk, and the scratch
//   kept: uint64 [N, 8 * CHUNKS], cleared     tickets: int32 [N], cleared
#include "order.cuh"

constexpr int WORDS = CHUNK / WARP; // words of a verdict
constexpr unsigned long long DECIDED = 1ull << 32;

template <typename Item> struct Chunk // in shared memory
{
    Item own[CHUNK];
    Item earlier[CHUNK];               // kept ones of one chunk before, 32 places a word
    int slots[CHUNK];
    int earlier_count[WORDS];
    unsigned int rivals[WORDS][CHUNK]; // which of the word's candidates could suppress this one
    unsigned int dead[WORDS];          // suppressed by an earlier chunk
    unsigned int kept[WORDS];
    int ticket;
    Run run;
};

__device__ inline unsigned int below(int lane) { return (1u << lane) - 1; }

__device__ inline float threshold_for(const Args& args, int label)
{
    const bool own = Args::class_iou_thresholds_count > 0 &&
                     label < Args::class_iou_thresholds_count;
    return own ? args.class_iou_thresholds[label] : *args.iou_threshold;
}

// Which of up to 32 better ones suppress this one, a bit each.
template <typename Rule, typename Item, typename Limit>
__device__ inline unsigned int suppressors(const Item* better, int count, const Item& one,
                                           const Limit& limit)
{
    unsigned int could = 0, found = 0;
#pragma unroll 4
    for (int i = 0; i < count; ++i) {
        if (Args::class_aware && better[i].label != one.label) continue;
        if (Rule::could(better[i], one, limit)) could |= 1u << i;
    }
    for (; could; could &= could - 1) {
        const int i = __ffs(could) - 1;
        if (Rule::suppresses(better[i], one, limit)) found |= 1u << i;
    }
    return found;
}

// Waits until the 32 candidates of a verdict word are decided; says which are kept.
__device__ inline unsigned int await(const volatile unsigned long long* word)
{
    unsigned long long verdict;
    do verdict = *word;
    while (!(verdict & DECIDED));
    return static_cast<unsigned int>(verdict);
}

// Finds which of the chunk's candidates suppress which, each warp 32 of one word and 32 of another.
template <typename Rule, typename Item>
__device__ void find_rivals(const Args& args, Chunk<Item>& chunk, int places)
{
    const int lane = threadIdx.x % WARP;
    for (int pair = threadIdx.x / WARP; pair < WORDS * (WORDS + 1) / 2; pair += PARTS * WORDS) {
        int word = 0, better = pair;
        while (better > word) better -= ++word;
        const int place = word * WARP + lane, count = min(places - better * WARP, WARP);
        unsigned int rivals = 0;
        if (place < places) {
            const Item one = chunk.own[place];
            const auto limit = Rule::limit(threshold_for(args, one.label));
            rivals = suppressors<Rule>(chunk.own + better * WARP, count, one, limit);
        }
        chunk.rivals[better][place] = better < word ? rivals : rivals & below(lane);
    }
}

// Settles 32 candidates among themselves, one a lane. Each round keeps those that no open candidate
// before them could suppress, and closes those that a kept one does; the first open one is always
// among the former. Same outcome as one by one, in as many rounds as the longest chain of overlaps.
__device__ inline unsigned int settle(bool open, unsigned int rivals, int lane)
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
template <typename Item>
__device__ void decide(Chunk<Item>& chunk, volatile unsigned long long* verdicts, int places)
{
    const int lane = threadIdx.x;
    unsigned int kept[WORDS];
#pragma unroll
    for (int word = 0; word < WORDS; ++word) {
        const int place = word * WARP + lane;
        unsigned int killers = 0;
#pragma unroll
        for (int w = 0; w < word; ++w) killers |= chunk.rivals[w][place] & kept[w];
        const bool open = place < places && !killers && !(chunk.dead[word] >> lane & 1);
        kept[word] = settle(open, chunk.rivals[word][place], lane);
        if (lane == 0) {
            chunk.kept[word] = kept[word];
            verdicts[word] = DECIDED | kept[word];
        }
    }
}

// The candidates of a chunk, in their order; how many there are in the image that pass.
template <typename Item>
__device__ int fill_slots(const Args& args, int image, int count, int index, Chunk<Item>& chunk)
{
    const int i = threadIdx.x;
    int passed;
    if (count <= CHUNK) {
        passed = sort_run(args, image, count, 0, chunk.run);
        if (i < passed) chunk.slots[i] = chunk.run.slots[i];
    } else {
        const int place = index * CHUNK + i;
        passed = args.passed[image];
        if (i < CHUNK && place < passed) chunk.slots[i] = args.order[room_of(args, image) + place];
    }
    __syncthreads();
    return passed;
}

// Suppresses the candidates of the image's next chunk; false when there is none left.
template <typename Rule>
__device__ bool suppress_next(const Args& args, int image)
{
    using Item = typename Rule::Item;
    __shared__ Chunk<Item> chunk;
    if (threadIdx.x == 0) chunk.ticket = atomicAdd(&args.tickets[image], 1);
    __syncthreads();
    const int index = chunk.ticket, first = index * CHUNK;
    const int count = candidates_of(args, image), topk = *args.pre_nms_topk;
    if (index > 0 && first >= count) return false;
    const int passed = fill_slots(args, image, count, index, chunk);
    const int looked_at = topk > 0 ? min(topk, passed) : passed;
    const int places = min(looked_at - first, CHUNK);
    if (index > 0 && places <= 0) return false;

    const unsigned long long base = 1ull * image * args.A;
    volatile unsigned long long* verdicts = args.kept + 1ull * image * args.CHUNKS * WORDS;
    const int place = threadIdx.x % CHUNK, part = threadIdx.x / CHUNK;
    const int word = place / WARP, lane = place % WARP;
    const bool present = place < places;

    if (part == 0 && present) chunk.own[place] = Rule::item(args, base + chunk.slots[place]);
    if (threadIdx.x < WORDS) chunk.dead[threadIdx.x] = 0;
    __syncthreads();
    find_rivals<Rule>(args, chunk, places);

    const Item own = present ? chunk.own[place] : Item{};
    const auto limit = Rule::limit(threshold_for(args, own.label));
    int kept_before = 0;
    bool dead = false;
    for (int earlier = 0; earlier < index; ++earlier) {
        if (part == 0) {
            const int slot = args.order[room_of(args, image) + earlier * CHUNK + place];
            const Item one = Rule::item(args, base + slot);
            const unsigned int kept = await(verdicts + earlier * WORDS + word);
            if (kept >> lane & 1) chunk.earlier[word * WARP + __popc(kept & below(lane))] = one;
            if (lane == 0) chunk.earlier_count[word] = __popc(kept);
        }
        __syncthreads();
        for (int w = part; w < WORDS && present && !dead; w += PARTS)
            dead = suppressors<Rule>(chunk.earlier + w * WARP, chunk.earlier_count[w], own, limit);
        for (int w = 0; w < WORDS; ++w) kept_before += chunk.earlier_count[w];
        __syncthreads();
    }
    const unsigned int died = __ballot_sync(ALL, dead);
    if (lane == 0 && died) atomicOr(&chunk.dead[word], died);
    __syncthreads();
    if (threadIdx.x < WARP) decide(chunk, verdicts + index * WORDS, places);
    __syncthreads();

    const int room = min(*args.max_detections, args.M);
    int row = kept_before, total = kept_before;
    for (int w = 0; w < WORDS; ++w) {
        total += __popc(chunk.kept[w]);
        if (w < word) row += __popc(chunk.kept[w]);
    }
    row += __popc(chunk.kept[word] & below(lane));
    if (part == 0 && (chunk.kept[word] >> lane & 1) && row < room) {
        const unsigned long long at = base + chunk.slots[place];
        const Box box = reinterpret_cast<const Box*>(args.candidates_boxes)[at];
        write_row(args, image, row, to_frame(box, args.geometry + 6ull * image),
                  args.candidates_scores[at], own.label, args.candidates_anchors[at]);
        Rule::write(args, image, row, at);
    }
    if (first + CHUNK < looked_at) return true;

    // The image's last chunk knows the totals and clears the rows that are left.
    const int found = min(total, room);
    for (int empty = found + threadIdx.x; empty < args.M; empty += blockDim.x) {
        write_row(args, image, empty, Box{}, 0.0f, 0, -1);
        Rule::clear(args, image, empty);
    }
    if (threadIdx.x == 0) {
        int* counters = args.detections_counters + 5ull * image;
        args.detections_count[image] = found;
        counters[0] = passed;
        counters[1] = found;
        counters[2] = passed - looked_at;
        counters[3] = total - found;
        counters[4] = args.candidates_nans[image];
    }
    return false;
}

template <typename Rule> __device__ void select_greedily(const Args& args)
{
    const int image = blockIdx.x % args.N, count = candidates_of(args, image);
    if (count > CHUNK) order_candidates(args, image, count);
    while (suppress_next<Rule>(args, image)) {}
}
