// A chunk: CHUNK neighbours in the order of an image's candidates, which one block settles among
// themselves. greedy.cuh says what a Rule is.
#include "order.cuh"

constexpr int WORDS = CHUNK / WARP; // words of a verdict
constexpr unsigned long long DECIDED = 1ull << 32;

struct Image
{
    int index, count, topk, room;
    float threshold;
    unsigned long long base; // row of its first candidate
};

// How many chunks are decided, and how many candidates they keep; stored as one word.
struct Progress
{
    int decided, kept;
};

template <typename Item> struct Chunk // in shared memory
{
    Item own[CHUNK];
    Item better[CHUNK];                // of the chunk before, or what earlier ones have kept
    int slots[CHUNK];
    unsigned int rivals[WORDS][CHUNK]; // which of the word's candidates suppress this one
    unsigned int dead[WORDS];          // suppressed by an earlier chunk
    unsigned int kept[WORDS];
    Progress before;
    int ticket;
    Run run;
};

__device__ inline unsigned int below(int lane) { return (1u << lane) - 1; }

__device__ inline float threshold_for(const Args& args, const Image& image, int label)
{
    const bool own = Args::class_iou_thresholds_count > 0 &&
                     label < Args::class_iou_thresholds_count;
    return own ? args.class_iou_thresholds[label] : image.threshold;
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
__device__ void find_rivals(const Args& args, const Image& image, Chunk<Item>& chunk, int places)
{
    const int lane = threadIdx.x % WARP;
    for (int pair = threadIdx.x / WARP; pair < WORDS * (WORDS + 1) / 2; pair += PARTS * WORDS) {
        int word = 0, better = pair;
        while (better > word) better -= ++word;
        const int place = word * WARP + lane, count = min(places - better * WARP, WARP);
        unsigned int rivals = 0;
        if (place < places) {
            const Item one = chunk.own[place];
            const auto limit = Rule::limit(threshold_for(args, image, one.label));
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
__device__ int fill_slots(const Args& args, const Image& image, int index, Chunk<Item>& chunk)
{
    const int i = threadIdx.x, place = index * CHUNK + i;
    int passed;
    if (image.count <= CHUNK) {
        passed = sort_run(args, image.index, image.count, 0, chunk.run);
        if (i < passed) chunk.slots[i] = chunk.run.slots[i];
    } else {
        passed = args.passed[image.index];
        const int* order = args.order + room_of(args, image.index);
        if (i < CHUNK && place < passed) chunk.slots[i] = order[place];
    }
    __syncthreads();
    return passed;
}
