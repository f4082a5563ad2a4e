// Raw YOLOX head, [N, A, 5 + C]: x y as offsets in grid cells, w h as logarithms of sizes in
// strides, objectness, then C classes, the last two already through a sigmoid; one anchor is one
// row, levels follow each other in the order of `strides`, cells of a level row by row.
//
// Reads each row once: (5 + C) * sizeof(head_t) bytes an anchor; writes 28 bytes a candidate.
// Floor: N * A * (5 + C) * sizeof(head_t) bytes at the memory's speed; 2.9 MB for 640 px and 80
// classes, 0.7 us at 4 TB/s.
//
// Eight neighbouring lanes share a row, so a warp reads four rows that lie one behind the other.

constexpr int BLOCK = 128; // threads, as in the contract
constexpr int LANES = 8;   // threads a row

struct Cell
{
    float x, y, stride; // x, y in cells, stride in pixels
};

__device__ Cell cell_of(const Args& args, int anchor)
{
    int level = 0;
    for (; level < args.strides_count - 1; ++level) {
        const int stride = args.strides[level];
        const int cells = (args.model_H / stride) * (args.model_W / stride);
        if (anchor < cells) break;
        anchor -= cells;
    }
    const int stride = args.strides[level];
    const int columns = args.model_W / stride;
    return {float(anchor % columns), float(anchor / columns), float(stride)};
}

extern "C" __global__ void decode_yolox(const __grid_constant__ Args args)
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
        const Cell cell = cell_of(args, anchor);
        candidate.box = box_around(
            (load(row) + cell.x) * cell.stride, (load(row + 1) + cell.y) * cell.stride,
            expf(load(row + 2)) * cell.stride, expf(load(row + 3)) * cell.stride);
        candidate.nan = has_nan(candidate.box);
        candidate.keep = !candidate.nan;
    }
    append(args, image, candidate);
}
