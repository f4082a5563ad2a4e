// YOLOv8-like head, [N, 4 + C, A]: cx cy w h in model pixels, then C scores already through a
// sigmoid; anchors lie side by side, so neighbouring threads read neighbouring anchors.
//
// Reads C scores an anchor once (4 bytes each, 2 as float16) and the 4 box values of kept anchors
// alone; writes 28 bytes a candidate. Floor: N * A * C * sizeof(head_t) bytes at the speed of the
// memory; 2.7 MB for 640 px and 80 classes, 0.7 us at 4 TB/s.
//
// A block takes a tile of 32 anchors. Its threads read 16 bytes (4 anchors, 8 as float16) of every
// GROUPS-th class, meet in shared memory, and the first warp settles one anchor a lane. Where A or
// the address does not allow 16 bytes, the same threads read element by element.

constexpr int TILE = 32;   // anchors a block; a warp's width
constexpr int BLOCK = 128; // threads, as in the contract

extern "C" __global__ void decode_yolov8(const Args args)
{
    using T = Args::head_t;
    constexpr int SIZE = Wide<T>::size;
    constexpr int COLUMNS = TILE / SIZE;
    constexpr int GROUPS = BLOCK / COLUMNS;
    __shared__ Pack<float, SIZE> scores[GROUPS][COLUMNS];
    __shared__ Pack<int, SIZE> labels[GROUPS][COLUMNS];

    const int image = blockIdx.y, tile = blockIdx.x * TILE;
    const int column = threadIdx.x % COLUMNS, group = threadIdx.x / COLUMNS;
    const int first = tile + column * SIZE, present = min(args.A - first, SIZE);
    const T* __restrict__ head = args.head + 1ull * image * (4 + args.C) * args.A;
    const T* __restrict__ classes = head + 4ull * args.A + first;

    Best best[SIZE];
    if (present == SIZE && args.A % SIZE == 0 && aligned_for<Wide<T>>(classes)) {
#pragma unroll 8
        for (int label = group; label < args.C; label += GROUPS) {
            const T* row = classes + 1ull * label * args.A;
            const auto values = *reinterpret_cast<const Wide<T>*>(row);
            for (int i = 0; i < SIZE; ++i) take(best[i], to_float(values.at[i]), label);
        }
    } else {
        for (int label = group; label < args.C; label += GROUPS) {
            const T* row = classes + 1ull * label * args.A;
            for (int i = 0; i < present; ++i) take(best[i], load(row + i), label);
        }
    }
    for (int i = 0; i < SIZE; ++i) {
        scores[group][column].at[i] = best[i].score;
        labels[group][column].at[i] = best[i].index;
    }
    __syncthreads();
    if (threadIdx.x >= TILE) return;

    const int lane = threadIdx.x, anchor = tile + lane;
    Best found;
    for (int g = 0; g < GROUPS; ++g) {
        const int c = lane / SIZE, i = lane % SIZE;
        merge(found, {scores[g][c].at[i], labels[g][c].at[i]});
    }

    Candidate candidate{};
    candidate.nan = is_nan(found.score);
    candidate.keep = anchor < args.A && found.score > *args.score_threshold;
    if (candidate.keep) {
        const T* at = head + anchor;
        const long long a = args.A;
        candidate.box = box_around(load(at), load(at + a), load(at + 2 * a), load(at + 3 * a));
        candidate.nan = has_nan(candidate.box);
        candidate.keep = !candidate.nan;
    }
    candidate.score = found.score;
    candidate.label = found.index;
    candidate.anchor = anchor;
    append(args, image, candidate);
}
