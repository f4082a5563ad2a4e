// Raw heads with anchor boxes, one tensor a level, [N, K * (5 + C), H, W]: for each of K anchor
// boxes logits of x, y, width, height, objectness and C classes. Sigmoid, box and stride go in one
// pass.
//
// Reads the objectness of each anchor once, C classes more in tiles of 32 anchors where one could
// be kept, and the 4 box values of kept anchors; writes 28 bytes a candidate. Floor: N * A *
// sizeof(head_t) bytes at the speed of the memory and what the promising tiles add; 3.2 MB for 32
// images of 640 px in float32, 0.7 us at 4.8 TB/s, where all classes would be 270 MB.
//
// A class score is at most 1, so an anchor whose objectness is not above the threshold is lost.
#include "../heads.cuh"

// One of centre x, centre y, width, height, from its logit; in pixels.
__device__ float coordinate(const Args& args, const Place& place, float logit)
{
    const bool size = place.side >= 2;
    const int level = place.level, column = place.cell % args.W[level];
    const float cell = place.side == 0 ? column : place.cell / args.W[level];
    const float stride = args.model_H / args.H[level];
    const float anchor = args.anchors[(level * args.K + place.map) * 2 + place.side % 2];
    if (args.form == args.form_yolov3)
        return size ? expf(logit) * anchor : (sigmoid(logit) + cell) * stride;
    const float twice = sigmoid(logit) * 2.0f;
    return size ? twice * twice * anchor : (twice + (cell - 0.5f)) * stride;
}

extern "C" __global__ void decode_yolov5_raw(const __grid_constant__ Args args)
{
    const int image = blockIdx.y;
    const Place place = place_of<Args::K>(args);
    const int plane = image * args.D + place.map * (5 + args.C);
    const auto* map = args.head[place.level] + 1ull * plane * place.cells;

    float objectness = 0.0f;
    if (place.exists) objectness = sigmoid(load(map + 4ll * place.cells + place.cell));
    const bool hopeful = place.exists && !(objectness <= *args.score_threshold);
    if (!__syncthreads_or(hopeful)) return;

    const Best best = best_in_planes<Args::C>(map + 5ll * place.cells, place);
    const float score = objectness * sigmoid(best.score);
    float mine = 0.0f;
    if (hopeful && score > *args.score_threshold)
        mine = coordinate(args, place, load(map + 1ll * place.side * place.cells + place.cell));
    append_above(args, image, hopeful && place.side == 0, score, best.index, place.anchor,
                 box_from_centre(mine));
}
