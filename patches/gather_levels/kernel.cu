// Of raw maps [N, K, H, W], one a level: the K values of the cells that the detections come from.
// Anchors count level after level, the largest first, row after row.
//
// Reads K values a detection, each from another sector of 32 bytes; writes 4 K bytes a place. Floor:
// a launch; 100 detections with 32 columns are 100 kB of sectors and 13 kB of values.
//
// A thread has one value; a place without a detection gets zeros, and reads nothing.

extern "C" __global__ void gather_levels(const __grid_constant__ Args args)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y, image = blockIdx.z;
    if (column >= args.K || row >= args.M) return;
    const unsigned long long at = 1ull * image * args.M + row;
    float value = 0.0f;
    if (row < args.detections_count[image]) {
        int level = 0, cell = args.detections_anchors[at];
        while (level < args.P_count - 1 && cell >= args.P[level]) cell -= args.P[level++];
        const unsigned long long plane = 1ull * image * args.K + column;
        value = load(args.maps[level] + plane * args.P[level] + cell);
    }
    args.columns[at * args.K + column] = value;
}
