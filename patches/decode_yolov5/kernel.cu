// YOLOv5-like head, [N, A, 5 + C]: cx cy w h in model pixels, objectness, then C classes, all of it
// decoded; one anchor is one row.
//
// Reads each row once: (5 + C) * sizeof(head_t) bytes an anchor; writes 28 bytes a candidate.
// Floor: N * A * (5 + C) * sizeof(head_t) bytes at the memory's speed; 8.6 MB for 25200 anchors and
// 80 classes, 2.1 us at 4 TB/s.
//
// Eight neighbouring lanes share a row, so a warp reads four rows that lie one behind the other.

constexpr int BLOCK = 128; // threads, as in the contract
constexpr int LANES = 8;   // threads a row

extern "C" __global__ void decode_yolov5(const Args args)
{
    using T = Args::head_t;
    constexpr int ROW = 5 + Args::C;
    const int image = blockIdx.y, anchor = blockIdx.x * (BLOCK / LANES) + threadIdx.x / LANES;
    const bool active = anchor < args.A;
    const T* __restrict__ row = args.head + (1ull * image * args.A + anchor) * ROW;
    const Best best = best_in_row<5, ROW, LANES>(row, active);

    Candidate candidate{};
    if (active && threadIdx.x % LANES == 0) {
        candidate.score = best.score * load(row + 4);
        candidate.label = best.index;
        candidate.anchor = anchor;
        candidate.nan = is_nan(candidate.score);
        candidate.keep = candidate.score > *args.score_threshold;
    }
    if (candidate.keep) {
        candidate.box = box_around(load(row), load(row + 1), load(row + 2), load(row + 3));
        candidate.nan = has_nan(candidate.box);
        candidate.keep = !candidate.nan;
    }
    append(args, image, candidate);
}
