// FastestDet head, [N, 5 + C, H, W]: objectness through its sigmoid, centre x, centre y, width and
// height raw, then C classes through their softmax; as a rule there is one level.
//
// Reads objectness and C classes an anchor once, and the 4 box values of kept anchors alone; writes
// 28 bytes a candidate. Floor: N * A * (1 + C) * sizeof(head_t) bytes at the speed of the memory;
// 0.16 MB for 352 px and 80 classes in float32: a launch is all that it costs.
#include "../heads.cuh"

// One of centre x, centre y, width, height, from what the network says of it; in pixels.
__device__ float coordinate(const Args& args, const Place& place, float raw)
{
    const float model = place.side % 2 ? args.model_H : args.model_W;
    if (place.side >= 2) return sigmoid(raw) * model;
    const int columns = args.W[place.level];
    const int cell = place.side ? place.cell / columns : place.cell % columns;
    const int stride = args.model_W / columns;
    return (cell + tanhf(raw)) * stride;
}

extern "C" __global__ void decode_fastestdet(const __grid_constant__ Args args)
{
    const int image = blockIdx.y;
    const Place place = place_of(args);
    const auto* head = args.head[place.level] + 1ull * image * (5 + args.C) * place.cells;
    const Best best = best_in_planes<Args::C>(head + 5ll * place.cells, place);

    float score = 0.0f, mine = 0.0f;
    if (place.exists) score = powf(load(head + place.cell), 0.6f) * powf(best.score, 0.4f);
    if (place.exists && score > *args.score_threshold) {
        const auto* raw = head + (1ll + place.side) * place.cells + place.cell;
        mine = coordinate(args, place, load(raw));
    }
    append_above(args, image, place.leads(), score, best.index, place.anchor,
                 box_from_centre(mine));
}
