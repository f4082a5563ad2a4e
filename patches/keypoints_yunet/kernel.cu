// YuNet-like key points, [N, P, 2 * J] a level, one row an anchor: x y of each point in strides
// from the cell's corner; of the anchors that the detections come from, in frame pixels.
//
// Reads 2 * J values a detection, side by side; writes 12 J bytes a place. Floor: a launch; 300
// places of 5 points are 18 kB.
//
// A thread has one point; a place without a detection gets zeros, and reads nothing.

struct alignas(4) Point
{
    float x, y, confidence;
};

extern "C" __global__ void keypoints_yunet(const __grid_constant__ Args args)
{
    const int point = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y, image = blockIdx.z;
    if (point >= args.J || row >= args.M) return;
    const unsigned long long at = 1ull * image * args.M + row;
    Point found{};
    if (row < args.detections_count[image]) {
        int level = 0, cell = args.detections_anchors[at];
        while (level < args.P_count - 1 && cell >= args.P[level]) cell -= args.P[level++];
        const int stride = args.strides[level], columns = args.model_W / stride;
        const unsigned long long anchor = 1ull * image * args.P[level] + cell;
        const auto* raw = args.points[level] + (anchor * args.J + point) * 2;
        const float* geometry = args.geometry + 6ull * image; // scale_x, scale_y, left, top
        const float x = (load(raw) + cell % columns) * stride;
        const float y = (load(raw + 1) + cell / columns) * stride;
        found = {(x - geometry[2]) * geometry[0], (y - geometry[3]) * geometry[1], 1.0f};
    }
    reinterpret_cast<Point*>(args.keypoints)[at * args.J + point] = found;
}
