// Key points as columns [N, M, K], x y in model pixels and, where V is 3, a confidence for each of J
// points, to frame pixels.
//
// Reads 4 V bytes and writes 12 bytes a point. Floor: a launch; 300 places of 17 points are 61 kB.
//
// A thread has one point; a place without a detection gets zeros, and reads nothing.

struct alignas(4) Point
{
    float x, y, confidence;
};

extern "C" __global__ void points_yolo(const Args args)
{
    const int point = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y, image = blockIdx.z;
    if (point >= args.J || row >= args.M) return;
    const unsigned long long at = 1ull * image * args.M + row;
    Point found{};
    if (row < args.detections_count[image]) {
        const float* raw = args.columns + at * args.K + point * args.V;
        const float* geometry = args.geometry + 6ull * image; // scale_x, scale_y, left, top
        found.x = (raw[0] - geometry[2]) * geometry[0];
        found.y = (raw[1] - geometry[3]) * geometry[1];
        found.confidence = args.V == 3 ? raw[args.V - 1] : 1.0f;
    }
    reinterpret_cast<Point*>(args.keypoints)[at * args.J + point] = found;
}
