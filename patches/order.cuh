// The order of all candidates of an image: runs of CHUNK neighbours are sorted, each by one block,
// then every candidate counts how many of each other run come before it.
//
// For K candidates that is 256 K comparisons in the runs and K * K / 28 across them, none waiting
// for another. A contract that uses it has the parameter class_score_thresholds, the size
// CHUNKS: "max(1, ceil_div(A, 256))", blocks of 1024 threads, and the scratch
//   run_keys: uint64 [N, 256 * CHUNKS]     order: int32 [N, 256 * CHUNKS]
//   run_slots: int32 [N, 256 * CHUNKS]     passed: int32 [N], cleared
//   shared_work: int32 [N, 4], cleared
#include "detections.cuh"

constexpr int CHUNK = 256;                  // candidates of a run
constexpr int PARTS = 1024 / CHUNK;         // threads a candidate
constexpr unsigned long long ABSENT = 0ull; // comes after the key of every candidate

__device__ inline unsigned long long room_of(const Args& args, int image)
{
    return 1ull * image * args.CHUNKS * CHUNK;
}

// The key of a candidate, ABSENT if it does not score above the threshold of its class.
__device__ inline unsigned long long key_of(const Args& args, unsigned long long at)
{
    if (Args::class_score_thresholds_count > 0) {
        const int label = args.candidates_classes[at];
        if (label < Args::class_score_thresholds_count &&
            !(args.candidates_scores[at] > args.class_score_thresholds[label]))
            return ABSENT;
    }
    return sort_key(args, at);
}

// Work that the blocks of an image share: pieces, each done once, by whichever block takes it, and
// no block goes on before all are done. It waits only for pieces that running blocks have taken, so
// the blocks need not run at the same time. counts: pieces taken, pieces done.
template <typename Piece> __device__ void share(int* counts, int pieces, Piece piece)
{
    __shared__ int taken;
    for (;;) {
        if (threadIdx.x == 0) taken = atomicAdd(counts, 1);
        __syncthreads();
        if (taken >= pieces) break;
        piece(taken);
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(counts + 1, 1);
        }
    }
    if (threadIdx.x == 0) {
        const volatile int* done = counts + 1;
        while (*done < pieces) {}
        __threadfence();
    }
    __syncthreads();
}

// ---- Inside a run.

struct Run // in shared memory
{
    unsigned long long keys[CHUNK]; // of the slots from the run's first on
    int places[CHUNK];              // of those slots: how many keys are larger
    int slots[CHUNK];               // in their order, counted from the run's first
};

// Sorts the candidates of slots `first` to `first + CHUNK - 1`; how many are not absent.
__device__ inline int sort_run(const Args& args, int image, int count, int first, Run& run)
{
    const unsigned long long base = 1ull * image * args.A + first;
    const int slot = threadIdx.x % CHUNK, part = threadIdx.x / CHUNK;
    if (part == 0) {
        run.keys[slot] = first + slot < count ? key_of(args, base + slot) : ABSENT;
        run.places[slot] = 0;
        run.slots[slot] = -1;
    }
    const int present = __syncthreads_count(part == 0 && run.keys[slot] != ABSENT);
    const unsigned long long own = run.keys[slot];
    const int in_run = min(count - first, CHUNK);
    int before = 0;
#pragma unroll 4
    for (int other = part; other < in_run; other += PARTS) before += run.keys[other] > own;
    atomicAdd(&run.places[slot], before);
    __syncthreads();

    const bool writes = part == 0 && own != ABSENT;
    if (writes) atomicMax(&run.slots[run.places[slot]], slot);
    __syncthreads();
    const bool equals = writes && run.slots[run.places[slot]] != slot; // two want one place
    if (!__syncthreads_or(equals)) return present;
    if (writes) {
        int place = run.places[slot];
        for (int other = 0; other < in_run; ++other)
            if (run.keys[other] == own && other != slot)
                place += first_of_equals(args, base, other, slot);
        run.slots[place] = slot;
    }
    __syncthreads();
    return present;
}

// Sorts run `index` of an image and puts it where `find_places` looks.
__device__ inline void store_run(const Args& args, int image, int count, int index, Run& run)
{
    const int first = index * CHUNK, place = threadIdx.x;
    const unsigned long long room = room_of(args, image) + first;
    const int present = sort_run(args, image, count, first, run);
    if (place < CHUNK) {
        const int slot = place < present ? run.slots[place] : 0;
        args.run_keys[room + place] = place < present ? run.keys[slot] : ABSENT;
        args.run_slots[room + place] = first + slot;
    }
    if (place == 0) atomicAdd(&args.passed[image], present);
}

// ---- Across runs.

constexpr int AT_ONCE = 4; // runs that a thread searches at once: memory is far away

// How many of AT_ONCE sorted runs come before a candidate, those from run `first` on, PARTS apart.
__device__ inline int before_in_runs(const Args& args, int image, int first, int runs,
                                     unsigned long long key, int slot)
{
    const unsigned long long base = 1ull * image * args.A;
    unsigned long long starts[AT_ONCE];
    int before[AT_ONCE] = {}, all = 0;
    for (int i = 0; i < AT_ONCE; ++i)
        starts[i] = room_of(args, image) + min(first + i * PARTS, runs - 1) * CHUNK;
    for (int step = CHUNK / 2; step > 0; step /= 2)
        for (int i = 0; i < AT_ONCE; ++i)
            if (args.run_keys[starts[i] + before[i] + step - 1] > key) before[i] += step;
    for (int i = 0; i < AT_ONCE && first + i * PARTS < runs; ++i) {
        const unsigned long long* keys = args.run_keys + starts[i];
        const int* slots = args.run_slots + starts[i];
        if (keys[before[i]] > key) ++before[i];
        while (before[i] < CHUNK && keys[before[i]] == key &&
               first_of_equals(args, base, slots[before[i]], slot))
            ++before[i];
        all += before[i];
    }
    return all;
}

// Gives the candidates of run `index` their places in the order of the image.
__device__ inline void find_places(const Args& args, int image, int count, int index, Run& run)
{
    const int i = threadIdx.x % CHUNK, part = threadIdx.x / CHUNK;
    const int runs = (count + CHUNK - 1) / CHUNK;
    const unsigned long long room = room_of(args, image), own = room + index * CHUNK + i;
    const unsigned long long key = args.run_keys[own];
    const int slot = key != ABSENT ? args.run_slots[own] : 0;
    if (part == 0) run.places[i] = 0;
    __syncthreads();
    int before = 0;
    for (int first = part; key != ABSENT && first < runs; first += PARTS * AT_ONCE)
        before += before_in_runs(args, image, first, runs, key, slot);
    if (before > 0) atomicAdd(&run.places[i], before);
    __syncthreads();
    if (part == 0 && key != ABSENT) args.order[room + run.places[i]] = slot;
}

// Puts an image's candidates in order; all its blocks call, and each may then read args.order.
__device__ inline void order_candidates(const Args& args, int image, int count)
{
    __shared__ Run run;
    int* work = args.shared_work + 4ull * image;
    const int runs = (count + CHUNK - 1) / CHUNK;
    share(work, runs, [&](int index) { store_run(args, image, count, index, run); });
    share(work + 2, runs, [&](int index) { find_places(args, image, count, index, run); });
}
