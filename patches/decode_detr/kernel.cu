// DETR-like heads (RT-DETR, D-FINE, DEIM): class logits [N, Q, C], and boxes [N, Q, 4] cx cy w h as
// parts of the model's picture. Each pair of query and class is an anchor: q * C + c.
//
// Reads each logit once, and the box of kept pairs alone; writes 28 bytes a candidate. Floor:
// N * Q * C * sizeof(logits_t) bytes at the speed of the memory; 0.1 MB for 300 queries and 80
// classes in float32: a launch is all that it costs.
//
// A thread has a pair, so that a warp reads 32 logits that lie side by side.
#include "../heads.cuh"

extern "C" __global__ void decode_detr(const Args args)
{
    const int image = blockIdx.y, anchor = blockIdx.x * blockDim.x + threadIdx.x;
    const bool exists = anchor < args.A;
    const int query = min(anchor, args.A - 1) / args.C, label = anchor % args.C;
    float score = 0.0f;
    if (exists) score = sigmoid(load(args.logits + 1ull * image * args.A + anchor));

    Box box{};
    if (exists && score > *args.score_threshold) {
        const auto* part = args.boxes + (1ull * image * args.Q + query) * 4;
        const Box unit = box_around(load(part), load(part + 1), load(part + 2), load(part + 3));
        box = {unit.x1 * args.model_W, unit.y1 * args.model_H, unit.x2 * args.model_W,
               unit.y2 * args.model_H};
    }
    append_above(args, image, exists, score, label, anchor, box);
}
