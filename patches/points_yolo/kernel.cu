// Key points as columns [N, M, K], x y in model pixels and, where V is 3, a confidence for each of
// J points, to frame pixels. Where there are strides the columns are raw: x y in halves of a cell
// from the corner of the anchor's cell, and a logit.
//
// Reads 4 V bytes and writes 12 bytes a point. Floor: a launch; 300 places of 17 points are 61 kB.
//
// A thread has one point; a place without a detection gets zeros, and reads nothing.

struct alignas(4) Point
{
    float x, y, confidence;
};

__device__ Point decoded(const Args& args, Point raw, int cell)
{
    int level = 0;
    for (; level < args.strides_count - 1; ++level) {
        const int stride = args.strides[level];
        const int cells = (args.model_H / stride) * (args.model_W / stride);
        if (cell < cells) break;
        cell -= cells;
    }
    const int stride = args.strides[level], columns = args.model_W / stride;
    return {
        (raw.x * 2.0f + cell % columns) * stride, (raw.y * 2.0f + cell / columns) * stride,
        1.0f / (1.0f + expf(-raw.confidence))};
}

extern "C" __global__ void points_yolo(const __grid_constant__ Args args)
{
    const int point = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y, image = blockIdx.z;
    if (point >= args.J || row >= args.M) return;
    const unsigned long long at = 1ull * image * args.M + row;
    Point found{};
    if (row < args.detections_count[image]) {
        const float* raw = args.columns + at * args.K + point * args.V;
        const float* geometry = args.geometry + 6ull * image; // scale_x, scale_y, left, top
        found = {raw[0], raw[1], raw[args.V - 1]};
        if (args.strides_count) found = decoded(args, found, args.detections_anchors[at]);
        found.x = (found.x - geometry[2]) * geometry[0];
        found.y = (found.y - geometry[3]) * geometry[1];
        if (args.V != 3) found.confidence = 1.0f;
    }
    reinterpret_cast<Point*>(args.keypoints)[at * args.J + point] = found;
}
