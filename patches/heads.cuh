// What the patches for raw heads share. Four neighbouring lanes have one anchor: together they find
// its best class, then each brings one side of its box. A block of 128 threads has a tile of 32
// anchors of one level, and tiles are counted through all levels, so that one launch does them all.
//
// A contract that uses levels has the sizes P (cells of each level) and A, and launches
// grid: [N, "sum(ceil_div(P, 32))"], times the maps of anchors that a level has. Its kernels take
// Args as __grid_constant__: an index into one of its arrays would cost a copy of Args otherwise.

constexpr int LANES = 4;            // threads an anchor
constexpr int TILE = 32;            // anchors a block
constexpr int BLOCK = TILE * LANES; // threads a block, as in the contracts

__device__ inline int parts(int whole, int part) { return (whole + part - 1) / part; }

__device__ inline float sigmoid(float logit) { return 1.0f / (1.0f + expf(-logit)); }

// ---- Where a thread is.

struct Place
{
    int level, map;   // which of the level's maps of anchors, where it has several
    int cells;        // of one map
    int first, cell;  // of the block's tile, of this thread's anchor
    int anchor, side; // 0 left, 1 top, 2 right, 3 bottom
    bool exists;      // a map's last tile may reach beyond it

    __device__ bool leads() const { return exists && side == 0; }
};

// Where all anchors are one map.
__device__ inline Place place_among(int cells, int tile)
{
    Place place{};
    place.cells = cells;
    place.first = tile * TILE;
    place.cell = place.anchor = place.first + threadIdx.x / LANES;
    place.side = threadIdx.x % LANES;
    place.exists = place.cell < cells;
    return place;
}

// Where they lie level after level, in a level map after map, in a map row after row.
template <int Maps = 1, typename Fields> __device__ inline Place place_of(const Fields& args)
{
    int level = 0, map = 0, tile = blockIdx.x, before = 0;
    for (; level < Fields::P_count - 1; ++level) {
        const int cells = args.P[level], tiles = Maps * parts(cells, TILE);
        if (tile < tiles) break;
        tile -= tiles;
        before += Maps * cells;
    }
    const int cells = args.P[level], tiles = parts(cells, TILE);
    if (Maps > 1) {
        map = tile / tiles;
        tile -= map * tiles;
    }
    Place place = place_among(cells, tile);
    place.level = level;
    place.map = map;
    place.anchor += before + map * cells;
    return place;
}

// ---- The best class.

// The best of Planes values of each anchor of the tile. A plane is the level's cells one behind the
// other, and so are the planes. The whole block calls; an anchor's four lanes all get its best.
//
// A thread reads 16 bytes (4 anchors, 8 as float16) of every GROUPS-th plane, up to 8 planes before
// it looks at the first: memory is far away. The groups meet in shared memory, whose rows are
// padded against bank conflicts. Where the cells or the address do not allow 16 bytes, the same
// threads read element by element.
template <int Planes, typename T>
__device__ inline Best best_in_planes(const T* planes, const Place& place)
{
    constexpr int SIZE = Wide<T>::size;
    constexpr int COLUMNS = TILE / SIZE;
    constexpr int GROUPS = BLOCK / COLUMNS;
    constexpr int STEPS = (Planes + GROUPS - 1) / GROUPS;
    constexpr int ROUNDS = (STEPS + 7) / 8;
    constexpr int AT_ONCE = (STEPS + ROUNDS - 1) / ROUNDS;
    __shared__ Pack<float, SIZE> scores[GROUPS][COLUMNS + 8 / SIZE];
    __shared__ Pack<int, SIZE> labels[GROUPS][COLUMNS + 8 / SIZE];

    const int column = threadIdx.x % COLUMNS, group = threadIdx.x / COLUMNS;
    const int first = place.first + column * SIZE, present = min(place.cells - first, SIZE);
    const T* __restrict__ values = planes + first;
    Best best[SIZE];
    if (present == SIZE && place.cells % SIZE == 0 && aligned_for<Wide<T>>(values)) {
        for (int step = 0; step < STEPS; step += AT_ONCE) {
            Wide<T> wide[AT_ONCE];
            int plane[AT_ONCE]; // a group that has no more reads the last plane again
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k) {
                plane[k] = min(group + (step + k) * GROUPS, Planes - 1);
                const T* row = values + 1ll * plane[k] * place.cells;
                wide[k] = *reinterpret_cast<const Wide<T>*>(row);
            }
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k)
                for (int i = 0; i < SIZE; ++i) take(best[i], to_float(wide[k].at[i]), plane[k]);
        }
    } else {
        for (int plane = group; plane < Planes; plane += GROUPS) {
            const T* row = values + 1ll * plane * place.cells;
            for (int i = 0; i < SIZE; ++i)
                if (i < present) take(best[i], load(row + i), plane);
        }
    }
    for (int i = 0; i < SIZE; ++i) {
        scores[group][column].at[i] = best[i].score;
        labels[group][column].at[i] = best[i].index;
    }
    __syncthreads();

    const int anchor = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    Best found;
    for (int g = lane; g < GROUPS; g += LANES) {
        const int c = anchor / SIZE, i = anchor % SIZE;
        merge(found, {scores[g][c].at[i], labels[g][c].at[i]});
    }
    for (int distance = LANES / 2; distance > 0; distance /= 2) {
        const float score = __shfl_xor_sync(0xffffffffu, found.score, distance);
        const int index = __shfl_xor_sync(0xffffffffu, found.index, distance);
        merge(found, {score, index});
    }
    return found;
}

// ---- The box.

// Expected value of a distribution over 0 to Bins - 1 that is given by its logits, `step` elements
// apart; a single value stands for itself.
template <int Bins, typename T>
__device__ inline float expectation(const T* __restrict__ bins, long long step)
{
    if (Bins == 1) return load(bins);
    float logits[Bins], largest = load(bins);
#pragma unroll
    for (int i = 0; i < Bins; ++i) {
        logits[i] = load(bins + i * step);
        largest = fmaxf(largest, logits[i]);
    }
    float sum = 0.0f, moment = 0.0f;
#pragma unroll
    for (int i = 0; i < Bins; ++i) {
        const float weight = expf(logits[i] - largest);
        sum += weight;
        moment += weight * i;
    }
    return moment / sum;
}

// What the four lanes of an anchor bring, one number each. The whole warp calls.
struct Four
{
    float at[LANES];
};

__device__ inline Four gather(float mine)
{
    const int first = threadIdx.x % 32 / LANES * LANES;
    Four four;
    for (int i = 0; i < LANES; ++i) four.at[i] = __shfl_sync(0xffffffffu, mine, first + i);
    return four;
}

// The box around a point; each lane brings how far one side is from it. The whole warp calls.
__device__ inline Box box_from_sides(float x, float y, float distance)
{
    const Four far = gather(distance);
    return {x - far.at[0], y - far.at[1], x + far.at[2], y + far.at[3]};
}

// The box of which the lanes bring left, top, right and bottom. The whole warp calls.
__device__ inline Box box_from_corners(float mine)
{
    const Four four = gather(mine);
    return {four.at[0], four.at[1], four.at[2], four.at[3]};
}

// The box of which the lanes bring centre x, centre y, width and height. The whole warp calls.
__device__ inline Box box_from_centre(float mine)
{
    const Four four = gather(mine);
    return box_around(four.at[0], four.at[1], four.at[2], four.at[3]);
}

// ---- The candidate.

// Appends what scores above the threshold and has no NaN in its box; counts what has one, there or
// as its score. `leads` is true in one of the lanes that bring the same anchor, and false in those
// that have none. The whole warp calls.
template <typename Fields>
__device__ inline void append_above(const Fields& args, int image, bool leads, float score,
                                    int label, int anchor, Box box)
{
    const bool above = score > *args.score_threshold;
    const bool nan = is_nan(score) || (above && has_nan(box));
    append(args, image, {leads && above && !nan, leads && nan, box, score, label, anchor});
}
