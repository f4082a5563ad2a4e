// SSD heads: class scores [N, A, 1 + C] that add up to 1, the background first, and [N, A, 4], by
// which centre x, centre y, width and height differ from a prior box. Priors come from parameters:
// levels follow each other, cells of a level row by row, and the priors of a cell side by side. Where
// the graph has applied them, the four are corners, in parts of the picture.
//
// Reads C + 1 scores an anchor once, and the offsets of kept anchors alone; writes 28 bytes a
// candidate. Floor: N * A * (1 + C) * sizeof(scores_t) bytes at the speed of the memory; 35 kB for
// 4420 priors of faces in float32: a launch is all that it costs.
#include "../heads.cuh"

struct Prior // one axis of it, in pixels
{
    float centre, size;
};

__device__ Prior prior_of(const Args& args, int anchor, int axis)
{
    int level = 0, first = 0;
    for (; level < args.strides_count - 1; ++level) {
        const int stride = args.strides[level];
        const int cells = parts(args.model_W, stride) * parts(args.model_H, stride);
        if (anchor < cells * args.priors_a_cell[level]) break;
        anchor -= cells * args.priors_a_cell[level];
        first += args.priors_a_cell[level];
    }
    const int cell = anchor / args.priors_a_cell[level];
    const int shape = first + anchor % args.priors_a_cell[level];
    const int columns = parts(args.model_W, args.strides[level]);
    const int rows = parts(args.model_H, args.strides[level]);
    const float model = axis ? args.model_H : args.model_W;
    const float cell_size = model / (axis ? rows : columns);
    const int at = axis ? cell / columns : cell % columns;
    const Prior prior = {(at + 0.5f) * cell_size, args.priors[2 * shape + axis]};
    if (!args.clip) return prior;
    return {fminf(prior.centre, model), fminf(prior.size, model)};
}

extern "C" __global__ void decode_ssd(const __grid_constant__ Args args)
{
    const int image = blockIdx.y;
    const Place place = place_among(args.A, blockIdx.x);
    const unsigned long long at = 1ull * image * args.A + place.anchor;
    const auto* scores = args.scores + at * (1 + args.C);
    const Best best = best_in_row<1, 1 + Args::C, LANES>(scores, place.exists);

    float mine = 0.0f;
    if (place.exists && best.score > *args.score_threshold) {
        const float raw = load(args.boxes + at * 4 + place.side);
        if (args.decoded) {
            mine = raw * (place.side % 2 ? args.model_H : args.model_W);
        } else {
            const Prior prior = prior_of(args, place.anchor, place.side % 2);
            const float offset = raw * args.variances[place.side / 2];
            mine = place.side < 2 ? offset * prior.size + prior.centre : expf(offset) * prior.size;
        }
    }
    const Box box = args.decoded ? box_from_corners(mine) : box_from_centre(mine);
    append_above(args, image, place.leads(), best.score, best.index, place.anchor, box);
}
