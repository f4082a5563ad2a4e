// YuNet-like heads, three tensors a level, one row an anchor: [N, P, C] class scores and [N, P, 1]
// objectness, both through their sigmoids, and [N, P, 4], by which a box's centre differs from the
// cell's corner and its size, as a logarithm, from the stride, all in strides.
//
// Reads C + 1 scores an anchor once, and the 4 box values of kept anchors alone; writes 28 bytes a
// candidate. Floor: N * A * (C + 1) * sizeof(classes_t) bytes at the speed of the memory; 67 kB for
// 640 px and faces alone in float32: a launch is all that it costs.
#include "../heads.cuh"

extern "C" __global__ void decode_yunet(const __grid_constant__ Args args)
{
    const int image = blockIdx.y;
    const Place place = place_of(args);
    const unsigned long long row = 1ull * image * place.cells + place.cell;
    const auto* classes = args.classes[place.level] + row * args.C;
    const Best best = best_in_row<0, Args::C, LANES>(classes, place.exists);
    float score = 0.0f, mine = 0.0f;
    if (place.exists) score = sqrtf(best.score * load(args.objectness[place.level] + row));

    if (place.exists && score > *args.score_threshold) {
        const int stride = args.strides[place.level], columns = args.model_W / stride;
        const int cell = place.side ? place.cell / columns : place.cell % columns;
        const float raw = load(args.boxes[place.level] + row * 4 + place.side);
        mine = (place.side < 2 ? raw + cell : expf(raw)) * stride;
    }
    append_above(args, image, place.leads(), score, best.index, place.anchor,
                 box_from_centre(mine));
}
