// Head of YOLOv8-like models that turn their boxes, [N, 4 + C + 1, A]: cx cy w h in model pixels, C
// scores already through a sigmoid, and an angle in radians; anchors lie side by side, so
// neighbouring threads read neighbouring anchors.
//
// Reads C scores an anchor once (4 bytes each, 2 as float16) and the 5 values of kept anchors
// alone; writes 48 bytes a candidate. Floor: N * A * C * sizeof(head_t) bytes at the speed of the
// memory.
#include "../heads.cuh"
#include "../rectangles.cuh"

extern "C" __global__ void decode_yolov8_obb(const Args args)
{
    const int image = blockIdx.y;
    const Place place = place_among(args.A, blockIdx.x);
    const auto* head = args.head + 1ull * image * (5 + args.C) * args.A;
    const Best best = best_in_planes<Args::C>(head + 4ll * args.A, place);
    const bool above = place.exists && best.score > *args.score_threshold;

    float mine = 0.0f, angle = 0.0f;
    if (above) {
        mine = load(head + 1ll * place.side * args.A + place.anchor);
        angle = load(head + (4ll + args.C) * args.A + place.anchor);
        float* rectangle = args.rectangles + 5ull * (1ull * image * args.A + place.anchor);
        rectangle[place.side] = mine;
        if (place.side == 0) rectangle[4] = angle;
    }
    const Four four = gather(mine);
    append_above(args, image, place.leads(), best.score, best.index, place.anchor,
                 box_around({four.at[0], four.at[1], four.at[2], four.at[3], angle}));
}
