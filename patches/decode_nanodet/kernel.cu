// NanoDet-like heads, two tensors a level, one row an anchor: [N, P, C] class scores, and [N, P, 4
// * R], for each side of a box (left, top, right, bottom) logits of R bins, or the distance itself
// in strides where R is 1. Softmax, expectation, box and stride go in one pass.
//
// Reads C scores an anchor once, and the 4 * R bins of kept anchors alone; writes 28 bytes a
// candidate. Floor: N * A * C * sizeof(classes_t) bytes at the speed of the memory; 1.1 MB for 416
// px and 80 classes in float32, 0.3 us at 4.8 TB/s.
//
// Four neighbouring lanes share a row, so a warp reads eight rows that lie one behind the other.
#include "../heads.cuh"

extern "C" __global__ void decode_nanodet(const __grid_constant__ Args args)
{
    const int image = blockIdx.y;
    const Place place = place_of(args);
    const unsigned long long row = 1ull * image * place.cells + place.cell;
    const auto* classes = args.classes[place.level] + row * args.C;
    const Best best = best_in_row<0, Args::C, LANES>(classes, place.exists);
    const float score = args.scores == args.scores_logit ? sigmoid(best.score) : best.score;

    const int stride = args.strides[place.level], columns = parts(args.model_W, stride);
    float distance = 0.0f;
    if (place.exists && score > *args.score_threshold)
        distance = expectation<Args::R>(
            args.boxes[place.level] + (row * 4 + place.side) * args.R, 1);
    const float x = (place.cell % columns + args.offset) * stride + args.shift;
    const float y = (place.cell / columns + args.offset) * stride + args.shift;
    append_above(args, image, place.leads(), score, best.index, place.anchor,
                 box_from_sides(x, y, distance * stride));
}
