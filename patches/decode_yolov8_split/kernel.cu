// YOLOv8-like raw heads with boxes and classes apart, two tensors a level: [N, 4 * R, H, W], for
// each side of a box (left, top, right, bottom) logits of R bins, or the distance itself in strides
// where R is 1; and [N, C, H, W] class logits. Softmax, expectation, sigmoid, box and stride go in
// one pass.
//
// Reads C logits an anchor once, and the 4 * R bins of kept anchors alone; writes 28 bytes a
// candidate. Floor: N * A * C * sizeof(classes_t) bytes at the speed of the memory; 86 MB for 32
// images of 640 px and 80 classes in float32, 18 us at 4.8 TB/s. The boxes' 69 MB are not touched.
//
// The sigmoid keeps the order of the logits, so that the best class is found before it.
#include "../heads.cuh"

extern "C" __global__ void decode_yolov8_split(const __grid_constant__ Args args)
{
    const int image = blockIdx.y;
    const Place place = place_of(args);
    const auto* classes = args.classes[place.level] + 1ull * image * args.C * place.cells;
    const Best best = best_in_planes<Args::C>(classes, place);
    const float score = sigmoid(best.score);

    const int stride = args.model_H / args.H[place.level], columns = args.W[place.level];
    float distance = 0.0f;
    if (place.exists && score > *args.score_threshold) {
        const int plane = (4 * image + place.side) * args.R;
        const auto* bins = args.boxes[place.level] + 1ull * plane * place.cells + place.cell;
        distance = expectation<Args::R>(bins, place.cells);
    }
    const float x = place.cell % columns + 0.5f, y = place.cell / columns + 0.5f;
    const Box box = box_from_sides(x * stride, y * stride, distance * stride);
    append_above(args, image, place.leads(), score, best.index, place.anchor, box);
}
