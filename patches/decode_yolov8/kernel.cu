// YOLOv8-like head, [N, 4 + C + K, A]: cx cy w h in model pixels, C scores already through a
// sigmoid, and K columns that are left alone; anchors lie side by side, so neighbouring threads
// read neighbouring anchors.
//
// Reads C scores an anchor once (4 bytes each, 2 as float16) and the 4 box values of kept anchors
// alone; writes 28 bytes a candidate. Floor: N * A * C * sizeof(head_t) bytes at the speed of the
// memory; 2.7 MB for 640 px and 80 classes, 0.7 us at 4 TB/s.
#include "../heads.cuh"

extern "C" __global__ void decode_yolov8(const Args args)
{
    const int image = blockIdx.y;
    const Place place = place_among(args.A, blockIdx.x);
    const auto* head = args.head + 1ull * image * args.D * args.A;
    const Best best = best_in_planes<Args::C>(head + 4ll * args.A, place);

    float mine = 0.0f;
    if (place.exists && best.score > *args.score_threshold)
        mine = load(head + 1ll * place.side * args.A + place.anchor);
    append_above(args, image, place.leads(), best.score, best.index, place.anchor,
                 box_from_centre(mine));
}
