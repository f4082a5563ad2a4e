// Distance heads in planes, two tensors a level: [N, 4 * R, H, W], how far the sides of a box
// (left, top, right, bottom) are from a point of the cell, or logits of R bins of it; and [N, C, H,
// W] class scores. Sigmoid, box and stride go in one pass.
//
// Reads C scores an anchor once, and the 4 * R box values of kept anchors alone; writes 28 bytes a
// candidate. Floor: N * A * C * sizeof(classes_t) bytes at the speed of the memory; 2.7 MB for 640
// px and 80 classes in float32, 0.6 us at 4.8 TB/s.
#include "../heads.cuh"

extern "C" __global__ void decode_rtmdet(const __grid_constant__ Args args)
{
    const int image = blockIdx.y;
    const Place place = place_of(args);
    const auto* classes = args.classes[place.level] + 1ull * image * args.C * place.cells;
    const Best best = best_in_planes<Args::C>(classes, place);
    const float score = args.scores == args.scores_logit ? sigmoid(best.score) : best.score;

    const int stride = args.model_H / args.H[place.level], columns = args.W[place.level];
    float distance = 0.0f;
    if (place.exists && score > *args.score_threshold) {
        const int plane = (4 * image + place.side) * args.R;
        const auto* bins = args.boxes[place.level] + 1ull * plane * place.cells + place.cell;
        distance = expectation<Args::R>(bins, place.cells);
        if (args.distances == args.distances_log_strides) distance = expf(distance);
        if (args.distances != args.distances_pixels) distance *= stride;
    }
    const float x = (place.cell % columns + args.offset) * stride + args.shift;
    const float y = (place.cell / columns + args.offset) * stride + args.shift;
    append_above(args, image, place.leads(), score, best.index, place.anchor,
                 box_from_sides(x, y, distance));
}
